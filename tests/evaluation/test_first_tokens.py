"""The probabilities of what segments begin with: at most 1 in sum, and no alarm where contexts differ."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.audit.audit import audit_run
from lmgauge.evaluation.audit.checks import FAIL, NOT_CHECKED, PASS
from lmgauge.evaluation.first_tokens import FirstTokens
from lmgauge.evaluation.runs import open_run
from lmgauge.scores import read_scores
from lmgauge.scores.context_policy import ContextPolicy


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def begun(folder: Path, *firsts: tuple[str, float], context: str = "sentence", kind: str = "token") -> FirstTokens:
    """What is seen of segments that begin with these tokens, of these probabilities."""
    rows = [{"segment": i, "token": token, "logprob": math.log(p), "kind": kind} for i, (token, p) in enumerate(firsts)]
    seen = FirstTokens(ContextPolicy.parse(context))
    for batch in read_scores(write(folder / "firsts.jsonl", rows)):
        seen.add(batch)
    return seen


def test_distinct_tokens_share_one(tmp_path: Path) -> None:
    sound = begun(tmp_path, ("a", 0.5), ("b", 0.3), ("a", 0.5), ("c", 0.2))
    assert sound.mass == pytest.approx(1)
    assert (sound.possible, sound.note) == (True, "")
    unsound = begun(tmp_path, ("a", 0.5), ("b", 0.3), ("a", 0.5), ("c", 0.25))
    assert unsound.mass == pytest.approx(1.05)
    assert unsound.possible is False
    assert "3 tokens that segments begin with sum to 1.05 or more, where 1 is the most" in unsound.note
    assert begun(tmp_path, ("a", 0.5), ("b", 0.3), ("c", 0.205)).possible  # rounded


def test_what_may_be_one_event_counts_once(tmp_path: Path) -> None:
    """Some tables name the unknown word as the text does, with or without its kind."""
    for kind in ("oov", "token"):
        assert begun(tmp_path, *((f"unseen{i}", 0.4) for i in range(9)), kind=kind).mass == pytest.approx(0.4)
    spelled = begun(tmp_path, ("zork", 0.7), ("quux", 0.6), kind="oov")  # each at its own cost
    assert spelled.possible is False


@pytest.mark.parametrize("context", ["sentence", "unknown"])
def test_nothing_follows_where_contexts_differ(tmp_path: Path, context: str) -> None:
    seen = begun(tmp_path, ("a", 0.5), ("b", 0.9), ("a", 0.8), context=context)
    assert "'a' begins segments with different probabilities" in seen.why_not
    assert seen.note == ""


@pytest.mark.parametrize("context", ["stream", "stream,128/64", "sentence,first=unscored", "sentence,128/64,first=unscored"])
def test_contexts_that_are_known_to_differ_are_not_looked_at(tmp_path: Path, context: str) -> None:
    seen = begun(tmp_path, ("a", 0.9), ("b", 0.8), context=context)
    assert seen.why_not
    assert seen.possible


def test_tokens_without_names_say_nothing(tmp_path: Path) -> None:
    seen = FirstTokens(ContextPolicy())
    for batch in read_scores(write(tmp_path / "bare.jsonl", [{"segment": i, "logprob": -0.1 * i} for i in range(9)])):
        seen.add(batch)
    assert seen.why_not == "the table does not name its tokens"


def test_an_unknown_context_is_doubted_until_tokens_that_come_again_show_that_it_is_one(tmp_path: Path) -> None:
    firsts = [("a", 0.9), ("b", 0.8)]
    doubt = begun(tmp_path, *firsts, context="unknown")
    assert doubt.possible is None
    assert "If each segment is scored on its own, 1 is the most: are these natural logs?" in doubt.note
    sure = begun(tmp_path, *firsts * 6, context="unknown")
    assert sure.possible is False
    assert "these are not natural logs" in sure.note


def test_a_segment_that_goes_on_in_the_next_batch_begins_once(tmp_path: Path) -> None:
    (batch,) = read_scores(
        write(tmp_path / "t.jsonl", [{"segment": 0, "token": token, "logprob": -0.1} for token in ("a", "b", "c")])
    )
    seen = FirstTokens(ContextPolicy())
    for _ in seen.watch([batch, batch]):
        pass
    assert seen.mass == pytest.approx(math.exp(-0.1))


# -- tables of models ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def texts(data: Path) -> tuple[list[str], list[str]]:
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").splitlines()
    return lines[:2500], lines[2500:2700]


def run_of(folder: Path, texts: tuple[list[str], list[str]], kind: Any, **options: Any) -> Path:
    train, test = texts
    (folder / "test.txt").write_text("".join(f"{line}\n" for line in test), encoding="utf-8")
    model = lmgauge.train(kind, Corpus.from_strings(train), order=3, **options)
    lmgauge.evaluate(model, folder / "test.txt", output=folder / "run")
    return folder / "run"


def foreign(run: Path, divisor: float = 1.0, *names: str) -> Path:
    """The table of a run as that of a program that tells nothing of itself, its logs to another base."""
    kept = names or ("segment", "start", "end", "token", "kind", "logprob")
    rows = pq.read_table(run / "scores.parquet").to_pylist()
    rows = [{name: row[name] for name in kept} | {"logprob": row["logprob"] / divisor} for row in rows]
    return write(run.parent / "foreign.jsonl", rows)


def verdict(table: Path, text: Path) -> str:
    (check,) = (c for c in audit_run(open_run(table), Corpus.from_files(text)).checks if c.name == "first tokens")
    return check.verdict


@pytest.mark.parametrize("kind", ["mle", "laplace", "witten-bell", "modified-kneser-ney"])
@pytest.mark.parametrize(
    "options",
    [{}, {"vocabulary": "closed"}, {"tokenizer": "character"}, {"min_count": 3}, {"context": "stream"}],
    ids=lambda options: " ".join(options.values() if "min_count" not in options else options) or "words",
)
def test_runs_and_their_tables_raise_no_alarm(
    texts: tuple[list[str], list[str]], tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    run = run_of(tmp_path, texts, kind, **options)
    table = foreign(run)
    expected = {NOT_CHECKED} if "context" in options else {PASS}
    assert {verdict(path, tmp_path / "test.txt") for path in (run, table)} == expected
    assert not any("segments begin" in note for note in lmgauge.evaluate_scores(table).notes)


@pytest.mark.parametrize("kind", ["kneser-ney", "witten-bell"])
def test_base_10_logs_are_noticed_by_audit_eval_and_compare(
    texts: tuple[list[str], list[str]], tmp_path: Path, kind: str
) -> None:
    run, text = run_of(tmp_path, texts, kind), tmp_path / "test.txt"
    table = foreign(run, math.log(10))
    assert verdict(table, text) == FAIL
    assert any("these are not natural logs (base-10" in note for note in lmgauge.evaluate_scores(table, text).notes)
    (compared,) = lmgauge.compare([run, table], text=text).items
    assert [note.split(":")[0] for note in compared.doubts if "base-10" in note] == [table.name]
    assert compared.significant is None
