"""How a training is cut into partitions and chunks, and what its arrays are called.

ids/{c}                uint32 [1 + tokens + order]: a chunk of the text, with the token before and those behind it
parents/{k}/{p}        uint32 [rows], words, counts likewise: the n-grams of order k in partition p, see `counting`
requests/{k}/{p}/{c}   uint32, rows of suffixes of order k, one for each new n-gram of order k + 1
adjusted/{k}/{p}       uint32 [rows], the counts that the smoothing works with
dropped/{k}/{p}        uint8 [rows], 1 where a cut-off drops the n-gram; empty if the order has no cut-off
lower/{k}/{p}/{c}      uint32, the bits of p(w|h') of the n-grams of order k that are new in chunk c
probabilities/{k}/{p}  float32 [rows]
weights/{k}/{p}        float32 [rows], back-off weights; none for the highest order
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True)
class Shape:
    """The cut of a training."""

    order: int
    partitions: int
    chunks: int
    vocabulary: int  # ids of words are below it
    linked: bool  # whether n-grams need to know something of their suffixes

    @property
    def orders(self) -> range:
        """Return the orders that have n-grams in partitions."""
        return range(2, self.order + 1)

    @property
    def inner(self) -> range:
        """Return the orders whose n-grams are suffixes of others in partitions."""
        # None where nothing has to be known of them.
        # Order 4: 2 and 3 are suffixes of 3 and 4. Those of bigrams are words, which are in no partition.
        return range(2, self.order if self.linked else 2)

    def names(
        self, pattern: str, k: Iterable[int] = (0,), p: Iterable[int] | None = None, c: Iterable[int] | None = None
    ) -> list[str]:
        """Return the names of arrays: of orders, of partitions, and of chunks, the last changing fastest; None: of all."""
        # Shape(3, 2, 2, 10, True).names("requests/{k}/{p}/{c}", k=[2], p=[1]) -> ['requests/2/1/0', 'requests/2/1/1']
        numbers = (
            k if "{k}" in pattern else (0,),
            (range(self.partitions) if p is None else p) if "{p}" in pattern else (0,),
            (range(self.chunks) if c is None else c) if "{c}" in pattern else (0,),
        )
        return [pattern.format(k=order, p=partition, c=chunk) for order, partition, chunk in product(*numbers)]
