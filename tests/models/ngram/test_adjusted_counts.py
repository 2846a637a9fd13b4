"""Adjusted counts and cut-offs, over any partitions of the n-grams, against dictionaries of tuples."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.models.ngram.test_counting import counted, ngrams
from tests.reference import kernels as twin

from lmgauge.models.ngram.adjusted_counts import HISTOGRAM, adjust_counts

tokens = st.lists(st.sampled_from([1, 2, 3, 4, 5, 6]), max_size=60)


@given(
    tokens, st.integers(2, 4), st.booleans(), st.sampled_from([(), (0, 1), (0, 0, 1), (0, 1, 2), (0, 9)]), st.integers(1, 3)
)
def test_adjusted_counts_and_cut_offs(
    values: list[int], order: int, continuation: bool, cutoffs: tuple[int, ...], partitions: int
) -> None:
    ids = [1, *values]
    engine, counts, links = counted(ids, order, partitions, chunk=9)
    occurrences = np.bincount(ids, minlength=10)
    occurrences[1] = 0
    made = adjust_counts(engine, links, counts, occurrences, continuation=continuation, cutoffs=cutoffs)
    raw = twin.count(ids, order)
    adjusted = [Counter(grams) for grams in raw]
    if continuation:
        for n in range(order - 1):
            adjusted[n].update({gram: count - raw[n][gram] for gram, count in twin.continuations(raw[n + 1]).items()})
    assert made.unigrams.tolist() == [adjusted[0][(i,)] for i in range(10)]
    for n, histogram in enumerate(made.counts_of_counts):
        expected = Counter(min(count, HISTOGRAM) for count in adjusted[n].values())
        assert histogram.tolist()[1:] == [expected[c] for c in range(1, HISTOGRAM + 1)]
    for k in range(2, order + 1):
        stays = {g for g, c in raw[k - 1].items() if not cutoffs or c > cutoffs[min(k, len(cutoffs)) - 1]}
        values_of, left = dict[tuple[int, ...], int](), set[tuple[int, ...]]()
        for own, of_partition in zip(counts, made.partitions, strict=True):
            grams, (stored, marks) = ngrams(engine, own)[k], of_partition.orders[k]
            values_of |= dict(zip(grams, engine.read(stored).tolist(), strict=True))
            dropped = engine.read(marks).tolist() or [0] * len(grams)
            left |= {gram for gram, drop in zip(grams, dropped, strict=True) if not drop}
        assert values_of == adjusted[k - 1]
        assert left == stays
        assert made.entries[k - 2] == len(stays)
