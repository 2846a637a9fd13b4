"""Counting n-grams level by level.

The k-gram that ends at token i is the child, by word i, of the (k-1)-gram that ends at token i - 1: one probe in one hash
table keyed by (parent, word). The slot of an entry is its id. What a table looks like is told in `_kernels/hashing.hpp`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import UsageError
from lmgauge.text.vocabulary import BOS
from lmgauge.threads import run_ranges, run_workers

# Share of a table that is filled. Fuller tables are smaller, but a search for what is not there looks at more entries.
LOAD = 0.6
ENTRIES_PER_LINE = 4
MAX_ORDER = 64
_LINE_WORDS = 8
# Counts above this one are treated alike; Good-Turing looks at those of 8, modified Kneser-Ney at those of 4.
HISTOGRAM = 10
_REGIONS = 64
_SKETCH_BITS = 14

Table = NDArray[np.uint64]


@dataclass
class NgramCounts:
    """Counts of all n-grams up to an order.

    Attributes:
        unigrams: int64 [vocabulary], occurrences; `<s>` has none, being no event.
        tables: one per order from 2, uint64 [slots, 2]: key, and count with suffix slot.
        longest: largest distance of an entry from its home slot, per table.
        types: distinct n-grams of each order from 1 (order 1: tokens that occur).
        events: predicted events in the text.
        dropped: per table uint8 [slots], what a cut-off drops; empty where nothing is.
    """

    unigrams: NDArray[np.int64]
    tables: list[Table]
    longest: list[int]
    types: list[int]
    events: int
    dropped: list[NDArray[np.uint8]] = field(default_factory=list)

    @property
    def order(self) -> int:
        """The longest n-grams counted."""
        return len(self.tables) + 1


def slots_for(entries: int, load: float = LOAD) -> int:
    """Slots of a table for so many entries: whole cache lines, never full."""
    lines = max(1, -(-int(entries / load + 1) // ENTRIES_PER_LINE))
    return ENTRIES_PER_LINE * (lines + 1)


def new_table(entries: int, load: float = LOAD) -> Table:
    """An empty table with room for so many entries.

    Raises:
        UsageError: more entries than 31-bit slots can number.
    """
    slots = slots_for(entries, load)
    if slots >= 2**31 - 1:
        raise UsageError(f"{entries:,} n-grams of one order are more than a table can hold; use --cutoffs or a lower order")
    memory = np.zeros(2 * slots + _LINE_WORDS, np.uint64)
    start = -memory.ctypes.data % (8 * _LINE_WORDS) // 8  # entries four to a cache line, not across two
    return memory[start : start + 2 * slots].reshape(slots, 2)


def estimate_types(ids: NDArray[np.uint32], order: int, threads: int) -> list[int]:
    """Estimated distinct n-grams of order 2 .. `order`, within about 1 % (HyperLogLog, Flajolet et al. 2007)."""
    size = 1 << _SKETCH_BITS

    def sketch(begin: int, end: int) -> NDArray[np.uint8]:
        registers = np.zeros((order - 1) * size, np.uint8)
        _native.sketch_distinct(ids, begin, end, order, registers, _SKETCH_BITS)
        return registers

    registers = np.maximum.reduce(run_ranges(sketch, len(ids), threads)).reshape(order - 1, size)
    estimates = []
    for row in registers:
        estimate = (0.7213 / (1 + 1.079 / size)) * size * size / float(np.sum(np.exp2(-row.astype(np.float64))))
        empty = int(np.count_nonzero(row == 0))
        if estimate <= 2.5 * size and empty:
            estimate = size * float(np.log(size / empty))
        estimates.append(min(int(estimate * 1.03) + 64, len(ids)))
    return estimates


def count_ngrams(
    ids: NDArray[np.uint32], order: int, vocabulary_size: int, *, threads: int, sizes: Iterable[int] | None = None
) -> NgramCounts:
    """Counts every n-gram of order 1 .. `order` that lies within a context.

    Args:
        ids: uint32 [n], tokens with `<s>` where a context begins.
        order: the longest n-grams.
        vocabulary_size: ids are below it.
        threads: how many threads share the work; the result is the same for any number.
        sizes: estimated distinct n-grams of order 2, 3, ...; measured if not given. Too small costs time, nothing else.
    """
    if len(ids) >= 2**32 - 1:
        raise UsageError(f"{len(ids):,} tokens are more than can be counted at once (2^32); split the text")
    unigrams = np.bincount(ids, minlength=vocabulary_size).astype(np.int64)
    unigrams[BOS] = 0
    counts = NgramCounts(unigrams, [], [], [int(np.count_nonzero(unigrams))], int(unigrams.sum()))
    expected = list(sizes) if sizes is not None else estimate_types(ids, order, threads) if order > 1 else []
    spare: list[NDArray[np.uint32]] = []
    previous = ids
    for k in range(2, order + 1):
        following = spare.pop() if spare else np.empty(len(ids), np.uint32)
        if k == order:
            following = np.zeros(0, np.uint32)  # nothing is longer: the memory goes to the largest table
        table, longest, types = _count_level(ids, previous, following, expected[k - 2], threads)
        if previous is not ids:
            spare.append(previous)
        previous = following
        counts.tables.append(table)
        counts.longest.append(longest)
        counts.types.append(types)
    return counts


def _count_level(
    ids: NDArray[np.uint32], previous: NDArray[np.uint32], following: NDArray[np.uint32], expected: int, threads: int
) -> tuple[Table, int, int]:
    while True:
        table = new_table(expected)
        spill_limit = 1024 + len(table) // 16

        def work(worker: int, table: Table = table, limit: int = spill_limit) -> tuple[int, int, NDArray[np.uint64]]:
            share = (worker, threads, _REGIONS)
            result: tuple[int, int, NDArray[np.uint64]] = _native.count_level(ids, previous, following, table, share, limit)
            return result

        results = run_workers(work, threads)
        types = sum(added for added, _, _ in results)
        longest = max(far for _, far, _ in results)
        spilled = np.concatenate([pairs for _, _, pairs in results]).reshape(-1, 2)
        if len(spilled) <= spill_limit and types + len(spilled) < len(table):
            break
        expected = 2 * expected + 64
    if len(spilled):
        # By region, then position: the order in which they are placed does not depend on the threads.
        positions = np.ascontiguousarray(spilled[np.lexsort((spilled[:, 1], spilled[:, 0])), 1])
        added, far, _ = _native.count_spilled(ids, previous, following, table, positions)
        types, longest = types + added, max(longest, far)
    return table, longest, types


def adjust(counts: NgramCounts, *, continuation: bool, cutoffs: tuple[int, ...], threads: int) -> list[NDArray[np.int64]]:
    """Replaces the counts of lower orders by continuation counts where asked, marks what cut-offs drop.

    A cut-off looks at the counts in the text, whatever the smoothing then works with.

    Returns:
        For each order the number of n-grams with (adjusted) count 0, 1, ..., `HISTOGRAM` - 1, and more.
    """
    histograms = []
    for k in range(1, counts.order + 1):
        highest = k == counts.order
        if k == 1:
            if continuation and not highest:
                preceding = _continuations(counts.tables[0], len(counts.unigrams), threads)
                counts.unigrams = np.where(preceding > 0, preceding, counts.unigrams).astype(np.int64)
                counts.unigrams[BOS] = 0
            clipped = np.minimum(counts.unigrams, HISTOGRAM)
            histograms.append(np.bincount(clipped, minlength=HISTOGRAM + 1).astype(np.int64))
            continue
        table = counts.tables[k - 2]
        none = np.zeros(0, np.uint32)
        preceding = _continuations(counts.tables[k - 1], len(table), threads) if continuation and not highest else none
        cutoff = cutoffs[min(k, len(cutoffs)) - 1] if cutoffs else 0
        dropped = np.zeros(len(table) if cutoff else 0, np.uint8)

        def work(
            begin: int,
            end: int,
            table: Table = table,
            preceding: NDArray[np.uint32] = preceding,
            cutoff: int = cutoff,
            dropped: NDArray[np.uint8] = dropped,
        ) -> NDArray[np.uint64]:
            histogram: NDArray[np.uint64] = _native.adjust_counts(table, begin, end, preceding, cutoff, dropped, HISTOGRAM)
            return histogram

        histograms.append(np.sum(run_ranges(work, len(table), threads), axis=0).astype(np.int64))
        counts.dropped.append(dropped)
    return histograms


def _continuations(table: Table, size: int, threads: int) -> NDArray[np.uint32]:
    """How many different tokens come before each n-gram of the order below."""
    counts = np.zeros(size, np.uint32)
    run_ranges(lambda begin, end: _native.add_continuations(table, begin, end, counts), len(table), threads)
    return counts


def drop(counts: NgramCounts) -> None:
    """Rebuilds the tables without what `counts.dropped` marks."""
    parents = np.zeros(0, np.uint32)
    for i, (table, dropped) in enumerate(zip(counts.tables, counts.dropped, strict=True)):
        if not len(dropped) and not len(parents):
            continue
        gone = np.zeros(0, np.uint8) if not len(dropped) else dropped
        fresh = new_table(counts.types[i + 1] - int(np.count_nonzero(dropped)))
        slots = np.empty(len(table), np.uint32)
        types, longest, _ = _native.rebuild_table(table, gone, parents, fresh, slots)
        counts.tables[i], counts.types[i + 1], counts.longest[i] = fresh, types, longest
        parents = slots
    counts.dropped = []
