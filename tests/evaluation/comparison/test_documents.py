"""Whose documents count: what is asked for, what the tables name, what the text says; never the order of the runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import ok

import lmgauge
from lmgauge.evaluation.comparison.comparability import _by_appearance
from lmgauge.evaluation.comparison.results import Comparison

LINES = 120


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One text in 3 files, in 12 files and in one; runs of two models on each, as `a3`, `b3`, `a12` and so on."""
    folder = tmp_path_factory.mktemp("documents")
    generator = np.random.default_rng(4)
    lines = [" ".join(generator.choice(list("abcdef"), 7, p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1])) for _ in range(2 * LINES)]
    for files in (1, 3, 12):
        for i in range(files):
            part = lines[i * LINES // files : (i + 1) * LINES // files]
            (folder / f"{files:02d}-{i:02d}").write_text("".join(f"{line}\n" for line in part), encoding="utf-8")
    for name, order in (("a", 1), ("b", 2)):
        model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(lines[LINES:]), order=order)
        for files in (1, 3, 12):
            lmgauge.evaluate(model, sorted(folder.glob(f"{files:02d}-*")), output=folder / f"{name}{files}")
    return folder


def compared(runs: Path, first: str, second: str, document: str | None = None) -> Comparison:
    (found,) = lmgauge.compare([runs / first, runs / second], document=document)
    return found


def test_runs_remember_their_documents(runs: Path) -> None:
    assert [(c.unit, c.units) for c in (compared(runs, f"a{n}", f"b{n}") for n in (1, 3, 12))] == [
        ("unknown", LINES), ("unknown", LINES), ("documents", 12)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "units"), [("a3", "b12", LINES), ("a12", "b3", LINES), ("a12", "b1", 12), ("a1", "b12", 12)]
)
def test_the_fewest_documents_count_in_any_order(runs: Path, first: str, second: str, units: int) -> None:
    found, turned = compared(runs, first, second), compared(runs, second, first)
    assert found.units == turned.units == units
    assert found.p_value == turned.p_value
    told = any("the runs have different documents" in note for note in found.notes)
    assert told == ("1" not in (first[1:], second[1:]))


@pytest.mark.parametrize(("document", "unit"), [("unknown", "unknown"), ("segment", "segments"), ("file", "documents")])
def test_what_is_asked_for_counts_most(runs: Path, document: str, unit: str) -> None:
    assert compared(runs, "a12", "b12", document).unit == unit
    shown = ok("compare", runs / "a12", runs / "b12", "--document", document).stdout
    assert ("12 documents" in shown) == (document == "file")


def test_a_corpus_that_says_what_documents_are_counts_too(runs: Path) -> None:
    text = lmgauge.Corpus.from_files(sorted(runs.glob("12-*")), document="unknown")
    (found,) = lmgauge.compare([runs / "a12", runs / "b12"], text=text)
    assert found.unit == "unknown"
    assert lmgauge.evaluate_scores(runs / "a12" / "scores.parquet", text).documents_by == "unknown"
    assert lmgauge.evaluate_scores(runs / "a12" / "scores.parquet").documents_by == "files"


def test_tables_of_others_may_name_documents(runs: Path, tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    for name in "ab":
        rows = [
            {"segment": i, "logprob": float(-generator.exponential()), "token": "w", "document": f"d{i // 10}"}
            for i in range(90)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (found,) = lmgauge.compare([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert (found.unit, found.units) == ("documents", 9)
    assert found.independence == "9 documents (column document) are taken as independent"


def test_groups_that_are_one_document_have_no_interval_and_that_is_said(runs: Path) -> None:
    found = compared(runs, "a12", "b12")
    groups = next(slices for slices in found.slices if slices.name == "group")
    assert all(row.interval is None for row in groups.rows)
    assert "a slice of fewer than 6 documents has no interval and no test" in found.notes
    assert not any("a slice of" in note for note in compared(runs, "a1", "b1").notes)


def test_few_documents_are_about_text_like_these(runs: Path) -> None:
    few, one = compared(runs, "a3", "b3"), compared(runs, "a1", "b1")
    assert (few.differences, few.p_value) == (one.differences, one.p_value)
    assert few.independence.startswith("fewer than 6 documents, so this is about text like these; ")


def test_numbers_by_appearance() -> None:
    assert _by_appearance(np.array([7, 7, 3, 7, 9])).tolist() == [0, 0, 1, 0, 2]
    assert _by_appearance(None).tolist() == []
