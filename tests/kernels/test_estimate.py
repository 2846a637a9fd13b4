"""Discounting kernels on tables by hand: the fraction behind each number stands beside it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.reference import kernels as twin

from lmgauge._kernels import _native
from lmgauge.models.ngram.counting import NgramCounts, count_ngrams

UNIT = 2**28  # fixed point of counts and mass
LOWER_UNIT = 2**60
NONE = np.zeros(0, np.uint8)
corpora = st.lists(st.sampled_from([1, 2, 3, 4, 5]), min_size=1, max_size=50).map(
    lambda v: np.array([1, *v, 3, 3], np.uint32)
)


def discounts(values: list[float], extra: int = 0) -> tuple[NDArray[np.float64], NDArray[np.uint64], int]:
    mass = np.round(np.array(values) * UNIT).astype(np.uint64)
    return np.array(values), mass, extra


def sums_of(counts: NgramCounts, taken: Any, windows: list[int], dropped: NDArray[np.uint8] = NONE) -> NDArray[np.uint64]:
    """[total, mass] of every context of the bigrams, the contexts looked at window by window."""
    table = counts.tables[0]
    parts = []
    bounds = [0, *windows, len(counts.unigrams)]
    for first, last in pairwise(bounds):
        part = np.zeros((last - first, 2), np.uint64)
        for begin in range(0, len(table), 7):
            _native.sum_contexts(table, begin, min(begin + 7, len(table)), dropped, taken, first, part)
        parts.append(part)
    return np.concatenate(parts)


@given(corpora, st.sampled_from([[], [2], [1, 3, 5]]))
def test_context_sums(ids: NDArray[np.uint32], windows: list[int]) -> None:
    counts = count_ngrams(ids, 2, 6, threads=1)
    taken = discounts([0.0, 0.5, 0.75, 1.25], extra=1)
    sums = sums_of(counts, taken, windows)
    bigrams = twin.count(ids.tolist(), 2)[1]
    for context in range(6):
        followers = [count for gram, count in bigrams.items() if gram[0] == context]
        assert int(sums[context, 0]) == sum(count + 1 for count in followers) * UNIT
        assert int(sums[context, 1]) == sum([0, 0.5, 0.75, 1.25][min(count, 3)] for count in followers) * UNIT


@given(corpora)
def test_what_is_dropped_goes_to_the_mass(ids: NDArray[np.uint32]) -> None:
    counts = count_ngrams(ids, 2, 6, threads=1)
    table = counts.tables[0]
    dropped = ((table[:, 1] & np.uint64(0xFFFFFFFF)) == 1).astype(np.uint8)
    sums = sums_of(counts, discounts([0.0, 0.5]), [], dropped)
    bigrams = twin.count(ids.tolist(), 2)[1]
    for context in range(6):
        followers = [count for gram, count in bigrams.items() if gram[0] == context]
        assert int(sums[context, 0]) == sum(followers) * UNIT
        assert int(sums[context, 1]) == sum(1 if count == 1 else 0.5 for count in followers) * UNIT


def probabilities(counts: NgramCounts) -> dict[twin.Gram, float]:
    (table,) = twin.decode_tables(counts.tables)
    bits = {gram: np.array(first, np.uint32).view(np.float32) for gram, (first, _) in table.items()}
    return {gram: float(value) for gram, value in bits.items()}


def over_table(counts: NgramCounts, kernel: Callable[..., None], *arguments: Any) -> None:
    for begin in range(0, len(counts.tables[0]), 5):
        kernel(counts.tables[0], begin, min(begin + 5, len(counts.tables[0])), *arguments)


@given(corpora, st.sampled_from([0.25, 0.5, 1.0]))
def test_interpolated(ids: NDArray[np.uint32], discount: float) -> None:
    counts = count_ngrams(ids, 2, 6, threads=1)
    taken = discounts([0.0, discount])
    sums = sums_of(counts, taken, [])
    lower = np.array([0, 0, 0.5, 0.25, 0.125, 0.125], np.float32)
    over_table(counts, _native.estimate_interpolated, 0, sums, taken, lower, [])
    bigrams = twin.count(ids.tolist(), 2)[1]
    for (context, word), p in probabilities(counts).items():
        followers = [count for gram, count in bigrams.items() if gram[0] == context]
        total, mass = sum(followers), Fraction(discount) * len(followers)
        exact = (bigrams[context, word] - Fraction(discount) + mass * Fraction(float(lower[word]))) / total
        assert p == np.float32(float(exact))


@given(corpora, st.booleans())
def test_backing_off_sums_to_one(ids: NDArray[np.uint32], takes: bool) -> None:
    counts = count_ngrams(ids, 2, 6, threads=1)
    taken = discounts([0.0, 0.5 if takes else 0.0])
    sums = sums_of(counts, taken, [])
    lower = np.array([0.0625, 0, 0.4375, 0.25, 0.125, 0.125], np.float32)  # five words can come; <s> cannot
    lower_sums, types, lower_contexts = np.zeros(6, np.uint64), np.zeros(6, np.uint32), np.full(6, 7, np.uint32)
    over_table(counts, _native.sum_lower, NONE, lower, [], 0, lower_sums, types, lower_contexts)
    bigrams = twin.count(ids.tolist(), 2)[1]
    for context in range(6):
        words = [word for seen, word in bigrams if seen == context]
        assert types[context] == len(words)
        assert lower_contexts[context] == (0 if words else 7)  # below the bigrams there is one context, the empty one
        assert int(lower_sums[context]) == sum(Fraction(float(lower[word])) for word in words) * LOWER_UNIT
    before = sums.copy()
    _native.balance_mass(sums, types, 5)
    for context in range(6):
        if not before[context, 0]:
            assert not sums[context].any()
        elif types[context] == 5:
            assert sums[context].tolist() == [before[context, 0] - before[context, 1], 0]  # nobody to give it to
        elif not before[context, 1]:
            assert sums[context].tolist() == [before[context, 0] + np.uint64(UNIT), UNIT]  # one count more
        else:
            assert sums[context].tolist() == before[context].tolist()
    kept_sums = np.zeros(6, np.uint64)
    over_table(counts, _native.estimate_discounted, NONE, 0, sums, taken, kept_sums)
    for context in range(6):
        if not sums[context, 0]:
            continue
        seen = {word: p for (c, word), p in probabilities(counts).items() if c == context}
        left = float(sums[context, 1]) / float(sums[context, 0])
        assert sum(seen.values()) + left == pytest.approx(1, abs=1e-6)
        assert int(kept_sums[context]) == sum(Fraction(float(p)) for p in seen.values()) * LOWER_UNIT


@given(corpora, st.sampled_from([0.0, 0.5, 1.0]))
def test_additive(ids: NDArray[np.uint32], added: float) -> None:
    counts = count_ngrams(ids, 2, 6, threads=1)
    sums = sums_of(counts, discounts([0.0]), [])
    over_table(counts, _native.estimate_additive, 0, sums, added, 5.0)
    bigrams = twin.count(ids.tolist(), 2)[1]
    for (context, word), p in probabilities(counts).items():
        total = sum(count for gram, count in bigrams.items() if gram[0] == context)
        assert p == np.float32((bigrams[context, word] + added) / (total + added * 5))


def test_weights_of_contexts() -> None:
    """The contexts are entries of a table: three sums go to slots 4, 5 and 6 of eight; untouched where nothing was seen."""
    table = np.zeros((8, 2), np.uint64)
    table[:, 1] = np.uint64(0x3F800000) << np.uint64(32)  # weight 1
    sums = np.array([[4 * UNIT, UNIT], [0, 0], [2 * UNIT, UNIT]], np.uint64)
    weights = table.view(np.float32).reshape(-1, 4)[:, 3]
    _native.store_backoffs(table, 4, sums)
    assert weights.tolist() == [1, 1, 1, 1, 0.25, 1, 0.5, 1]
    _native.store_unseen(table, 4, sums, 0.5, 8.0)
    assert weights.tolist() == pytest.approx([1, 1, 1, 1, 0.5 / 8, 1, 0.5 / 6, 1], rel=1e-7)
    with pytest.raises(ValueError):
        _native.store_backoffs(table, 6, sums)
