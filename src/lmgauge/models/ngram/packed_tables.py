"""The tables of a finished model: made once, order by order from the bigrams, and only read afterwards.

A table is uint32 [lines, 16], a line being 64 bytes that come from memory together (`_kernels/packed.hpp`). The slot of
an n-gram is its id. An n-gram is the slot of its beginning in the table below (order 2: the id of a word) and the id
of its last word:

    trigram "the cat sat" = (slot of "the cat", id of "sat")
    bigram  "the cat"     = (id of "the",       id of "cat")

The bytes of a table follow from the n-grams and values in it, whatever the order in which they came and the number of
threads. The way in is `packing`, the way out is `PackedTable.entries`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import UsageError
from lmgauge.base.threads import run_ranges, thread_count

Lines = NDArray[np.uint32]
Floats = NDArray[np.float32]
Slots = NDArray[np.uint32]
KernelTable = tuple[Lines, int, int, bool]
Bounds = tuple[int, int]  # slots of parents, ids of words: all are below
Parts = tuple[NDArray[np.uint32], NDArray[np.uint64]]  # staged n-grams [n, columns], sizes of the parts

LINE_BYTES = 64
NO_SLOT = 0xFFFFFFFF  # where an n-gram is not in the table
_WIDTH, _LAST_WIDTH = 5, 7  # n-grams in a line; those of the highest order have no back-off weight
# Share of the places that are filled. Fuller tables are smaller, but more n-grams lie behind their home lines.
_FILLED = 0.8


class RepeatedNgramsError(ValueError):
    """N-grams came twice; `count` says how many."""

    def __init__(self, count: int) -> None:
        super().__init__(f"{count:,} n-grams came twice")
        self.count = count


class Entries(NamedTuple):
    """The n-grams of one order as columns [n], by rising slot."""

    slots: Slots  # uint32, which are their ids
    parents: Slots  # uint32, slots of their beginnings in the table below; ids of words at order 2
    words: Slots  # uint32, ids of their last words
    probabilities: Floats  # float32, linear; negative for a blank: an n-gram that is held because longer ones contain it
    weights: Floats  # float32, back-off weights, linear; 1 at the highest order


@dataclass(frozen=True)
class PackedTable:
    """All n-grams of one order of a finished model."""

    lines: Lines  # uint32 [lines, 16]
    parents: int  # slots of parents are below it: the slots of the table below; the size of the vocabulary at order 2
    words: int  # ids of words are below it: the size of the vocabulary
    last: bool  # True for the highest order

    @property
    def slots(self) -> int:
        """Return the number of slots; all are below it."""
        return len(self.lines) * line_width(last=self.last)

    @property
    def kernel(self) -> KernelTable:
        """Return the table as the kernels take it."""
        return self.lines, self.parents, self.words, self.last

    def count(self) -> tuple[int, int]:
        """Return how many n-grams there are, and how many of them are blanks."""
        counts = self._over_lines(lambda begin, end: _native.count_entries(self.kernel, begin, end))
        return sum(entries for entries, _ in counts), sum(blanks for _, blanks in counts)

    def entries(self) -> Entries:
        """Return all n-grams as columns."""
        n, _ = self.count()
        whole = np.empty((3, n), np.uint32), np.empty((2, n), np.float32)
        columns = (*whole[0], *whole[1])
        _native.list_entries(self.kernel, 0, len(self.lines), columns)
        return Entries(*columns)

    def find(self, parents: Slots, words: Slots) -> Slots:
        """Return slots, uint32 [n], of n-grams from parents [n] and last words [n]; `NO_SLOT` for those not there."""
        # Where a parent is `NO_SLOT`, so is the n-gram.
        slots = np.empty(len(parents), np.uint32)
        _native.find_ngrams(self.kernel, _columns(np.uint32, parents), _columns(np.uint32, words), slots)
        return slots

    def values(self, slots: Slots) -> tuple[Floats, Floats]:
        """Return probabilities, negative for blanks, and back-off weights of n-grams, float32 [n], from slots [n]."""
        probabilities, weights = np.empty(len(slots), np.float32), np.empty(len(slots), np.float32)
        _native.entry_values(self.kernel, _columns(np.uint32, slots), probabilities, weights)
        return probabilities, weights

    def check(self) -> tuple[int, int | None]:
        """Check every entry, which a file may have damaged."""
        # -> a 64-bit checksum, and the first line that no sound table has or None.
        results = self._over_lines(lambda begin, end: _native.check_lines(self.kernel, begin, end))
        bad = [line for _, line in results if line >= 0]
        return int(sum(checksum for checksum, _ in results) % 2**64), bad[0] if bad else None

    def _over_lines(self, work: Callable[[int, int], tuple[int, int]]) -> list[tuple[int, int]]:
        return run_ranges(work, len(self.lines), thread_count())


def enough_lines(lines: int, parents: int, words: int) -> bool:
    """Return True if a table of this many lines can tell its n-grams apart, and has slots of 31 bits."""
    homes = lines - int(_native.SPARE_LINES)
    return homes >= _least_homes(parents, words) and lines * _LAST_WIDTH < 2**31 - 1


def most_entries(*, last: bool) -> int:
    """Return how many n-grams of one order a model can have: slots are numbers of 31 bits."""
    return int(_FILLED * line_width(last=last) * ((2**31 - 2) // _LAST_WIDTH))


def homes_for(entries: int, bounds: Bounds, *, last: bool) -> int:
    """Return how many home lines a table gets; `more_homes` if that turns out to be too few."""
    # 100 n-grams of an inner order: 100 / 0.8 = 125 places, 5 to a line, 25 lines.
    return max(1, -(-int(entries / _FILLED) // line_width(last=last)), _least_homes(*bounds))


def more_homes(homes: int) -> int:
    """Return the next number of home lines: hardly ever, too many n-grams begin their search at neighboring lines."""
    return homes + homes // 4 + 1


def line_width(*, last: bool) -> int:
    """Return how many n-grams fit into a line of 64 bytes."""
    return _LAST_WIDTH if last else _WIDTH


def _least_homes(parents: int, words: int) -> int:
    # A place keeps of its key only what the home line does not tell: with few lines the rest would not fit into it.
    bits = sum(max(1, (values - 1).bit_length()) for values in (parents, words))
    return 1 << max(0, bits - int(_native.LEAST_HOME_BITS))


def slots_for(entries: int, parents: int, words: int, *, last: bool) -> tuple[int, int]:
    """Return the slots and the bytes that a table of this number of n-grams has, unless very many lie side by side."""
    lines = homes_for(entries, (parents, words), last=last) + int(_native.SPARE_LINES)
    return lines * line_width(last=last), lines * LINE_BYTES


def stage_in_parts(entries: int, count: int, columns: int, fill: Callable[[Parts], None]) -> Parts:
    """Return n-grams in `count` parts, uint32 [count * room, columns], and the sizes of the parts, uint64 [count]."""
    mean = entries / count
    # The size of a part has about the standard deviation sqrt(mean): 8 of them are as good as never passed.
    room = int(mean + 8 * mean**0.5) + 64 if count > 1 else entries
    while True:
        parts = np.empty((count * room, columns), np.uint32), np.zeros(count, np.uint64)
        fill(parts)
        most = int(parts[1].max())
        if most <= room:
            return parts
        room = most


def check_lines_of_table(lines: int) -> None:
    """Refuse more lines than a table can have."""
    if not enough_lines(lines, 2, 2):
        raise UsageError(f"{lines:,} lines are more than a table can have; use --cutoffs or a lower order")


def new_lines(count: int) -> Lines:
    """Return lines of 64 bytes, uint32 [count, 16], zero, that begin where a line of the processor's cache does.

    >>> lines = new_lines(20)
    >>> lines.shape, lines.ctypes.data % 64
    ((20, 16), 0)
    """
    check_lines_of_table(count)
    memory = np.zeros(16 * count + 16, np.uint32)
    # An address of 64 n + 16 -> -16 % 64 = 48 bytes, 12 numbers further on.
    start = -memory.ctypes.data % LINE_BYTES // 4
    return memory[start : start + 16 * count].reshape(count, 16)


def _columns(dtype: type, values: NDArray[np.generic]) -> NDArray:  # type: ignore[type-arg]
    return np.ascontiguousarray(values, dtype)
