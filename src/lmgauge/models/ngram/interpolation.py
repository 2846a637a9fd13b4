"""Stage 4, from adjusted counts and discounts to probabilities and back-off weights, order by order from the unigrams.

Input: `AdjustedCounts`, whose tables are taken over: the two values of each entry, count and suffix, are overwritten by
probability and back-off weight. It is empty afterwards.
Output: `NgramTables`, packed, without what a cut-off dropped: until the end it is needed, as its counts go to the back-off
weights.

With h' the context h without its first word, c the adjusted counts, D(c) the discounts, and c(h) = sum_w c(h, w):

    interpolated   p(w|h) = max(c(h,w) - D(c(h,w)), 0) / c(h) + gamma(h) p(w|h')      Chen & Goodman 1998, eq. 18, for D(c)
                   gamma(h) = sum_w D(c(h,w)) / c(h)                                  the same, page 20
    backing off    p(w|h) = (c(h,w) - D(c(h,w))) / c(h)  if (h, w) was seen           Katz 1987
                   p(w|h) = alpha(h) p(w|h')             otherwise, alpha(h) making the sum one
    additive       p(w|h) = (c(h,w) + k) / (c(h) + k V)                               Lidstone 1920; k = 1: Laplace

The recursion ends with 1 / V, V being the number of tokens that can be predicted. Witten-Bell (Witten & Bell 1991) is the
first with D = 0, where each distinct word after h adds one to c(h), and gives this one away.

An example: after `the` came `cat` three times and `dog` once, D = 0.75, and p(cat) = p(dog) = 0.1, p(sat) = 0.2.

    c(the) = 4, gamma(the) = (0.75 + 0.75) / 4 = 0.375
    p(cat|the) = 2.25 / 4 + 0.375 * 0.1 = 0.6
    p(dog|the) = 0.25 / 4 + 0.375 * 0.1 = 0.1
    p(sat|the) = 0        + 0.375 * 0.2 = 0.075    (not stored: gamma(the) p(sat))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.models.ngram.adjusted_counts import AdjustedCounts
from lmgauge.models.ngram.counting import NgramCounts
from lmgauge.models.ngram.discounts import MASS_BITS, NO_DISCOUNTS, Discounts, KernelDiscounts
from lmgauge.models.ngram.hash_table import Table, columns, over_slots
from lmgauge.models.ngram.packed_tables import pack_tables
from lmgauge.models.ngram.tables import NgramTables

_LOWER_UNIT = 2.0**-60  # the kernels sum probabilities as integers in this unit
CONTEXTS_AT_A_TIME = 1 << 24


def estimate_with_discounts(
    counts: AdjustedCounts, discounts: Sequence[Discounts], events: NDArray[np.bool_], *, interpolate: bool, threads: int
) -> NgramTables:
    """Turn adjusted counts into probabilities and back-off weights, in the same memory.

    >>> from lmgauge.models.ngram.adjusted_counts import adjust_counts
    >>> from lmgauge.models.ngram.counting import count_ngrams
    >>> ids = np.array([1, 3, 3, 4, 3], np.uint32)  # <s> a a b a
    >>> counts = adjust_counts(count_ngrams(ids, 1, 5, threads=1))
    >>> half, events = Discounts((0.0, 0.5)), np.array([False, False, False, True, True])
    >>> tables = estimate_with_discounts(counts, [half], events, interpolate=True, threads=1)
    >>> tables.unigrams[3:, 0].tolist()  # (3 - 0.5) / 4 + 1 / 4 * 1 / 2, and (1 - 0.5) / 4 + the same
    [0.75, 0.25]
    """
    # events: bool [vocabulary], the tokens that can be predicted; threads: how many threads share the work; the result is
    # the same for any number.
    unigrams = np.ones((len(counts.unigrams), 2), np.float32)
    unigrams[:, 0] = unigram_probabilities(counts.unigrams, discounts[0], events, interpolate)
    # As stored: 1 but for the rounding of each to single precision.
    totals = np.array([np.sum(unigrams[:, 0], dtype=np.float64)])

    def _fill(i: int) -> None:
        nonlocal totals
        lower = counts.tables[i - 1] if i else None
        order = _Order(counts.tables[i], counts.dropped[i], discounts[i + 1].for_kernels(), lower, unigrams, threads)
        if interpolate:
            _interpolate(order)
        else:
            totals = _back_off(order, totals, int(np.count_nonzero(events)))

    for i in range(len(counts.tables)):
        _fill(i)  # nothing holds a table longer than that: packing frees one after another
    return NgramTables(unigrams, pack_tables(counts.tables, counts.dropped, counts.types[1:], len(unigrams), threads))


def estimate_additive(counts: NgramCounts, k: float, events: NDArray[np.bool_], *, threads: int) -> NgramTables:
    """Turn counts into p(w|h) = (c(h,w) + k) / (c(h) + k V), in the same memory; k = 0 is maximum likelihood."""
    # There is no back-off. In place of its weight, a context holds the probability of each word that was not seen after it,
    # k / (c(h) + k V).
    # events: bool [vocabulary], the V tokens that can be predicted; threads: how many threads share the work; the result is
    # the same for any number.
    size = float(np.count_nonzero(events))
    unigrams, unseen = additive_unigrams(counts.unigrams, k, events)

    def _fill(i: int) -> None:
        lower = counts.tables[i - 1] if i else None
        order = _Order(counts.tables[i], np.zeros(0, np.uint8), NO_DISCOUNTS, lower, unigrams, threads)
        for first, sums in order.windows():
            order.run(_native.sum_contexts, order.dropped, order.discounts, first, sums)
            order.run(_native.estimate_additive, first, sums, k, size)
            if lower is None:
                used = sums[:, 0] > 0
                total = sums[used, 0] / 2.0**MASS_BITS
                # k = 1, V = 3 and a context seen twice: each unseen word has 1 / (2 + 3) = 0.2.
                unigrams[first : first + len(sums)][used, 1] = k / (total + k * size)
            else:
                _native.store_unseen(lower, first, sums, k, size)

    for i in range(len(counts.tables)):
        _fill(i)
    nothing = [np.zeros(0, np.uint8) for _ in counts.tables]
    tables = pack_tables(counts.tables, nothing, counts.types[1:], len(unigrams), threads)
    return NgramTables(unigrams, tables, full_context=True, unseen=unseen)


@dataclass(frozen=True)
class _Order:
    """One order from 2, and the order below, which is finished and holds the contexts."""

    table: Table  # the n-grams (h, w), uint64 [slots, 2]
    dropped: NDArray[np.uint8]  # uint8 [slots] or empty, 1 where a cut-off drops the entry
    discounts: KernelDiscounts  # D(c) of this order
    contexts: Table | None  # the table of the contexts h, uint64 [contexts, 2]; None for bigrams, whose contexts are words
    unigrams: NDArray[np.float32]  # float32 [vocabulary, 2], probabilities and back-off weights
    threads: int  # how many threads share the work

    @cached_property
    def lower(self) -> tuple[NDArray[np.float32], list[Table]]:
        # Order below as the kernels take it, for p(w|h'): the suffix of an entry is an id or a slot of it.
        return np.ascontiguousarray(self.unigrams[:, 0]), [] if self.contexts is None else [self.contexts]

    @property
    def weights(self) -> NDArray[np.float32]:
        # View of the back-off weights of the contexts, float32 [contexts].
        return self.unigrams[:, 1] if self.contexts is None else columns(self.contexts)[2]

    def run(self, kernel: Callable[..., None], *arguments: object) -> None:
        over_slots(self.table, self.threads, kernel, *arguments)

    def windows(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        # Windows of contexts: the first slot, and zeros uint64 [n, 2] for the total and the mass of each context.
        # This bounds the memory, and keeps the sums near the processor.
        size = len(self.weights)
        for first in range(0, size, CONTEXTS_AT_A_TIME):
            yield first, np.zeros((min(CONTEXTS_AT_A_TIME, size - first), 2), np.uint64)


def additive_unigrams(counts: NDArray[np.int64], k: float, events: NDArray[np.bool_]) -> tuple[NDArray[np.float32], float]:
    """Return the unigrams of additive smoothing, and the probability of any word after a context without counts, 1 / V.

    >>> unigrams, unseen = additive_unigrams(np.array([3, 1]), 1.0, np.array([True, True]))
    >>> unigrams[:, 0].round(4).tolist(), unseen  # 4 / 6 and 2 / 6
    ([0.666700005531311, 0.33329999446868896], 0.5)
    """
    # counts: int64 [vocabulary], occurrences of each word; events: bool [vocabulary], the V tokens that can be predicted.
    # -> float32 [vocabulary, 2], (c + k) / (sum of c + k V) and, in place of back-off weights, k / (k V); and 1 / V.
    size = float(np.count_nonzero(events))
    occurrences = np.where(events, counts, 0)
    unigrams = np.empty((len(events), 2), np.float32)
    unigrams[:, 0] = np.where(events, (occurrences + k) / (occurrences.sum() + k * size), 0.0)
    unigrams[:, 1] = k / (k * size) if k else 0.0
    return unigrams, 1.0 / int(size) if k > 0 else 0.0


def unigram_probabilities(
    counts: NDArray[np.int64], discounts: Discounts, events: NDArray[np.bool_], interpolate: bool
) -> NDArray[np.float64]:
    """Return p(w), float64 [vocabulary]: the end of the recursion, where h' gives each of the V events 1 / V."""
    discount, mass, extra = discounts.for_kernels()
    counts = np.where(events, counts, 0)
    seen, size = counts > 0, int(np.count_nonzero(events))
    # counts [0, 1, 2, 9] with D of 0, 1, 2, 3+ -> buckets [0, 1, 2, 3]
    bucket = np.minimum(counts, len(discount) - 1)
    total = float(counts.sum() + extra * np.count_nonzero(seen))
    discounted = np.where(seen, np.maximum(counts - discount[bucket], 0), 0.0)
    left = float(np.sum(mass[bucket][seen].astype(np.float64))) / 2.0**MASS_BITS
    # A word of a word list that the text does not have, or `<unk>` where every word is known.
    unseen = events & ~seen
    if interpolate or not unseen.any():
        return np.where(events, (discounted + left / size) / total, 0.0)
    if left == 0:
        # As for longer contexts, see balance_mass in the kernels: one count more, or unseen words would be impossible.
        total, left = total + 1, 1.0
    return np.where(unseen, left / np.count_nonzero(unseen), discounted) / total


