"""Stage 2, adjusted counts: what the smoothing works with, in place of the occurrences.

Input: `NgramCounts`. Its tables are taken over and changed in place (copies would double the
memory); it is empty afterwards.
Output: `AdjustedCounts`, with the counts of counts that the discounts are estimated from.

Kneser-Ney smoothing replaces the count of an n-gram below the highest order by the number of different tokens that precede
it, N1+(. w) (Kneser & Ney 1995; Chen & Goodman 1998, section 2.7). In `San Francisco` said a hundred times, `Francisco` has
the count 100 and the adjusted count 1. For the text `<s> a b a b`, order 2:

    unigram      a  b
    count        2  2
    preceded by  <s>, b    a
    adjusted     2  1

An n-gram that nothing precedes (it begins with `<s>`) keeps its count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.models.ngram.counting import NgramCounts
from lmgauge.models.ngram.hash_table import Table, over_slots
from lmgauge.text.vocabulary import BOS
from lmgauge.threads import run_ranges

# Counts above this one are treated alike; Good-Turing looks at those of 8, modified Kneser-Ney at those of 4.
HISTOGRAM = 10


@dataclass
class AdjustedCounts:
    """Counts as the smoothing uses them; the tables become those of the model, in place."""

    # `<s> a b a b` as bigrams: occurrences a 2, b 2 -> a is preceded by `<s>` and b, b by a alone -> adjusted [2, 1].

    unigrams: NDArray[np.int64]  # int64 [vocabulary], adjusted counts
    tables: list[Table]  # one per order from 2, uint64 [slots, 2]: key, and adjusted count with the slot of the suffix
    types: list[int]  # distinct n-grams of each order from 1
    # per table uint8 [slots], 1 where a cut-off drops the entry; empty where the order has no cut-off
    dropped: list[NDArray[np.uint8]]
    # per order from 1, int64 [`HISTOGRAM` + 1]: n_c, the n-grams with adjusted count c; the last element is for all higher
    # counts
    counts_of_counts: list[NDArray[np.int64]]

    @property
    def order(self) -> int:
        """Return the length of the longest n-grams."""
        return len(self.tables) + 1


def adjust_counts(
    counts: NgramCounts, *, continuation: bool = False, cutoffs: Sequence[int] = (), threads: int = 1
) -> AdjustedCounts:
    """Return counts as a smoothing uses them, and mark what cut-offs drop."""
    # The tables of `counts` are taken over.
    # A cut-off looks at the occurrences in the text, whatever the smoothing then works with.
    # continuation: lower orders count the tokens that precede an n-gram, in place of its occurrences (Kneser-Ney); cutoffs:
    # n-grams of order i that occur at most cutoffs[i - 1] times are marked; the last value is for higher orders; threads:
    # how many threads share the work; the result is the same for any number.
    tables, counts.tables = counts.tables, []
    unigrams = counts.unigrams
    if continuation and tables:
        preceding = _preceding_tokens(tables[0], len(unigrams), threads)
        unigrams = np.where(preceding > 0, preceding, unigrams).astype(np.int64)
        unigrams[BOS] = 0
    clipped = np.minimum(unigrams, HISTOGRAM)
    counts_of_counts = [np.bincount(clipped, minlength=HISTOGRAM + 1).astype(np.int64)]
    dropped = []
    for k, table in enumerate(tables, 2):
        preceding = np.zeros(0, np.uint32)  # empty: counts stay
        if continuation and k <= len(tables):
            preceding = _preceding_tokens(tables[k - 1], len(table), threads)
        cutoff = cutoff_of(cutoffs, k)
        marks = np.zeros(len(table) if cutoff else 0, np.uint8)
        counts_of_counts.append(_adjust_table(table, preceding, cutoff, marks, threads))
        dropped.append(marks)
    return AdjustedCounts(unigrams, tables, counts.types, dropped, counts_of_counts)


def cutoff_of(cutoffs: Sequence[int], order: int) -> int:
    """Return how often an n-gram of an order occurs at most if it is dropped."""
    return cutoffs[min(order, len(cutoffs)) - 1] if cutoffs else 0


def _adjust_table(
    table: Table, preceding: NDArray[np.uint32], cutoff: int, marks: NDArray[np.uint8], threads: int
) -> NDArray[np.int64]:
    # Adjust the counts of one order in place, fill `marks`, and return the counts of counts.

    def _adjust(begin: int, end: int) -> NDArray[np.uint64]:
        histogram: NDArray[np.uint64] = _native.adjust_counts(table, begin, end, preceding, cutoff, marks, HISTOGRAM)
        return histogram

    total: NDArray[np.int64] = np.sum(run_ranges(_adjust, len(table), threads), axis=0).astype(np.int64)
    return total


def _preceding_tokens(table: Table, size: int, threads: int) -> NDArray[np.uint32]:
    # N1+(. w) of each n-gram of the order below: one for every entry whose suffix it is, uint32 [size].
    counts = np.zeros(size, np.uint32)
    over_slots(table, threads, _native.add_continuations, counts)
    return counts
