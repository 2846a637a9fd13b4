"""Conversations read by `--chat`, as their user meets them: from eval to compare, the audit and the page."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import ok, refused, run

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError

CHAT = ("--chat", "messages")
NAMES, DOES, WHAT = ["the cat", "the dog", "a bird"], ["sat", "ran", "saw"], ["on the mat", "a fish", "home"]


def conversations() -> list[dict[str, Any]]:
    """Thirty of one to three questions, whose words are not those of the answers."""
    drawn = random.Random(0)
    made = []
    for number in range(30):
        messages = [{"role": "system", "content": "Say it."}]
        for _ in range(drawn.randint(1, 3)):
            said = f"{drawn.choice(NAMES)} {drawn.choice(DOES)} {drawn.choice(WHAT)}"
            messages += [{"role": "user", "content": "who is it?"}, {"role": "assistant", "content": said}]
        made.append({"key": f"c{number}", "topic": ["math", "law"][number % 3 == 0], "messages": messages})
    return made


def answers(role: str = "assistant") -> list[str]:
    return [one["content"] for record in conversations() for one in record["messages"] if one["role"] == role]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chat")
    (folder / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in conversations()), encoding="utf-8")
    (folder / "plain.txt").write_text("".join(text + "\n" for text in answers()), encoding="utf-8")
    for order in (1, 2):
        lmgauge.train("witten-bell", Corpus.from_files(folder / "plain.txt"), order=order).save(folder / f"w{order}")
    models = [part for order in (1, 2) for part in ("-m", folder / f"w{order}")]
    ok("eval", *models, folder / "c.jsonl", *CHAT, "-o", folder / "runs", "--id", "key", "--keep", "topic")
    return folder


def evaluated(folder: Path, *options: object) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = json.loads(ok("eval", "-m", folder / "w2", folder / "c.jsonl", *options, "--json").stdout)
    return shown


def test_a_model_of_words_scores_the_contents_and_a_conversation_is_independent(folder: Path) -> None:
    (chat,), texts = evaluated(folder, *CHAT), answers()
    alone = lmgauge.evaluate(folder / "w2", texts=texts)
    assert (chat["perplexity"], chat["bits_per_byte"]) == (alone.perplexity, alone.bits_per_byte)
    assert (chat["segments"], chat["bytes"]) == (len(texts), sum(map(len, texts)))
    assert chat["independence"] == "30 documents (conversations) are taken as independent"


def test_groups_by_role_and_by_field(folder: Path) -> None:
    whole, *groups = evaluated(folder, *CHAT, "--roles", "user,assistant", "--group", "role", "--by-group")
    expected = {role: sum(map(len, answers(role))) for role in ("user", "assistant")}
    assert {group["group"]: group["bytes"] for group in groups} == expected
    assert whole["bytes"] == sum(expected.values())
    _, *topics = evaluated(folder, *CHAT, "--group", "topic", "--by-group")
    assert {topic["group"] for topic in topics} == {"math", "law"}


def test_rows_name_the_conversation_and_carry_its_fields(folder: Path, tmp_path: Path) -> None:
    paths = tmp_path / "segments.jsonl", tmp_path / "words.jsonl"
    options = "--id", "key", "--keep", "topic", "--per-segment", paths[0], "--per-word", paths[1]
    ok("eval", "-m", folder / "w2", folder / "c.jsonl", *CHAT, *options)
    segments, words = ([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] for path in paths)
    turns = [(record["key"], record["topic"]) for record in conversations() for _ in record["messages"][2::2]]
    assert [(row["id"], row["topic"]) for row in segments] == turns
    assert [row["segment"] for row in segments] == list(range(len(turns)))
    assert {(row["text_id"], row["segment"]) for row in words} == {(key, i) for i, (key, _) in enumerate(turns)}
    assert [row["word"] for row in words] == [word for text in answers() for word in text.split()]


def test_runs_are_compared_and_read_again(folder: Path, tmp_path: Path) -> None:
    runs = [folder / "runs" / f"w{order}" for order in (1, 2)]
    (compared,) = json.loads(ok("compare", *runs, "--json").stdout)["comparisons"]
    interval = compared["differences"][0]["interval"]
    assert (interval["unit"], interval["units"]) == ("documents", 30)
    assert json.loads(ok("audit", runs[1], "--json").stdout)["passed"]
    diagnosed = json.loads(ok("diagnose", runs[1], "-m", folder / "w2", "--json").stdout)
    assert diagnosed["evaluation"]["bytes"] == sum(map(len, answers()))
    assert {row["text"] for row in diagnosed["worst_segments"]} <= set(answers())
    ok("report", *runs, "-o", tmp_path / "page.html")
    assert "the cat" in (tmp_path / "page.html").read_text(encoding="utf-8")
    corpus = lmgauge.evaluation.runs.open_run(runs[0]).corpus()
    assert corpus is not None
    assert corpus.roles == ("assistant",)


def test_an_audit_and_a_divergence_of_turns(folder: Path) -> None:
    assert json.loads(ok("audit", "-m", folder / "w2", folder / "c.jsonl", *CHAT, "--json").stdout)["passed"]
    ok("divergence", folder / "w1", folder / "w2", folder / "c.jsonl", *CHAT, "--events", "40")


def test_plain_training_text_stands_beside_conversations(folder: Path) -> None:
    train, test = folder / "plain.txt", folder / "c.jsonl"
    audited = run("audit", "-m", folder / "w2", test, *CHAT, "--train", train, "--json").stdout
    assert json.loads(audited)["levels"]["contamination"] == "FAIL"  # all of the answers are in it
    shown = json.loads(ok("overlap", train, test, *CHAT, "--json").stdout)
    assert (shown["segments"], shown["contaminated_segments"]) == (len(answers()), len(answers()))
    assert "plain.txt: lines of text have no field 'messages'" in refused("overlap", test, train, *CHAT)


def test_training_on_turns_is_training_on_their_contents(folder: Path, tmp_path: Path) -> None:
    ok("train", "witten-bell", folder / "c.jsonl", *CHAT, "--order", "2", "-o", tmp_path / "m")
    text = Corpus.from_files(folder / "plain.txt")
    assert lmgauge.evaluate(tmp_path / "m", text).perplexity == lmgauge.evaluate(folder / "w2", text).perplexity


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--chat", "said"), "no field 'said'; the fields are 'key', 'topic', 'messages': name one of them (--chat)"),
        (("--chat", "topic"), "c.jsonl:1: field 'topic': not messages, nor JSON"),
        ((*CHAT, "--given", "key"), "leave out given"),
        ((*CHAT, "--field", "key"), "leave out field"),
        ((*CHAT, "--roles", "narrator"), "unknown role 'narrator'"),
        ((*CHAT, "--roles", "tool"), "no conversation of the text has a turn with content of tool"),
        (("--roles", "user"), "name the field of its messages"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_line(folder: Path, options: tuple[str, ...], says: str) -> None:
    assert says in refused("eval", "-m", folder / "w2", folder / "c.jsonl", *options)


def test_a_bad_record_is_left_out_alone(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text((folder / "c.jsonl").read_text(encoding="utf-8") + '{"key": "x", "messages": []}\n', encoding="utf-8")
    says = refused("eval", "-m", folder / "w2", path, *CHAT)
    assert "bad.jsonl:31: field 'messages': a conversation without messages" in says
    skipped = ok("eval", "-m", folder / "w2", path, *CHAT, "--errors", "skip", "--json").stdout
    (shown,) = json.loads(skipped)
    (whole,) = evaluated(folder, *CHAT)
    assert shown["perplexity"] == whole["perplexity"]
    assert shown["fingerprints"]["text"] == whole["fingerprints"]["text"]
    assert any("1 record left out" in note for note in shown["notes"])


def test_plain_text_as_turns_is_scored_as_it_is_by_a_model_of_words(folder: Path) -> None:
    plain = ok("eval", "-m", folder / "w2", folder / "plain.txt", "--json").stdout
    turns = ok("eval", "-m", folder / "w2", folder / "plain.txt", "--as-turn", "assistant", "--json").stdout
    (first,), (second,) = json.loads(plain), json.loads(turns)
    assert first["perplexity"] == second["perplexity"]
    assert first["fingerprints"]["text"] != second["fingerprints"]["text"]
    assert lmgauge.evaluate(folder / "w2", texts=answers(), as_turn="assistant").segments == len(answers())


def test_what_would_take_conversations_apart_is_refused(folder: Path, tmp_path: Path) -> None:
    corpus = Corpus.from_files(folder / "c.jsonl", chat="messages")
    with pytest.raises(UsageError, match="split would take turns out of their conversations"):
        lmgauge.split(corpus, tmp_path / "parts")
    with pytest.raises(UsageError, match="a selection would take turns out of their conversations"):
        lmgauge.select_documents(corpus, corpus, share=0.5)
    with pytest.raises(UsageError, match="a clean test would take turns out of their conversations"):
        lmgauge.overlap(corpus, corpus, write_clean=tmp_path / "clean.jsonl")
    for command in ("split", "select", "bleu"):
        assert "No such option '--chat'" in refused(command, folder / "c.jsonl", *CHAT)


def test_turns_of_one_conversation_token_by_token(folder: Path) -> None:
    messages = conversations()[1]["messages"]
    scored = lmgauge.score_text(folder / "w2", messages=messages)
    alone = lmgauge.score_text(folder / "w2", [one["content"] for one in messages if one["role"] == "assistant"])
    assert [one.logprobs for one in scored] == [one.logprobs for one in alone]
    assert len(lmgauge.score_text(folder / "w2", messages=messages, roles=["user", "assistant"])) == len(messages) - 1
    with pytest.raises(UsageError, match="give text or messages"):
        lmgauge.score_text(folder / "w2", "the cat", messages=messages)  # type: ignore[call-overload]
    with pytest.raises(InputError, match="message 1 has no role"):
        lmgauge.score_text(folder / "w2", messages=[{"content": "x"}])