def _interpolate(order: _Order) -> None:
    # Fill an order by p(w|h) = max(c - D(c), 0) / c(h) + gamma(h) p(w|h'), and its contexts by gamma(h).
    for first, sums in order.windows():
        # sums[h] = c(h), and the mass sum_w D(c(h, w)) with all of c where a cut-off drops the n-gram, in units of 2^-28
        order.run(_native.sum_contexts, order.dropped, order.discounts, first, sums)
        order.run(_native.estimate_interpolated, first, sums, order.discounts, *order.lower)
        if order.contexts is None:
            used = sums[:, 0] > 0
            gamma = sums[used, 1] / sums[used, 0].astype(np.float64)
            order.weights[first : first + len(sums)][used] = gamma
        else:
            _native.store_backoffs(order.contexts, first, sums)


def _back_off(order: _Order, lower_totals: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    # Fill an order by p(w|h) = (c - D(c)) / c(h), and its contexts by alpha(h), so that all sums to one.
    # Katz (1987): alpha(h) = (1 - sum of p(w|h) over the words seen after h) / (1 - sum of p(w|h') over the same words)
    # Probabilities are stored in single precision, so a distribution sums to one but for some 1e-7. Where hardly anything
    # of the lower order is unseen, that matters: the share of the unseen is taken from what the lower order really sums to.
    # lower_totals: float64 [contexts of the order below], what its distributions sum to as stored.
    # -> the same for this order, float64 [contexts].
    weights = order.weights
    totals = np.ones(len(weights))
    for first, sums in order.windows():
        n = len(sums)
        # For each context: sum of p(w|h') and of p(w|h) over the words seen, their number, and the slot of the context h'.
        lower_sums, seen_sums = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        types, lower_contexts = np.zeros(n, np.uint32), np.zeros(n, np.uint32)
        order.run(_native.sum_contexts, order.dropped, order.discounts, first, sums)
        order.run(_native.sum_lower, order.dropped, *order.lower, first, lower_sums, types, lower_contexts)
        _native.balance_mass(sums, types, size)
        order.run(_native.estimate_discounted, order.dropped, first, sums, order.discounts, seen_sums)
        used, weight, total = share_left(sums, lower_sums, seen_sums, lower_totals[lower_contexts])
        weights[first + used], totals[first + used] = weight, total
    return totals


def share_left(
    sums: NDArray[np.uint64],
    lower_sums: NDArray[np.uint64],
    seen_sums: NDArray[np.uint64],
    lower_totals: NDArray[np.float64],
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Return which contexts are followed by anything, int [used], and for these alpha(h) and what p(w|h) sums to."""
    # sums: [contexts, 2], c(h) and the mass to give away, in units of 2^-28; lower_sums: [contexts], sum of p(w|h') over
    # the words seen, in units of 2^-60; seen_sums: [contexts], sum of p(w|h) over these, likewise; lower_totals:
    # [contexts], what the distribution after h' sums to as stored.
    used = np.flatnonzero(sums[:, 0])
    left = sums[used, 1] / sums[used, 0].astype(np.float64)
    # h = `the`, followed by `cat` alone: p(cat|the) = 0.6, p(cat) = 0.1, totals of 1 -> left 0.4, unseen 0.9, alpha =
    # 0.444...
    unseen = lower_totals[used] - lower_sums[used] * _LOWER_UNIT
    # alpha(h); where every word was seen nothing is left, and rounding alone decides what the rest would be.
    weights = np.where((left > 0) & (unseen > 1e-12), left / np.maximum(unseen, 1e-12), 0)
    return used, weights, seen_sums[used] * _LOWER_UNIT + left
