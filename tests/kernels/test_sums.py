"""Exact sums: fractions as the twin; no order, grouping or chunking changes a bit."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import kernels as twin

from lmgauge._kernels import _native
from lmgauge.scores import KINDS

CUT = Fraction(1, 2**68)  # what a term may lose
logprobs = st.one_of(
    st.floats(-60, 0),
    st.floats(-1e9, 0),
    st.floats(-1e-9, 0),
    st.sampled_from([0.0, -0.0, -math.inf, -5e-324, -1e-30, -(2.0**-16)]),
)
rows = st.lists(st.tuples(logprobs, st.integers(0, 3)), max_size=40)


def sums(
    values: list[tuple[float, int]], segments: list[int]
) -> tuple[list[tuple[int, int, int]], list[int], list[int], Any]:
    """Per kind (sum in units of 2^-80, events, zeros); per segment sum and zeros; first bad row."""
    count = len(segments)
    high, low, zeros = np.zeros(count, np.int64), np.zeros(count, np.uint64), np.zeros(count, np.int64)
    kinds, _, bad = _native.sum_events(
        np.array([v for v, _ in values], np.float64), np.array([k for _, k in values], np.uint8), np.zeros(0, np.uint8),
        np.array(segments, np.int64), high, low, zeros,
    )  # fmt: skip
    whole = [((int(h) << 64) + int(lo), events, z) for h, lo, events, z in kinds]
    parts = [(h << 64) + lo for h, lo in zip(high.tolist(), low.tolist(), strict=True)]
    return whole, parts, zeros.tolist(), bad


@given(rows, st.data())
def test_sums_are_exact(values: list[tuple[float, int]], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=5)))
    bounds = [0, *cuts, len(values)]
    segments = [b - a for a, b in pairwise(bounds)]
    whole, parts, zeros, bad = sums(values, segments)
    assert bad == -1
    for kind in range(len(KINDS)):
        mine = [value for value, k in values if k == kind]
        assert abs(Fraction(whole[kind][0], 2**80) - twin.exact_sum(mine)) <= CUT * len(mine)
        assert whole[kind][1:] == (len(mine), mine.count(-math.inf))
    for i, (a, b) in enumerate(pairwise(bounds)):
        mine = [value for value, _ in values[a:b]]
        assert abs(Fraction(parts[i], 2**80) - twin.exact_sum(mine)) <= CUT * len(mine)
        assert zeros[i] == mine.count(-math.inf)
    assert sum(parts) == sum(total for total, _, _ in whole)


@given(rows, st.randoms(use_true_random=False), st.integers(1, 7))
def test_order_and_chunks_change_nothing(values: list[tuple[float, int]], random: Any, size: int) -> None:
    whole, _, _, _ = sums(values, [len(values)])
    shuffled = list(values)
    random.shuffle(shuffled)
    assert sums(shuffled, [len(values)])[0] == whole
    totals = [[0, 0, 0] for _ in range(len(KINDS))]
    for begin in range(0, len(shuffled), size):
        chunk = shuffled[begin : begin + size]
        for kind, parts in enumerate(sums(chunk, [1] * len(chunk))[0]):
            totals[kind] = [a + b for a, b in zip(totals[kind], parts, strict=True)]
    assert [tuple(t) for t in totals] == whole


def test_as_good_as_fsum() -> None:
    values = -np.random.default_rng(1).exponential(5, 200_000)
    whole, _, _, _ = sums([(v, 0) for v in values.tolist()], [200_000])
    assert whole[0][0] / 2**80 == pytest.approx(math.fsum(values), rel=2**-52)
    tenths, _, _, _ = sums([(-0.1, 0)] * 1000, [1000])
    assert tenths[0][0] / 2**80 == math.fsum([-0.1] * 1000)


@pytest.mark.parametrize("value", [math.nan, math.inf, 5e-324, 0.1, -1e300, -(2.0**40)])
def test_what_is_no_log_probability_is_told(value: float) -> None:
    _, _, _, bad = sums([(-1.0, 0), (-2.0, 2), (value, 1), (math.nan, 0)], [2, 2])
    assert bad == 2


def test_rows_by_context() -> None:
    one = np.zeros(1, np.int64)
    context = np.array([1, 3, 3, 255], np.uint8)
    _, contexts, _ = _native.sum_events(
        np.full(4, -1.0),
        np.zeros(4, np.uint8),
        context,
        np.array([4], np.int64),
        one.copy(),
        np.zeros(1, np.uint64),
        one.copy(),
    )
    assert contexts.tolist() == np.bincount(context, minlength=256).tolist()


def test_shapes_that_do_not_fit_are_refused() -> None:
    one, three = np.zeros(1, np.int64), np.full(3, -1.0)
    for kind, segments, context in (
        (np.zeros(2, np.uint8), [3], 0), (np.zeros(3, np.uint8), [2], 0), (np.zeros(3, np.uint8), [-3, 6], 0),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            _native.sum_events(
                three,
                kind,
                np.zeros(context, np.uint8),
                np.array(segments, np.int64),
                one.copy(),
                np.zeros(1, np.uint64),
                one.copy(),
            )
