"""How a training is cut, and what n-grams say to those of other partitions, along the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from lmgauge._kernels import _native
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored

T = TypeVar("T")
Parts = list[list[Stored]]
"""Arrays of each partition, and in it of each chunk."""


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


@dataclass(frozen=True)
class Grams:
    """The n-grams of one order in a partition: columns with a value for each, of which the place is its row."""

    parents: Stored  # uint32, the row of the n-gram without its last word in the order below; at order 2 the first word
    words: Stored  # uint32, the last word
    probabilities: Stored  # float32, linear; negative for a blank, which only begins or ends longer n-grams
    dropped: Stored  # uint8, 1 where an n-gram is left out, and so are all that begin with it; empty if none is
    weights: Stored | None  # float32, back-off weights, linear; None at the highest order


@dataclass(frozen=True)
class Links:
    """The text, and the requests of its n-grams for their suffixes, which are answered along the same way."""

    # N-grams that were counted elsewhere have no text: they are one partition with one chunk, which has no ids.

    shape: Shape
    ids: list[Stored]  # of each chunk: uint32 [1 + tokens + order], with the token before and those behind it
    fresh: list[Stored]  # of each chunk: uint8 [tokens], the smallest order that is new where a window begins
    requests: dict[int, Parts]  # uint32, rows of suffixes of order k, one for each new n-gram of order k + 1

    def of(self, k: int, partition: int) -> list[Stored]:
        """Return the requests for n-grams of order k in a partition, chunk by chunk; none where nobody asks."""
        return self.requests[k][partition] if k in self.requests else []

    def deal(self, engine: Engine, name: str, k: int, values: Parts, *, back: bool = False) -> Parts:
        """Deal answers to requests for n-grams of order k to the n-grams of order k + 1 that asked, and drop them."""
        # values: uint8, uint32 or uint64, one value for each request. Forward an answer goes to the longer n-grams that
        # asked; back, what they say goes to the shorter one that was asked for. Nobody asks where nothing is linked.
        if not self.shape.linked:
            return [[] for _ in values]
        if not self.ids:  # one partition, in which n-grams ask in the order of their rows: an answer is in its place
            return values
        target = k if back else k + 1
        takes = [
            (self.shape.order, k, back, ids, fresh, [own[c] for own in values])
            for c, (ids, fresh) in enumerate(zip(self.ids, self.fresh, strict=True))
        ]
        makes = [NEW] * self.shape.partitions
        dealt = engine.run(f"deal-{name}-{target}", _deal, takes, makes, f"dealing to {target}-grams")
        engine.drop(values)
        return transposed(dealt)


def _deal(taken: tuple[int, int, bool, Stored, Stored, list[Stored]], read: Read) -> Iterator[Array]:
    order, k, back, ids, fresh, values = taken
    yield from _native.route_values(read(ids), order, k, read(fresh), list(map(read, values)), back)


def transposed(rows: Iterable[Sequence[T]]) -> list[list[T]]:
    """Return the columns of rows: what each chunk has of partitions as what each partition has of chunks."""
    # [[1, 2], [3, 4], [5, 6]] -> [[1, 3, 5], [2, 4, 6]]
    return [list(column) for column in zip(*rows, strict=True)]


def add_up(engine: Engine, parts: Iterable[Stored]) -> Array:
    """Return the sum of arrays; an empty one of none."""
    # parts [2, 0, 1] and [1, 5, 0] -> [3, 5, 1]; one is in memory beside the sum, however many there are.
    total: Array | None = None
    for part in parts:
        total = engine.read(part).copy() if total is None else np.add(total, engine.read(part), out=total)
    return np.zeros(0, np.int64) if total is None else total


def joined(read: Read, parts: Sequence[Stored], rows: int, dtype: Any) -> Array:
    """Return the parts of an array, one after another."""
    # parts [7, 8] and [9] of 3 rows -> [7, 8, 9]
    whole = np.empty(rows, dtype)
    start = 0
    for stored in parts:
        part = read(stored)
        whole[start : start + len(part)] = part
        start += len(part)
    if start != rows:
        raise ValueError(f"{start:,} values for {rows:,} n-grams")
    return whole


def answers_to(read: Read, requests: Sequence[Stored], values: Array) -> Iterator[Array]:
    """Yield a value for each request, chunk by chunk."""
    # values: of the n-grams, [rows].
    # requests [1, 2, 1] and values [0.5, 0.25, 1.0] -> [0.25, 1.0, 0.25]
    for stored in requests:
        yield np.take(values, read(stored), mode="clip")
