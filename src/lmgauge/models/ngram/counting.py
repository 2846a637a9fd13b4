"""Stage 1, counting: token ids to the counts of all n-grams, level by level.

Input: uint32 [n], the ids of the whole text, with `<s>` wherever a context begins.
Output: `NgramCounts`, a hash table for each order from 2, in which the slot of an n-gram is its id.

The k-gram that ends at token i is the child, by word i, of the (k-1)-gram that ends at token i - 1: one probe in one hash
table keyed by (parent, word). For the text `<s> a b a b` and order 3:

    position       1        2        3        4
    bigram       <s> a     a b      b a      a b       4 probes, 3 distinct: counts 1, 2, 1
    trigram         -    <s> a b   a b a    b a b      (bigram that ends at i - 1, word i)

The suffix of a k-gram is the (k-1)-gram that ends at the same token, so its slot is known when the entry is made; adjusted
counts and the recursion of smoothing follow this link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import UsageError
from lmgauge.models.ngram.hash_table import Table, new_table
from lmgauge.text.vocabulary import BOS
from lmgauge.threads import run_ranges, run_workers

_REGIONS = 64
_SKETCH_BITS = 14
_TOKENS_AT_A_TIME = 1 << 22


@dataclass
class NgramCounts:
    """Counts of all n-grams up to an order."""

    unigrams: NDArray[np.int64]  # int64 [vocabulary], occurrences; `<s>` has none, as it is not an event
    tables: list[Table]  # one per order from 2, uint64 [slots, 2]: key, and count with the slot of the suffix
    types: list[int]  # distinct n-grams of each order from 1 (order 1: tokens that occur)

    @property
    def order(self) -> int:
        """Return the length of the longest n-grams counted."""
        return len(self.tables) + 1


class TypesSketch:
    """Estimate how many different n-grams a text has while it goes by, within about 1 %.

    >>> sketch = TypesSketch(2)
    >>> sketch.add(np.array([1, 3, 4, 3, 4], np.uint32))  # <s> a b a b: three bigrams
    >>> sketch.estimates()[0] < 70
    True
    """

    # Source: HyperLogLog, Flajolet et al. 2007.

    def __init__(self, order: int) -> None:
        self.order, self.tokens = order, 0
        self._registers = np.zeros((order - 1, 1 << _SKETCH_BITS), np.uint8)

    def add(self, ids: NDArray[np.uint32], threads: int = 1) -> None:
        """Add tokens, uint32 [n], with `<s>` where a context begins; n-grams that end in others before are left out."""
        self.tokens += len(ids)
        if self.order == 1:
            return

        def _sketch(begin: int, end: int) -> NDArray[np.uint8]:
            registers = np.zeros(self._registers.size, np.uint8)
            _native.sketch_distinct(ids, begin, end, self.order, registers, _SKETCH_BITS)
            return registers.reshape(self._registers.shape)

        for registers in run_ranges(_sketch, len(ids), threads):
            np.maximum(self._registers, registers, out=self._registers)

    def estimates(self) -> list[int]:
        """Return the estimates for order 2, 3, ..., a little too large rather than too small."""
        size = self._registers.shape[1]
        estimates = []
        for row in self._registers:
            # Flajolet et al. (2007), figure 3: alpha m^2 / sum of 2^-register, with alpha = 0.7213 / (1 + 1.079 / m).
            estimate = (0.7213 / (1 + 1.079 / size)) * size * size / float(np.sum(np.exp2(-row.astype(np.float64))))
            empty = int(np.count_nonzero(row == 0))
            if estimate <= 2.5 * size and empty:
                # Few n-grams leave registers empty, whose share then tells more ("linear counting", same figure).
                estimate = size * float(np.log(size / empty))
            estimates.append(min(int(estimate * 1.03) + 64, self.tokens))
        return estimates


def estimate_types(ids: NDArray[np.uint32], order: int, threads: int) -> list[int]:
    """Return estimates of the distinct n-grams of each order from 2, within about 1 %."""
    # ids: uint32 [n], the tokens of the text; threads: how many threads share the work; the result is the same for any
    # number.
    sketch = TypesSketch(order)
    sketch.add(ids, threads)
    return sketch.estimates()


def count_ngrams(
    ids: NDArray[np.uint32], order: int, vocabulary_size: int, *, threads: int, sizes: Iterable[int] | None = None
) -> NgramCounts:
    """Count every n-gram up to an order that lies within a context."""
    # ids: uint32 [n], tokens with `<s>` where a context begins; threads: how many threads share the work; the result is the
    # same for any number.
    if len(ids) >= 2**32 - 1:
        raise UsageError(f"{len(ids):,} tokens are more than can be counted at once (2^32); split the text")
    unigrams = np.zeros(vocabulary_size, np.int64)
    for begin in range(0, len(ids), _TOKENS_AT_A_TIME):  # NumPy makes 64-bit numbers of them first
        unigrams += np.bincount(ids[begin : begin + _TOKENS_AT_A_TIME], minlength=vocabulary_size)
    unigrams[BOS] = 0
    counts = NgramCounts(unigrams, [], [int(np.count_nonzero(unigrams))])
    expected = list(sizes) if sizes is not None else estimate_types(ids, order, threads) if order > 1 else []
    spare: list[NDArray[np.uint32]] = []
    previous = ids
    for k in range(2, order + 1):
        # `previous` has for each position the slot of the (k-1)-gram that ends there, `following` gets that of the k-gram.
        # Two arrays take turns: order 5 needs no more of them than order 3.
        following = spare.pop() if spare else np.empty(len(ids), np.uint32)
        if k == order:
            following = np.zeros(0, np.uint32)  # nothing is longer: the memory goes to the largest table
        table, types = _count_level(ids, previous, following, expected[k - 2], threads)
        if previous is not ids:
            spare.append(previous)
        previous = following
        counts.tables.append(table)
        counts.types.append(types)
    return counts


def _count_level(
    ids: NDArray[np.uint32], previous: NDArray[np.uint32], following: NDArray[np.uint32], expected: int, threads: int
) -> tuple[Table, int]:
    while True:
        table = new_table(expected)
        spill_limit = 1024 + len(table) // 16

        def _count(worker: int, table: Table = table, limit: int = spill_limit) -> tuple[int, NDArray[np.uint64]]:
            share = (worker, threads, _REGIONS)
            result: tuple[int, NDArray[np.uint64]] = _native.count_level(ids, previous, following, table, share, limit)
            return result

        # A worker owns the regions of the table that no other touches; what falls on a border is spilled, and added below.
        results = run_workers(_count, threads)
        types = sum(added for added, _ in results)
        spilled = np.concatenate([pairs for _, pairs in results]).reshape(-1, 2)
        # Otherwise the estimate was too small: a table twice as large is filled anew, and the counts do not depend on it.
        if len(spilled) <= spill_limit and types + len(spilled) < len(table):
            break
        expected = 2 * expected + 64
    if len(spilled):
        # By region, then position: the order in which they are placed does not depend on the threads.
        # spilled (region, position) [[7, 40], [2, 90], [7, 10]] -> positions [90, 10, 40]
        positions = np.ascontiguousarray(spilled[np.lexsort((spilled[:, 1], spilled[:, 0])), 1])
        types += _native.count_spilled(ids, previous, following, table, positions)
    return table, types
