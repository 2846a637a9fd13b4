"""The packed tables of n-gram models as big integers and dictionaries: `_kernels/packed.hpp` said once more, slowly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmgauge.models.ngram.packed_tables import PackedTable
from tests.reference.kernels import Gram

FIRST, SECOND = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
SPARE_LINES = 15
Values = tuple[float, float]  # probability, negative where blank; weight


def _bits(values: int) -> int:
    return max(1, (values - 1).bit_length())


def scattered(parent: int, word: int, table: PackedTable) -> int:
    """The number h of an n-gram, below 2^bits."""
    word_bits = _bits(table.words)
    bits = word_bits + _bits(table.parents)
    h = (parent << word_bits | word) * FIRST % 2**bits
    h ^= h >> ((bits + 1) // 2)
    return h * SECOND % 2**bits


def _unscattered(h: int, table: PackedTable) -> tuple[int, int]:
    word_bits = _bits(table.words)
    bits = word_bits + _bits(table.parents)
    h = h * pow(SECOND, -1, 2**bits) % 2**bits
    h ^= h >> ((bits + 1) // 2)
    pair = h * pow(FIRST, -1, 2**bits) % 2**bits
    return pair >> word_bits, pair % 2**word_bits


def entries(table: PackedTable) -> dict[int, tuple[int, int, float, float]]:
    """Slot -> parent, word, probability, weight as stored."""
    width = 7 if table.last else 5
    homes = len(table.lines) - SPARE_LINES
    bits = _bits(table.words) + _bits(table.parents)
    found = {}
    for row, line in enumerate(table.lines):
        floats = line.view(np.float32).tolist()
        for place, key in enumerate(line[:width].tolist()):
            if key == 0:
                continue
            home = row - (key % 16 - 1)
            candidates = [h for h in range(key >> 4, 2**bits, 2**28) if h * homes >> bits == home]
            if len(candidates) != 1:
                raise AssertionError(f"line {row}, place {place}: {len(candidates)} n-grams have this key")
            weight = 1.0 if table.last else floats[2 * width + 1 + place]
            found[width * row + place] = (*_unscattered(candidates[0], table), floats[width + 1 + place], weight)
    return found


def decode(tables: Sequence[PackedTable]) -> list[dict[Gram, Values]]:
    """The contents of tables of order 2, 3, ...: n-gram -> probability and weight, by rising slot."""
    grams: list[dict[Gram, Values]] = []
    below: dict[int, Gram] = {}
    for order, table in enumerate(tables, 2):
        here, values = {}, {}
        for slot, (parent, word, probability, weight) in entries(table).items():
            here[slot] = ((parent,) if order == 2 else below[parent]) + (word,)
            values[here[slot]] = probability, abs(weight)
        if len(values) != len(here):
            raise AssertionError("an n-gram stands in two slots")
        grams.append(values)
        below = here
    return grams
