"""Discounting kernels on columns by hand: the fraction behind each number stands beside it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.reference import kernels as twin

from lmgauge._kernels import _native

UNIT = 2**28  # fixed point of counts and mass
LOWER_UNIT = 2**60
NONE = np.zeros(0, np.uint8)
corpora = st.lists(st.sampled_from([1, 2, 3, 4, 5]), min_size=1, max_size=50).map(lambda v: [1, *v, 3, 3])


class Bigrams:
    """The bigrams of a text as columns: first words, which are the contexts, last words, and counts."""

    def __init__(self, ids: list[int]) -> None:
        self.counts = twin.count(ids, 2)[1]
        self.grams = list(self.counts)
        columns = [*zip(*self.grams, strict=True), [self.counts[gram] for gram in self.grams]]
        self.contexts, self.words, self.column = (np.array(column, np.uint32) for column in columns)

    def rows(self, dropped: NDArray[np.uint8] = NONE) -> Any:
        return self.contexts, self.column, dropped

    def after(self, context: int) -> list[int]:
        return [count for gram, count in self.counts.items() if gram[0] == context]

    def sums(self, taken: Any, dropped: NDArray[np.uint8] = NONE) -> NDArray[np.uint64]:
        """[total, mass] of every context."""
        sums = np.zeros((6, 2), np.uint64)
        _native.sum_contexts(self.rows(dropped), taken, sums)
        return sums

    def probabilities(self) -> NDArray[np.float32]:
        return np.zeros(len(self.grams), np.float32)


def discounts(values: list[float], extra: int = 0) -> tuple[NDArray[np.float64], NDArray[np.uint64], int]:
    mass = np.round(np.array(values) * UNIT).astype(np.uint64)
    return np.array(values), mass, extra


@given(corpora)
def test_context_sums(ids: list[int]) -> None:
    bigrams = Bigrams(ids)
    sums = bigrams.sums(discounts([0.0, 0.5, 0.75, 1.25], extra=1))
    for context in range(6):
        followers = bigrams.after(context)
        assert int(sums[context, 0]) == sum(count + 1 for count in followers) * UNIT
        assert int(sums[context, 1]) == sum([0, 0.5, 0.75, 1.25][min(count, 3)] for count in followers) * UNIT


@given(corpora)
def test_what_is_dropped_goes_to_the_mass(ids: list[int]) -> None:
    bigrams = Bigrams(ids)
    sums = bigrams.sums(discounts([0.0, 0.5]), (bigrams.column == 1).astype(np.uint8))
    for context in range(6):
        followers = bigrams.after(context)
        assert int(sums[context, 0]) == sum(followers) * UNIT
        assert int(sums[context, 1]) == sum(1 if count == 1 else 0.5 for count in followers) * UNIT


@given(corpora, st.sampled_from([0.25, 0.5, 1.0]), st.booleans())
def test_interpolated(ids: list[int], discount: float, by_suffix: bool) -> None:
    bigrams = Bigrams(ids)
    taken, made = discounts([0.0, discount]), bigrams.probabilities()
    lower = np.array([0, 0, 0.5, 0.25, 0.125, 0.125], np.float32)
    of_rows = (bigrams.words, lower) if by_suffix else (np.zeros(0, np.uint32), lower[bigrams.words])
    _native.estimate_interpolated(bigrams.rows(), bigrams.sums(taken), taken, of_rows, made)
    for (context, word), p in zip(bigrams.grams, made.tolist(), strict=True):
        followers = bigrams.after(context)
        total, mass = sum(followers), Fraction(discount) * len(followers)
        exact = (bigrams.counts[context, word] - Fraction(discount) + mass * Fraction(float(lower[word]))) / total
        assert p == np.float32(float(exact))


@given(corpora, st.booleans())
def test_backing_off_sums_to_one(ids: list[int], takes: bool) -> None:
    bigrams = Bigrams(ids)
    taken, made = discounts([0.0, 0.5 if takes else 0.0]), bigrams.probabilities()
    sums = bigrams.sums(taken)
    lower = np.array([0.0625, 0, 0.4375, 0.25, 0.125, 0.125], np.float32)  # five words can come; <s> cannot
    lower_sums, types = np.zeros(6, np.uint64), np.zeros(6, np.uint32)
    _native.sum_lower(bigrams.rows(), (bigrams.words, lower), lower_sums, types)
    for context in range(6):
        words = [word for seen, word in bigrams.grams if seen == context]
        assert types[context] == len(words)
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
    _native.estimate_discounted(bigrams.rows(), sums, taken, made, kept_sums)
    for context in range(6):
        if not sums[context, 0]:
            continue
        seen = [p for (c, _), p in zip(bigrams.grams, made.tolist(), strict=True) if c == context]
        left = float(sums[context, 1]) / float(sums[context, 0])
        assert sum(seen) + left == pytest.approx(1, abs=1e-6)
        assert int(kept_sums[context]) == sum(map(Fraction, seen)) * LOWER_UNIT


@given(corpora, st.sampled_from([0.0, 0.5, 1.0]))
def test_additive(ids: list[int], added: float) -> None:
    bigrams = Bigrams(ids)
    made = bigrams.probabilities()
    _native.estimate_additive(bigrams.rows(), bigrams.sums(discounts([0.0])), added, 5.0, made)
    for (context, word), p in zip(bigrams.grams, made.tolist(), strict=True):
        assert p == np.float32((bigrams.counts[context, word] + added) / (sum(bigrams.after(context)) + added * 5))
