"""A question set by `--given`, as its user meets it: from eval to the audit, the page and the explorer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.commands import ok, refused

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.passages import lead_of
from lmgauge.models.custom import CustomModel
from lmgauge.text.training_coverage import find_training_coverage

NAMES = ["the cat", "a dog", "the old man", "my friend"]
DOES = ["sees", "likes", "hears"]
WHAT = ["a house", "the river", "<b>bread</b>"]


def records() -> list[dict[str, str]]:
    random = np.random.default_rng(3)
    made = []
    for i in range(40):
        who, does, what = (str(random.choice(words)) for words in (NAMES, DOES, WHAT))
        made.append(
            {"topic": ["math", "law"][i % 3 == 0], "q": f"Who is there?\n{who} <i>is</i>. {who}", "a": f" {does} {what}"}
        )
    return made


READ = ("--field", "a", "--given", "q", "--group", "topic")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records()), encoding="utf-8")
    lines = [f"{who} {does} {what}" for who in NAMES for does in DOES for what in WHAT]
    for order in (1, 3):
        lmgauge.train("witten-bell", Corpus.from_strings(lines), order=order).save(folder / f"w{order}")
    models = [part for order in (1, 3) for part in ("-m", folder / f"w{order}")]
    ok("eval", *models, folder / "q.jsonl", *READ, "--by-group", "-o", folder / "runs", "--columns", "entropy,rank")
    return folder


def evaluated(folder: Path, *options: object) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = json.loads(ok("eval", "-m", folder / "w3", folder / "q.jsonl", *options, "--json").stdout)
    return shown


def test_bits_per_byte_of_the_answers_by_group(folder: Path) -> None:
    whole, *groups = evaluated(folder, *READ, "--by-group")
    rows = records()
    assert whole["bytes"] == sum(len(row["a"]) for row in rows)
    assert whole["given_bytes"] == sum(len(row["q"]) for row in rows)
    assert {group["group"]: group["bytes"] for group in groups} == {
        name: sum(len(row["a"]) for row in rows if row["topic"] == name) for name in ("law", "math")
    }
    assert "|context:sentence,given=joint|" in whole["signature"]
    assert any(f"{whole['given_bytes']:,} bytes of given text are shown but not scored" in note for note in whole["notes"])
    assert whole["perplexity"] < evaluated(folder, "--field", "a")[0]["perplexity"]  # a question tells of its answer


def test_the_rule_of_the_boundary_is_another_text(folder: Path) -> None:
    joint, apart = evaluated(folder, *READ)[0], evaluated(folder, *READ, "--boundary", "apart")[0]
    assert joint["fingerprints"]["text"] != apart["fingerprints"]["text"]
    assert "given=apart" in apart["signature"]
    assert "given" not in evaluated(folder, "--field", "a")[0]["signature"]


def test_runs_are_compared_pair_by_pair_and_read_again(folder: Path, tmp_path: Path) -> None:
    compared = ok("compare", folder / "runs/w1", folder / "runs/w3").stdout
    assert "Comparable" in compared
    assert "40 paired segments" in compared
    again = lmgauge.evaluate_scores(folder / "runs/w3")
    corpus = Corpus.from_files(folder / "q.jsonl", field="a", given="q")
    first = lmgauge.evaluate(str(folder / "w3"), corpus)
    assert (again.perplexity, again.bits_per_byte) == (first.perplexity, first.bits_per_byte)
    assert (again.given_bytes, again.context) == (first.given_bytes, first.context)
    ok("eval", "-m", folder / "w3", folder / "q.jsonl", "--field", "a", "-o", tmp_path / "plain")
    assert "text differs" in ok("compare", folder / "runs/w3", tmp_path / "plain").stdout


@pytest.mark.parametrize("boundary", ["joint", "apart"])
def test_an_audit_never_fails_a_sound_run(folder: Path, tmp_path: Path, boundary: str) -> None:
    across = tmp_path / "across.jsonl"
    rows = [{"q": "the ol", "a": "d man sees a house"}, {"q": "", "a": "a dog"}, {"q": "the\u3000cat\n", "a": "likes "}]
    across.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *records()]), encoding="utf-8")
    ok("eval", "-m", folder / "w3", across, *READ[:4], "--boundary", boundary, "-o", tmp_path / "run")
    alone = json.loads(ok("audit", tmp_path / "run", "--json").stdout)
    both = json.loads(ok("audit", tmp_path / "run", "-m", folder / "w3", "--json").stdout)
    assert {check["verdict"] for audit in (alone, both) for check in audit["checks"]} <= {"PASS", "NOT CHECKED"}
    verdicts = {check["name"]: (check["verdict"], check["evidence"]) for check in both["checks"]}
    assert verdicts["agreement"][0] == verdicts["tokens"][0] == verdicts["stored rows"][0] == "PASS"
    levels = {check["level"]: check["evidence"] for check in both["checks"]}
    assert "audit the model on the text without --given" in levels["causality"]


def test_an_audit_sees_a_table_that_was_made_without_the_given_text(folder: Path, tmp_path: Path) -> None:
    ok("eval", "-m", folder / "w3", folder / "q.jsonl", "--field", "a", "-o", tmp_path / "run")
    evaluation = tmp_path / "run" / "evaluation.json"
    evaluation.write_text(evaluation.read_text().replace('"field": "a"', '"field": "a", "given": "q"'))
    assert "The text has fingerprint" in refused_audit(tmp_path / "run")


def refused_audit(run: Path) -> str:
    from tests.cli.commands import run as command

    result = command("audit", run)
    assert result.exit_code == 1
    return str(result.stdout)


def test_diagnose_report_and_explorer_show_what_was_given(folder: Path, tmp_path: Path) -> None:
    diagnosed = ok("diagnose", folder / "runs/w3", "-m", folder / "w3").stdout
    assert "calibration" in diagnosed or "entropy" in diagnosed
    page = tmp_path / "page.html"
    ok("report", folder / "runs/w3", "-o", page)
    text = page.read_text(encoding="utf-8")
    assert 'class="lead" dir="auto"' in text
    assert "Who is there?\nthe cat &lt;i&gt;is&lt;/i&gt;. the cat</p>" in text
    assert "<i>is</i>" not in text
    pytest.importorskip("starlette", reason="the extra explore is not installed")
    from lmgauge.evaluation.runs import open_run
    from lmgauge.explore.index import Index
    from lmgauge.explore.passages import item_at

    run = open_run(folder / "runs/w3")
    index = Index([run], run.corpus(), tmp_path)
    index.build()
    assert index.problem == ""
    for place, row in enumerate(records()):
        item = item_at(index, place)
        assert (item["lead"], item["text"]) == (row["q"], row["a"])
    index.close()


def test_training_text_is_looked_for_in_the_answers_alone() -> None:
    answers = [f" {row['a']} and the river is wide and the house is old and the cat likes it" for row in records()]
    prompts = [row["q"] for row in records()]
    train = Corpus.from_strings([*answers[:5], *prompts])
    found, alone = (
        lmgauge.overlap(train, test).to_dict()
        for test in (Corpus.from_strings(answers, given=prompts), Corpus.from_strings(answers))
    )
    assert found["contaminated_segments"] > 0
    assert found.pop("notes") != alone.pop("notes")
    assert found.pop("test_sha256") != alone.pop("test_sha256")
    assert found == alone
    covered = [
        find_training_coverage(train, test)
        for test in (Corpus.from_strings(answers, given=prompts), Corpus.from_strings(answers))
    ]
    assert covered[0].longest.tolist() == covered[1].longest.tolist()


def test_a_model_of_ones_own_is_diagnosed_after_given_text(folder: Path, tmp_path: Path) -> None:
    """Its contexts begin with what was given, which no row of the run has."""
    scored = lmgauge.load_model(folder / "w3")

    class Own(CustomModel):
        label = "own"

        def log_distribution(self, context_ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return scored.log_distribution(context_ids)

    own = Own(scored.vocabulary)
    corpus = Corpus.from_files(folder / "q.jsonl", field="a", given="q")
    lmgauge.evaluate(own, corpus, output=tmp_path / "own")
    lmgauge.evaluate(scored, corpus, output=tmp_path / "w3")
    ours, theirs = (
        lmgauge.diagnose(tmp_path / name, model=model).calibration for name, model in (("own", own), ("w3", scored))
    )
    assert ours is not None
    assert theirs is not None
    assert ours.contexts == theirs.contexts
    assert ours.expected_calibration_error == pytest.approx(theirs.expected_calibration_error, abs=1e-9)


def test_long_given_text_is_shown_by_its_end() -> None:
    assert lead_of(("x" * 5000 + "ü end").encode()).startswith("… xxx")
    assert lead_of(("x" * 5000 + "ü end").encode()).endswith("ü end")
    assert lead_of("ü".encode() * 5000)[2:5] == "üüü"


def test_whole_distributions_after_given_text(folder: Path, tmp_path: Path) -> None:
    named = [folder / "w3", folder / "w1", folder / "q.jsonl"]
    shown = json.loads(ok("divergence", *named, *READ, "--json").stdout)[0]
    some = json.loads(ok("divergence", *named, *READ, "--json", "--events", 60).stdout)[0]
    assert some["events"] < shown["events"]
    assert any("bytes of given text are shown" in note for note in shown["notes"])
    assert some["kl_ab_nats"]["value"] == pytest.approx(shown["kl_ab_nats"]["value"], rel=0.2)
    ok("divergence", folder / "w3", folder / "q.jsonl", *READ, "--save-base", tmp_path / "base.parquet")
    stored = json.loads(ok("divergence", tmp_path / "base.parquet", *named[1:], *READ, "--json").stdout)[0]
    assert stored["kl_ab_nats"]["value"] == pytest.approx(shown["kl_ab_nats"]["value"], rel=1e-3)
    ok("divergence", *named, *READ, "--exhaustive", "-o", tmp_path / "kl")
    written = lmgauge.evaluate_scores(tmp_path / "kl")
    assert (written.context, written.given_bytes) == ("sentence,given=joint", sum(len(row["q"]) for row in records()))
    message = refused("divergence", tmp_path / "base.parquet", *named[1:], "--field", "a")
    assert "read with the same options" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--field", "a", "--boundary", "apart"), "no text is given"),
        (("--field", "a", "--given", "z"), "no field 'z'; the fields are 'topic', 'q', 'a'"),
        (("--field", "a", "--given", "q", "--boundary", "across"), "is not one of"),
        (("--format", "text", "--given", "q"), "lines of text have no field 'q'"),
    ],
)
def test_options_that_cannot_be_followed(folder: Path, options: tuple[str, ...], message: str) -> None:
    assert message in refused("eval", "-m", folder / "w3", folder / "q.jsonl", *options)


def test_an_empty_answer_is_refused_or_left_out(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"q": "the cat", "a": ""}\n{"q": "the cat", "a": " sees"}\n')
    assert "x.jsonl, record 1: the text to score after the given text is empty" in refused(
        "eval", "-m", folder / "w3", path, *READ[:4]
    )
    assert "1 record left out" in ok("eval", "-m", folder / "w3", path, *READ[:4], "--errors", "skip").stdout
