"""Pruning in partitions, n-gram by n-gram beside pruning in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.test_model_laws import texts
from tests.models.ngram.partitioned.test_estimating import estimated, of_partitions, of_tables

import lmgauge
from lmgauge import Corpus
from lmgauge.models.ngram.partitioned import pruning
from lmgauge.models.ngram.partitioned.pruning import prune_partitions
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
    """Prune in memory and in partitions; return how many blanks there are."""
    model = lmgauge.train(kind, Corpus.from_strings(lines), **options, prune=threshold)  # type: ignore[arg-type]
    settings = NgramTrainingSettings(kind, **options)  # type: ignore[arg-type]
    engine, shape, whole = estimated(settings, partitions, lines, chunk)
    pruned = prune_partitions(engine, shape, whole.unigrams, threshold)
    assert np.array_equal(pruned.unigrams, model.tables.unigrams)
    expected = of_tables(model)
    assert of_partitions(engine, shape) == expected
    assert pruned.entries == [len(values) for values in expected]
    assert pruned.note == model.record.notes[-1]
    return sum(np.signbit(probability) for values in expected for probability, _ in values.values())


@given(backing_off(), texts(), st.sampled_from(THRESHOLDS), st.integers(1, 4), st.integers(1, 40))
def test_what_stays_is_what_stays_in_memory(
    smoothing: tuple[str, dict[str, Any]], lines: list[str], threshold: float, partitions: int, chunk: int
) -> None:
    kind, options = smoothing
    assert_same(kind, options, lines, threshold, partitions, chunk)


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("at_once", [3, 1 << 18])
def test_blanks_begin_and_end_what_stays(monkeypatch: pytest.MonkeyPatch, partitions: int, at_once: int) -> None:
    monkeypatch.setattr(pruning, "_AT_ONCE", at_once)
    lines = ["the cat sat on the mat", "the dog sat", "a cat sat on a mat and the dog ran", "the dog ran", "on the mat"] * 3
    assert assert_same("modified-kneser-ney", {"order": 5}, lines, 0.02, partitions, 11) > 0
