"""A text in units of some size: what networks score together, and what shards of the work are made of."""

# Where a unit ends depends on the text and its blocks alone, so that a shard has whole units without knowing what
# is in the others, and scores them in the same batches as a program that scores all of them.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from lmgauge.text.segments import Segments

UNIT_BYTES = 1 << 18
"""Of text; about 65,000 tokens, enough that windows and sentences of equal length meet."""

T = TypeVar("T")


def pieces(block: Segments) -> Iterator[Segments]:
    """Yield a block in pieces of `UNIT_BYTES` or little more; the last may be smaller."""
    if not len(block):
        yield block
    ends = np.cumsum(block.ends - block.starts + block.terminator)
    begin = done = 0
    while begin < len(block):
        end = min(len(block), int(np.searchsorted(ends, done + UNIT_BYTES)) + 1)
        yield block.part(begin, end)
        begin, done = end, int(ends[end - 1])


def in_units(items: Iterable[T], block_of: Callable[[T], Segments]) -> Iterator[list[T]]:
    """Yield what comes piece by piece in units of `UNIT_BYTES` or more; the last may be smaller."""
    # items: pieces, or what was made of them, in order.
    unit: list[T] = []
    size = 0
    for item in items:
        unit.append(item)
        size += block_of(item).byte_count()
        if size >= UNIT_BYTES:  # the same rule as that of `UnitCounter`, without waiting for what comes next
            yield unit
            unit, size = [], 0
    if unit:
        yield unit


class UnitCounter:
    """Numbers the units that pieces of a text are in."""

    def __init__(self) -> None:
        self._unit = self._size = 0

    def unit_of(self, piece: Segments) -> int:
        """Return the number of the unit of the next piece; pieces come in order."""
        if self._size >= UNIT_BYTES:
            self._unit, self._size = self._unit + 1, 0
        self._size += piece.byte_count()
        return self._unit
