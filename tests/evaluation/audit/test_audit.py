"""Runs and score tables without their model: what was changed, left out or never there is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import ok
from tests.cli.commands import run as command
from tests.evaluation.audit.auditing import audit_run

import lmgauge
from lmgauge import Corpus
from lmgauge.evaluation.audit.checks import FAIL, NOT_CHECKED, PASS, Audit
from lmgauge.evaluation.runs import open_run
from lmgauge.work.manifest import content_fingerprint

LINES = ["to be or not to be", "that  is the question", "", "to sleep perchance", "日本 to dream"]
Rows = list[dict[str, Any]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with its model and text."""
    (tmp_path / "train.txt").write_text("\n".join(LINES[:4]) + "\n", encoding="utf-8")
    (tmp_path / "test.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    lmgauge.train("witten-bell", tmp_path / "train.txt", order=2).save(tmp_path / "model")
    ok("eval", "-m", tmp_path / "model", tmp_path / "test.txt", "-o", tmp_path / "run")
    return tmp_path


def failed(found: Audit) -> set[str]:
    return {check.name for check in found.failures}


def test_a_run_as_it_was_written_passes(folder: Path) -> None:
    run = open_run(folder / "run")
    found = audit_run(run, run.corpus())
    assert found.passed, str(found)
    assert [check.name for check in found.checks if check.verdict == PASS] == [
        "seal", "text", "segments", "spans", "spelling", "sentence ends", "log-probabilities", "denominators",
        "first tokens", "claims",
    ]  # fmt: skip
    assert {
        c.level: c.evidence for c in found.checks if c.level in ("normalization", "causality", "compression")
    } == dict.fromkeys(("normalization", "causality", "compression"), "needs the model: name it with -m")
    assert next(c for c in found.checks if c.name == "claims").details["recomputed"]["bytes"] == 19 + 22 + 1 + 19 + 16


def test_without_the_text_the_sums_are_checked(folder: Path) -> None:
    (folder / "test.txt").unlink()
    run = open_run(folder / "run")
    assert run.corpus() is None
    found = audit_run(run, None)
    assert found.bits_per_byte is None
    assert found.perplexity == pytest.approx(run.evaluation["perplexity"] if run.evaluation else 0, rel=1e-14)
    assert (
        next(c for c in found.checks if c.level == "contamination").evidence
        == "the text it scored is not available: name it (--text)"
    )
    assert {check.name: check.verdict for check in found.checks if check.level == "coverage"} == {
        "seal": PASS,
        "text": NOT_CHECKED,
        "first tokens": PASS,
        "claims": PASS,
    }


def test_a_run_edited_by_hand_fails(folder: Path) -> None:
    path = folder / "run" / "evaluation.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"perplexity": ', '"perplexity": 1'), encoding="utf-8")
    found = audit_run(open_run(folder / "run", check_seal=False), None)
    assert [check.name for check in found.failures] == ["seal", "claims"]


def test_a_table_exchanged_fails(folder: Path) -> None:
    table = folder / "run" / "scores.parquet"
    table.write_bytes(table.read_bytes() + b"\0")
    assert "scores.parquet" in open_run(folder / "run", check_seal=False).broken_seal


@pytest.mark.parametrize(
    ("name", "value"),
    [("perplexity", 2.0), ("bytes", 1000), ("words", 11), ("events", 20), ("log_probability", -1.0), ("bits_per_byte", None),
     ("zero_probability_events", 1)],
)  # fmt: skip
def test_numbers_that_the_table_does_not_give(folder: Path, name: str, value: float | None) -> None:
    """Edited by one who also renewed the fingerprint."""
    path = folder / "run" / "evaluation.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["evaluation"][name] = value
    content["fingerprint"] = content_fingerprint(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    run = open_run(folder / "run")
    found = audit_run(run, run.corpus())
    assert failed(found) == {"claims"}
    assert f"{name} is" in found.failures[0].evidence


def test_another_text(folder: Path) -> None:
    (folder / "test.txt").write_text("\n".join([*LINES[:3], "to dance perchance", LINES[4]]) + "\n", encoding="utf-8")
    run = open_run(folder / "run")
    found = audit_run(run, run.corpus())
    assert failed(found) == {"text"}  # rows beside another text say nothing of either
    assert found.bits_per_byte is None


def table(folder: Path, change: Callable[[Rows], Rows]) -> Audit:
    """The audit of the run's table, changed, as one from elsewhere."""
    import pyarrow.parquet as pq

    rows = pq.read_table(folder / "run" / "scores.parquet").to_pylist()
    path = folder / "table.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in change(rows)), encoding="utf-8")
    return audit_run(open_run(path), Corpus.from_files(folder / "test.txt"))


def with_value(index: int, **values: Any) -> Callable[[Rows], Rows]:
    return lambda rows: [{**row, **values} if i == index else row for i, row in enumerate(rows)]


def swapped(rows: Rows) -> Rows:
    """Segments 1 and 2 change places."""
    number = {0: 1, 1: 0}
    return sorted(
        ({**row, "segment": number.get(row["segment"], row["segment"])} for row in rows), key=lambda row: row["segment"]
    )


@pytest.mark.parametrize(
    ("change", "name", "message"),
    [
        (with_value(2, logprob=0.5), "table", "logprob is 0.5 in segment 0"),
        (with_value(2, logprob=None), "table", "rows without a value"),
        (lambda rows: rows[::-1], "table", "must not fall"),
        (swapped, "spans", "segment 1: spans end at byte 21, but it has only 18 bytes"),
        (lambda rows: [r for r in rows if r["segment"] != 1], "segments", "segment 2, 'that  is the question', has no rows"),
        (lambda rows: [*rows, {**rows[-1], "segment": 77}], "segments", "segment 78 is in no text"),
        (lambda rows: [*rows, {**rows[-1], "segment": 10**15}], "segments", f"segment {10**15 + 1:d} is in no text"),
        (with_value(1, end=3), "spans", "does not begin where"),
        (lambda rows: rows[:3] + rows[4:], "spans", "does not begin where"),
        (with_value(1, token="bee"), "spelling", "'bee' spans ' be'"),
        (with_value(6, kind="token"), "sentence ends", "4 of 5 segments"),
        (lambda rows: rows[:-3], "spans", "belongs to no event"),
    ],
)  # fmt: skip
def test_tables_that_break_a_rule(folder: Path, change: Callable[[Rows], Rows], name: str, message: str) -> None:
    found = table(folder, change)
    wrong = {check.name: check.evidence for check in found.failures}
    assert message in wrong[name], str(found)


def test_a_table_of_scores_alone(folder: Path) -> None:
    found = table(folder, lambda rows: [{"segment": row["segment"], "logprob": row["logprob"]} for row in rows])
    assert found.passed, str(found)
    verdicts = {check.name: check.verdict for check in found.checks}
    assert verdicts["spans"] == verdicts["spelling"] == verdicts["claims"] == verdicts["text"] == NOT_CHECKED
    assert verdicts["segments"] == PASS


def test_a_foreign_table_in_full(folder: Path) -> None:
    found = table(folder, lambda rows: rows)
    assert found.passed, str(found)
    spelling = next(check for check in found.checks if check.name == "spelling")
    assert spelling.verdict == PASS
    assert spelling.details["read_as"] == "words"


def test_an_empty_table(folder: Path) -> None:
    found = table(folder, lambda rows: [])
    assert found.failures
    assert found.verdict("coverage") == FAIL


@pytest.mark.parametrize(
    ("value", "message"), [(10**400, "a whole number has 401 digits"), ("x", "events is no number, but")]
)
def test_a_resealed_run_with_what_is_no_number_is_said_so(folder: Path, value: object, message: str) -> None:
    file = folder / "run" / "evaluation.json"
    content = json.loads(file.read_bytes())
    content["evaluation"]["events"] = value
    content["fingerprint"] = content_fingerprint(content)
    file.write_text(json.dumps(content), encoding="utf-8", newline="\n")
    result = command("audit", folder / "run")
    assert message in result.output
    assert "Error(" not in repr(result.exception), result.exception
