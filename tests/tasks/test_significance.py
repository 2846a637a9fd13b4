"""What is independent: documents, segments where they are unknown; no verdict of few, and false alarms as often as said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.tasks.share import Share
from tests.tasks.share import compared as compare

from lmgauge.base.errors import UsageError
from lmgauge.numerics.resampling import document_sums
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.metrics.error_rates import WER
from lmgauge.tasks.significance import IndependentRows


def by_document(metric: Any, *sums: np.ndarray, segments: int = 1000, **options: Any) -> Systems:
    names = [f"s{i}" for i in range(len(sums))]
    told = {"segments": segments, "documents_by": "files", "by_document": True}
    return compare(metric, names, sums, **(told | options))


def counts(documents: int, seed: int, columns: int = 2) -> list[np.ndarray]:
    """Of two systems, hits and words of documents."""
    draw = np.random.default_rng(seed)
    words = draw.integers(20, 80, documents)
    shares = draw.uniform(0.3, 0.9, (2, documents))
    return [np.stack([np.floor(share * words).astype(np.int64), words], axis=1) for share in shares]


def test_fewer_than_six_documents_prove_nothing() -> None:
    """Their segments are the units then, of documents that are not known."""
    bad, good = (np.array([(hits, 50)] * 12, dtype=np.int64) for hits in (1, 40))
    rows = IndependentRows([bad, good], documents_by="names")
    five, six = (rows.with_documents(document_sums([bad, good], np.arange(12) % count)) for count in (5, 6))
    assert (five.by_document, five.unit, six.by_document, six.unit) == (False, "unknown", True, "documents")
    found = compare_systems(Share(), ["a", "b"], five, 1)
    assert (found.unit, found.units) == ("unknown", 12)
    found = compare_systems(Share(), ["a", "b"], six, 1)
    assert (found[1].p_value, found.unit, found.units) == (1 / 32, "documents", 6)
    assert "only 6 documents: treat the interval as rough (30 or more needed)" in found.notes


@pytest.mark.parametrize("test", ["sacrebleu", "sacrebleu-bootstrap"])
def test_the_tests_of_sacrebleu_are_refused_over_documents(test: str) -> None:
    """They know none, and would call the segments independent that documents say are not."""
    first, second = counts(12, seed=3)
    with pytest.raises(UsageError, match="use the test student, or say that documents are unknown"):
        by_document(Share(), first, second, test=test)


def test_identical_systems_are_not_told_apart() -> None:
    first, _ = counts(12, seed=3)
    found = by_document(Share(), first, first.copy())
    assert (found[1].p_value, found[1].significant) == (1.0, False)
    assert any("the same counts as s0 in every document" in note for note in found.notes)


def test_nothing_is_drawn() -> None:
    first, second = counts(40, seed=1)
    found = by_document(Share(), first, second)
    assert (found.test, found.trials, found.resamples, found.seed) == ("student", None, None, None)
    assert found.signature == "nrefs:1|independent:40-documents"
    assert not found.notes
    assert found == by_document(Share(), first, second, seed=99)


def test_what_is_independent_is_said() -> None:
    first, second = counts(40, seed=5)
    told = by_document(Share(), first, second).to_dict()
    assert (told["unit"], told["units"]) == ("documents", 40)
    assert told["independence"] == "40 documents (files) are taken as independent"
    plain = compare(Share(), ["a", "b"], [first, second])
    assert (plain.unit, plain.units, plain[0].interval.unit, plain[0].interval.units) == ("unknown", 40, "unknown", 40)
    assert plain.independence == (
        "40 segments are taken as independent, as neighbors are not similar; if segments form documents, use --document"
    )
    alone = compare(Share(), ["a", "b"], [first, second], documents_by="segments")
    assert alone.independence == "40 segments are taken as independent, as --document segment says"
    theirs = compare(Share(), ["a", "b"], [first, second], test="sacrebleu")
    assert theirs.independence == "40 segments are taken as independent, as sacreBLEU takes them"
    nothing = compare(Share(), ["a", "b"], [first, second], test=None)
    assert (nothing.unit, nothing.units, nothing.independence) == (None, None, "")


def clustered(documents: int, draw: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Two systems that are equally good, each better in documents of its own: counts of segments, and of documents."""
    sizes = draw.integers(5, 40, documents)
    segments = []
    of = np.repeat(np.arange(documents), sizes)
    words = draw.integers(5, 40, len(of))
    for _ in range(2):
        wrong = draw.binomial(words, draw.beta(3, 17, documents)[of])
        none = np.zeros_like(wrong)
        segments.append(np.stack([words - wrong, wrong, none, none], axis=1))
    return segments, document_sums(segments, of)


@pytest.mark.parametrize("documents", [10, 25])
def test_false_alarms_are_as_many_as_said(documents: int) -> None:
    """5 of 100 by documents, 10 at the most where these are unknown; of segments that are called independent 25 or more."""
    draw, runs = np.random.default_rng(documents), 400
    alarms, blind, naive, misses = 0, 0, 0, 0
    for _ in range(runs):
        segments, sums = clustered(documents, draw)
        found = by_document(WER(), *sums)[1]
        alarms += found.significant
        misses += not found.difference_interval.low <= 0 <= found.difference_interval.high
        blind += compare(WER(), ["a", "b"], segments)[1].significant
        naive += compare(WER(), ["a", "b"], segments, documents_by="segments")[1].significant
    assert 0.02 < alarms / runs < 0.08
    assert alarms == misses
    assert 0.02 < blind / runs < 0.1
    assert naive / runs > 0.25
