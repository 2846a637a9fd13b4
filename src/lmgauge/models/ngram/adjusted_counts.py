"""Stage 2, adjusted counts: what the smoothing works with, in place of the occurrences.

Input: the counted n-grams of each partition, and the requests that longer n-grams have for them (`counting`).
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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.models.ngram.counting import Counted, Counts
from lmgauge.models.ngram.links import Links, add_up
from lmgauge.text.vocabulary import BOS
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored

# Counts above this one are treated alike; Good-Turing looks at those of 8, modified Kneser-Ney at those of 4.
HISTOGRAM = 10


@dataclass(frozen=True)
class Adjusted:
    """What comes of adjusting the counts of a partition."""

    orders: dict[int, tuple[Stored, Stored]]  # uint32, the counts; uint8, 1 where a cut-off drops an n-gram, or empty
    histogram: Stored
    entries: Stored
    preceding: Stored


@dataclass(frozen=True)
class AdjustedCounts:
    """Counts as the smoothing uses them."""

    # `<s> a b a b` as bigrams: occurrences a 2, b 2 -> a is preceded by `<s>` and b, b by a alone -> adjusted [2, 1].

    unigrams: NDArray[np.int64]  # int64 [vocabulary]
    partitions: list[Adjusted]
    # per order from 1, int64 [`HISTOGRAM` + 1]: n_c, the n-grams with adjusted count c; the last is for all higher counts
    counts_of_counts: list[NDArray[np.int64]]
    entries: list[int]  # n-grams of order 2, 3, ..., without those that cut-offs drop


def adjust_counts(
    engine: Engine,
    links: Links,
    counted: list[Counted],
    unigrams: NDArray[np.int64],
    *,
    continuation: bool = False,
    cutoffs: Sequence[int] = (),
) -> AdjustedCounts:
    """Return counts as a smoothing uses them, and mark what cut-offs drop; the engine forgets the others."""
    # unigrams: int64 [vocabulary], occurrences of each word; none for `<s>`; continuation: lower orders count the tokens
    # that precede an n-gram, in place of its occurrences (Kneser-Ney); cutoffs: n-grams of order i that occur at most
    # cutoffs[i - 1] times are marked; the last value is for higher orders.
    shape = links.shape
    takes = [
        (shape.vocabulary, continuation, cutoffs, own.orders, {k: links.of(k, p) for k in shape.orders})
        for p, own in enumerate(counted)
    ]
    makes = Adjusted(dict.fromkeys(shape.orders, (NEW, NEW)), NEW, NEW, NEW)
    partitions = engine.run("adjust", _adjust, takes, makes, "adjusting counts")
    engine.drop([of_order.counts for own in counted for of_order in own.orders.values()])
    if continuation and partitions:
        # A word counts the distinct words before it, that is the bigrams that end in it.
        preceding = add_up(engine, (own.preceding for own in partitions))
        unigrams = np.where(preceding > 0, preceding, unigrams)
        unigrams[BOS] = 0
    histograms = add_up(engine, (own.histogram for own in partitions))
    entries = add_up(engine, (own.entries for own in partitions)).tolist()
    return AdjustedCounts(unigrams, partitions, [_histogram(unigrams), *histograms], entries)


def _adjust(
    taken: tuple[int, bool, Sequence[int], dict[int, Counts], dict[int, list[Stored]]], read: Read
) -> Iterator[Array]:
    # A cut-off looks at the occurrences in the text, whatever the smoothing then works with.
    vocabulary, continuation, cutoffs, orders, requests = taken
    histogram = np.zeros((len(requests), HISTOGRAM + 1), np.int64)
    entries = np.zeros(len(requests), np.int64)
    for k, asked in requests.items():
        counts = read(orders[k].counts)
        cutoff = cutoff_of(cutoffs, k)
        dropped = (counts <= cutoff).astype(np.uint8) if cutoff else np.zeros(0, np.uint8)
        if continuation and asked:
            preceding = np.zeros(len(counts), np.uint32)
            for stored in asked:
                # Each request for a row is another token that precedes it: requests [1, 2, 1] -> preceding [0, 2, 1].
                _native.count_rows(read(stored), preceding)
            counts = np.where(preceding > 0, preceding, counts)
        histogram[k - 2] = _histogram(counts)
        entries[k - 2] = len(counts) - np.count_nonzero(dropped)
        yield counts
        yield dropped
    yield histogram
    yield entries
    # A partition has its bigrams once each, so counting their last words counts what precedes each word.
    yield np.bincount(read(orders[2].words), minlength=vocabulary)


def _histogram(counts: Array) -> NDArray[np.int64]:
    # counts [5, 1, 1, 20] -> [0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 1]: two n-grams seen once, and 10 stands for all above.
    return np.bincount(np.minimum(counts, HISTOGRAM), minlength=HISTOGRAM + 1).astype(np.int64)


def cutoff_of(cutoffs: Sequence[int], order: int) -> int:
    """Return how often an n-gram of an order occurs at most if it is dropped."""
    return cutoffs[min(order, len(cutoffs)) - 1] if cutoffs else 0
