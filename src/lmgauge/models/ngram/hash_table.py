"""The hash table that holds all n-grams of one order while they are counted and their probabilities are estimated.

A table is uint64 [slots, 2]. Column 0 is the key + 1, or 0 where the slot is empty. The key is parent << 32 | word; the
parent is the slot, in the table below, of the n-gram without its last word (for bigrams: the id of the first word). Column 1
has two 32-bit values: the count and the slot of the suffix, later probability and back-off weight. The slot is the id of the
n-gram. `_kernels/hashing.hpp` has the details. Finished models have smaller tables: `packed_tables`.

    trigram "the cat sat" = (slot of "the cat", id of "sat")
    bigram  "the cat"     = (id of "the",       id of "cat")
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import UsageError
from lmgauge.threads import run_ranges

# Share of a table that is filled. Fuller tables are smaller, but a search for a missing key looks at more entries.
LOAD = 0.6
ENTRIES_PER_LINE = 4
_LINE_WORDS = 8

Table = NDArray[np.uint64]


def new_table(entries: int) -> Table:
    """Return an empty table, uint64 [slots, 2], with room for this number of entries: whole cache lines, never full."""
    slots = slots_for(entries)
    if slots >= 2**31 - 1:
        raise UsageError(f"{entries:,} n-grams of one order are more than a table can hold; use --cutoffs or a lower order")
    memory = np.zeros(2 * slots + _LINE_WORDS, np.uint64)
    start = -memory.ctypes.data % (8 * _LINE_WORDS) // 8  # entries four to a cache line, not across two
    return memory[start : start + 2 * slots].reshape(slots, 2)


def slots_for(entries: int) -> int:
    """Return the slots of a table with room for this number of entries, 16 bytes each."""
    # 3 entries: 3 / 0.6 + 1 = 6 slots, 2 lines of 4, and one line more, so that a search always meets an empty slot.
    lines = max(1, -(-int(entries / LOAD + 1) // ENTRIES_PER_LINE))
    return ENTRIES_PER_LINE * (lines + 1)


def columns(table: Table) -> tuple[NDArray[np.uint64], NDArray[np.float32], NDArray[np.float32]]:
    """Return views of a table with probabilities, each [slots]."""
    # Keys as stored (0: empty), probabilities, back-off weights.
    # An entry is 16 bytes: key (low, high), probability, weight. [6, 0x3F0000003E800000] -> 6, 0.25, 0.5 (0x3E800000 is
    # 0.25).
    values = table.view(np.float32).reshape(-1, 4)
    return table[:, 0], values[:, 2], values[:, 3]


def over_slots(table: Table, threads: int, kernel: Callable[..., None], *arguments: object) -> None:
    """Run a kernel over all slots of a table, shared among threads."""
    # table: uint64 [slots, 2].
    run_ranges(lambda begin, end: kernel(table, begin, end, *arguments), len(table), threads)
