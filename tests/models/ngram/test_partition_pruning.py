"""Pruning in partitions, n-gram by n-gram beside pruning in memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.test_model_laws import texts
from tests.models.ngram.test_interpolation import estimated, of_partitions, of_tables

import lmgauge
from lmgauge import Corpus
from lmgauge.models.ngram import partition_pruning
from lmgauge.models.ngram.partition_pruning import prune_partitions
from lmgauge.models.ngram.settings import NgramTrainingSettings

THRESHOLDS = [1e-9, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 1.0]


@st.composite
def backing_off(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A smoothing that has shorter n-grams to back off to."""
    kind = draw(st.sampled_from(["modified-kneser-ney", "kneser-ney", "witten-bell", "good-turing", "absolute-discounting"]))
    options = {
        "order": draw(st.integers(2, 5)),
        "interpolate": draw(st.booleans()) if kind != "good-turing" else False,
        "cutoffs": draw(st.sampled_from([(), (), (0, 0, 1), (0, 1)])),
        "context": draw(st.sampled_from(["sentence", "stream"])),
    }
    return kind, options


def assert_same(kind: str, options: dict[str, Any], lines: list[str], threshold: float, partitions: int, chunk: int) -> int:
    """Prune in memory and in partitions; return how many blanks begin with blanks."""
    model = lmgauge.train(kind, Corpus.from_strings(lines), **options, prune=threshold)  # type: ignore[arg-type]
    settings = NgramTrainingSettings(kind, **options)  # type: ignore[arg-type]
    engine, links, whole = estimated(settings, partitions, lines, chunk)
    pruned = prune_partitions(engine, links, whole.grams, whole.unigrams, threshold)
    assert np.array_equal(pruned.unigrams, model.tables.unigrams)
    expected = of_tables(model)
    assert of_partitions(engine, pruned.grams) == expected
    assert pruned.entries == [len(values) for values in expected]
    assert pruned.note == model.record.notes[-1]
    blanks = [{ngram for ngram, (probability, _) in values.items() if np.signbit(probability)} for values in expected]
    return sum(ngram[:-1] in shorter for shorter, longer in pairwise(blanks) for ngram in longer)


@given(backing_off(), texts(), st.sampled_from(THRESHOLDS), st.integers(1, 4), st.integers(1, 40))
def test_what_stays_is_what_stays_in_memory(
    smoothing: tuple[str, dict[str, Any]], lines: list[str], threshold: float, partitions: int, chunk: int
) -> None:
    kind, options = smoothing
    assert_same(kind, options, lines, threshold, partitions, chunk)


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("at_once", [3, 1 << 15])
def test_blanks_begin_and_end_what_stays(monkeypatch: pytest.MonkeyPatch, partitions: int, at_once: int) -> None:
    monkeypatch.setattr(partition_pruning, "_AT_ONCE", at_once)
    words = [f"w{i}" for i in range(8)]
    random = np.random.default_rng(5)
    lines = [" ".join(random.choice(words, 8)) for _ in range(60)] + ["w0 w1 w2 w0 w2 w1 w1"] * 9
    assert assert_same("modified-kneser-ney", {"order": 5}, lines, 1e-3, partitions, 101) > 9


def test_contexts_that_leave_nothing_keep_their_weights() -> None:
    options = {"order": 3, "interpolate": False, "vocabulary": "closed"}
    lines = ["a a b", "b b a", "a", "b", "a b b a a"]
    whole = lmgauge.train("absolute-discounting", Corpus.from_strings(lines), **options)  # type: ignore[arg-type]
    assert 0.0 in whole.tables.unigrams[whole.vocabulary.ids(["a", "b"]), 1]
    assert_same("absolute-discounting", options, lines, 0.01, 2, 5)
