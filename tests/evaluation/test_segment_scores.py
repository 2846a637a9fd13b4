"""Histograms of segment scores: every segment in one bin, few bins whatever the scores are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.evaluation.passages import MOST_BINS, SegmentScores

SCORES = st.lists(st.floats(0, 1e6, allow_subnormal=False), min_size=1, max_size=200)


@given(SCORES, st.integers(1, 1000))
def test_every_segment_is_in_a_bin_and_bins_are_few(scores: list[float], size: int) -> None:
    sums = SegmentScores(1)
    bits = np.array(scores) * size
    for part in np.array_split(np.arange(len(scores)), 3):
        sums.add([bits[part]], [np.zeros(len(part), np.int64)], [np.full(len(part), size)])
    found = sums.finish("byte")
    assert found is not None
    assert sum(found.counts[0]) == len(scores)
    assert len(found.edges) == len(found.counts[0]) + 1
    assert 1 <= len(found.counts[0]) <= MOST_BINS
    assert all(low < high for low, high in zip(found.edges, found.edges[1:], strict=False))
    exact = bits / size
    edges = np.array(found.edges)
    for i, count in enumerate(found.counts[0]):
        above = exact >= edges[i] if i else np.ones(len(exact), bool)
        below = exact < edges[i + 1] if i + 2 < len(edges) else np.ones(len(exact), bool)
        assert count == np.count_nonzero(above & below)
    assert found.beyond == np.count_nonzero((exact < edges[0]) | (exact > edges[-1]))


def test_impossible_and_empty_segments_are_in_no_bin() -> None:
    sums = SegmentScores(2)
    bits, zeros, sizes = np.array([8.0, 5.0, 0.0]), np.array([0, 1, 0]), np.array([4, 5, 0])
    sums.add([bits, 2 * bits], [zeros, 0 * zeros], [sizes, sizes])
    found = sums.finish("event")
    assert found is not None
    assert [sum(counts) for counts in found.counts] == [1, 2]
    assert (found.infinite, found.unit) == ((1, 0), "event")


@pytest.mark.parametrize("zeros", [0, 1])
def test_nothing_to_count_is_no_histogram(zeros: int) -> None:
    sums = SegmentScores(1)
    sums.add([np.zeros(zeros)], [np.ones(zeros, np.int64)], [np.ones(zeros, np.int64)])
    assert sums.finish("byte") is None
