"""Sums of statistics by unit and by code, of segments that come in parts: what is resampled, swapped or left out."""

# Statistics are whole numbers, int64 [segments, columns], so that every sum is exact and no order or division changes it.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import UsageError

Statistics = NDArray[np.int64]
"""int64 [rows, columns]; any rows may be added up."""

MOST_UNITS = 1 << 20
"""Most rows of statistics that are kept; of more segments, neighbors are added up."""


class UnitSums:
    """Statistics of ever more segments in bounded memory: where they become too many, neighbors are added up in pairs."""

    # A unit is then 2^j segments in a row (the last one may have fewer), whatever the sizes of the parts were that came in.

    def __init__(self, columns: int, limit: int = MOST_UNITS) -> None:
        if limit < 2 or limit % 2:
            raise UsageError(f"limit: {limit} units cannot be added up in pairs; give an even number, 2 or more")
        self._limit, self._columns = limit, columns
        self._units = np.zeros((0, columns), dtype=np.int64)
        self.segments_per_unit = 1
        self.segments = 0

    def add(self, rows: Statistics) -> None:
        """Add the statistics of further segments."""
        # rows: int64 [segments, columns].
        while len(rows):
            if self.segments == self._limit * self.segments_per_unit:
                self._halve()
            taken = rows[: self._limit * self.segments_per_unit - self.segments]
            self._put(taken)
            rows = rows[len(taken) :]

    def _put(self, rows: Statistics) -> None:
        per = self.segments_per_unit
        first, last = self.segments // per, (self.segments + len(rows) - 1) // per
        self._units = _with_room(self._units, last + 1, self._limit)
        if per == 1:
            self._units[first : last + 1] = rows
        else:
            # 3 segments are there, 2 to a unit, 3 come: units 1 to 2, which begin at [2, 4] - 3 -> starts [0, 1]; the first
            # of them fills the unit that is half full.
            starts = np.maximum(np.arange(first, last + 1) * per - self.segments, 0)
            self._units[first : last + 1] += np.add.reduceat(rows, starts, axis=0)
        self.segments += len(rows)

    def _halve(self) -> None:
        # units [1, 2, 4, 8] -> [3, 12, 0, 0], twice as many segments in each
        pairs = self._units[0::2] + self._units[1::2]
        self._units[: len(pairs)] = pairs
        self._units[len(pairs) :] = 0
        self.segments_per_unit *= 2

    def rows(self) -> Statistics:
        """Return the sums of each unit, int64 [units, columns]."""
        return self._units[: -(-self.segments // self.segments_per_unit)]

    @property
    def total(self) -> NDArray[np.int64]:
        """Return the sum over all segments, int64 [columns]."""
        return np.asarray(self.rows().sum(axis=0, dtype=np.int64))


class CodedSums:
    """Sums of statistics by a code of each segment, its document or its group, of segments that come in parts."""

    def __init__(self, columns: int) -> None:
        self._sums = np.zeros((0, columns), dtype=np.int64)

    def add(self, codes: NDArray[np.integer[Any]], rows: Statistics) -> None:
        """Add the statistics of further segments."""
        # codes: [segments], of each, from 0; rows: int64 [segments, columns].
        present, inverse = np.unique(codes, return_inverse=True)
        self._sums = _with_room(self._sums, int(present[-1]) + 1)
        sums = np.zeros((len(present), self._sums.shape[1]), dtype=np.int64)
        # codes [1, 0, 1], rows [[1], [2], [4]] -> sums [[2], [5]]; `+=` would count a code that comes twice once.
        np.add.at(sums, inverse, rows)
        self._sums[present] += sums

    @property
    def sums(self) -> Statistics:
        """Return the sums of each code, int64 [codes or more, columns]; those behind the last are 0."""
        return self._sums


def _with_room(rows: Statistics, wanted: int, most: int | None = None) -> Statistics:
    # Rows with zeros behind them, so that there are `wanted` or, to grow seldom, twice as many as there were.
    if wanted <= len(rows):
        return rows
    size = max(wanted, 2 * len(rows))
    room = np.zeros((size if most is None else min(most, size), rows.shape[1]), dtype=np.int64)
    room[: len(rows)] = rows
    return room


def document_sums(segments: Sequence[Statistics], documents: NDArray[np.int64]) -> list[Statistics]:
    """Return the sums of each document, in an order that does not depend on how documents are numbered."""
    # segments: of each system, int64 [segments, columns]; documents: int64 [segments], the number of the document of each.
    # -> of each system int64 [documents, columns], without documents that have nothing.
    # document_sums([[[5], [2], [3]]], [1, 0, 0])[0] -> [[5], [5]]
    sums = [CodedSums(rows.shape[1]) for rows in segments]
    for coded, rows in zip(sums, segments, strict=True):
        coded.add(documents, rows)
    return in_one_order([coded.sums for coded in sums])


def in_one_order(sums: Sequence[Statistics]) -> list[Statistics]:
    """Return documents in an order that does not depend on their numbers, without those that have nothing."""
    # Names and order of documents then change no digit, also not of what is drawn.
    # sums: of each system, int64 [documents, columns].
    # [rows.tolist() for rows in in_one_order([[[3], [0], [1]], [[4], [0], [2]]])] -> [[[1], [3]], [[2], [4]]]
    all_columns = np.concatenate(sums, axis=1)
    something = np.flatnonzero(all_columns.any(axis=1))
    # rows [3, 4], [0, 0], [1, 2] -> [1, 2], [3, 4]: the last key of lexsort is the first that counts, hence the reversal.
    order = something[np.lexsort(all_columns[something].T[::-1])]
    return [part[order] for part in sums]
