"""Sums of one table, or of two side by side, over slices of the text: exact, and with how sure they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lmgauge.base.result_list import column
from lmgauge.evaluation.slicing.span_alignment import Floats, Ints
from lmgauge.numerics.exact import ExactSums, exact_to_nats
from lmgauge.numerics.intervals import DOCUMENTS, UNKNOWN, Spread, spread, sums_by
from lmgauge.numerics.lower_bound import marked
from lmgauge.numerics.resampling import holm_adjusted
from lmgauge.numerics.units import nats_to_bits

Cut = tuple[str, Sequence[str], Ints]
_FULL = 8  # cells a range, up to which a table of all cells is quicker than sorting
_MOST_CELLS = 1 << 20


@dataclass(frozen=True)
class Slice:
    """One slice of the text."""

    label: str = field(metadata=column(""))
    segments: int  # segments that have any of it
    ranges: int = field(metadata=column("events", form="count", drop=1))
    size: int  # bytes (or events, where bytes are not to be compared) in it
    bits: tuple[float, ...]  # of each model in all; infinite with an event of probability zero
    # of each model, per byte (or event); a `LowerBound` where the model's bits per byte are one
    bits_per_unit: tuple[float | None, ...]
    # of the second model from the first, bits per byte (or event); None for one model, infinite or undefined values
    difference: float | None = field(default=None, metadata=column("difference", 3, "signed"))
    # 95 %, low and high: for two models of the difference, for one of its bits per byte (or event). Over documents or,
    # where unknown, as `numerics.intervals.spread` does; None for fewer than six, and with an event of probability zero.
    # For one model that of a group of fewer than six documents is about text like these.
    interval: tuple[float, float] | None = field(default=None, metadata=column("95 % interval", 3, "signed", drop=2))
    # two-sided, below 0.05 if and only if the interval leaves out 0; None without one, and for one model
    p_value: float | None = field(default=None, metadata=column("p", form="p", drop=2))
    zeros: tuple[int, ...] = ()  # of each model, events of probability zero
    finite_bits: tuple[float, ...] = ()  # of each model, without those events
    unit: str = ""
    units: int = 0
    # adjusted for the slices of the table
    p_value_holm: float | None = field(default=None, metadata=column("p (Holm)", form="p", drop=3))


@dataclass(frozen=True)
class Slices:
    """A way to cut the text, e.g. by class, and what is in each slice; slices that no byte falls into are left out."""

    name: str
    unit: str
    rows: tuple[Slice, ...]

    def marked(self, bounds: Sequence[bool]) -> Slices:
        """Return the same, its bits per byte marked where they are lower bounds."""
        # Those of one model have no interval then.
        if self.unit != "byte":
            return self
        per_byte = (tuple(marked(v, bound=b) for v, b in zip(row.bits_per_unit, bounds, strict=True)) for row in self.rows)
        rows = [replace(row, bits_per_unit=bits) for row, bits in zip(self.rows, per_byte, strict=True)]
        if list(bounds) == [True]:
            rows = [replace(row, interval=None, unit="", units=0) for row in rows]
        return replace(self, rows=tuple(rows))


class SliceSums:
    """Collects the sums of slices, block by block."""

    def __init__(self, name: str, labels: Sequence[str], tables: int, *, whole_segments: bool = False) -> None:
        self.name, self.labels, self._tables = name, labels, tables
        self._exact: list[list[int]] = [[] for _ in range(tables)]
        self._zeros = np.zeros((0, tables), np.int64)
        self._counts = np.zeros((0, 3), np.int64)  # segments, ranges, size
        self._cells = _Cells(whole_segments)

    def add(
        self,
        codes: Ints,
        segment: Ints,
        sums: Sequence[ExactSums],
        size: Ints,
        *,
        first: int = 0,
        documents: Ints | None = None,
        events: Ints | None = None,
    ) -> None:
        """Add ranges of whole segments."""
        # codes: int64 [n], which slice each range is in; segment: int64 [n], number of its segment in the block, rising;
        # size: int64 [n], bytes (or events); documents: int64 [segments of the block], the document of each; None where
        # documents are not known; events: int64 [n], what ranges count as in each slice; 1 each if None.
        self._grow(len(self.labels))
        width = len(self.labels)
        for k, part in enumerate(sums):
            for code, total in enumerate(part.totals(codes, width)):
                self._exact[k][code] += total
            self._zeros[:, k] += np.bincount(codes, part.zeros, width).astype(np.int64)
        if not len(codes):
            return
        # Cells: the slices of each segment; with many slices only those that hold a range.
        lowest = int(segment[0])
        # segments [3, 3, 4], slices [0, 2, 1] of 3 -> cells [0, 2, 4]: each segment has one for every slice, most of them
        # empty.
        cell_of = (segment - lowest) * width + codes
        cells = (int(segment[-1]) - lowest + 1) * width
        if cells > _FULL * len(codes):
            present, cell_of = np.unique(cell_of, return_inverse=True)
        else:
            present = np.arange(cells)
        slice_of = present % width
        ranges_in = np.bincount(cell_of, minlength=len(slice_of))
        events_in = ranges_in if events is None else np.bincount(cell_of, events, len(slice_of))
        sizes = np.bincount(cell_of, size, len(slice_of))
        for place, counted in enumerate((ranges_in > 0, events_in, sizes)):
            self._counts[:, place] += np.bincount(slice_of, counted, width).astype(np.int64)
        # Events of probability zero are counted beside: one of them would make a sum infinite, and no difference could be
        # seen.
        nats = _finite(sums[0]) - _finite(sums[1]) if self._tables == 2 else -_finite(sums[0])
        in_cell = np.bincount(cell_of, nats, len(slice_of))
        filled = ranges_in > 0
        segment_of = present[filled] // width + lowest
        units = segment_of + first if documents is None else documents[segment_of]
        columns = (np.asarray(column[filled], np.float64) for column in (in_cell, sizes))
        self._cells.add(units, slice_of[filled], *columns, known=documents is not None)

    def _grow(self, width: int) -> None:
        more = width - len(self._counts)
        if more > 0:
            for exact in self._exact:
                exact.extend([0] * more)
            self._zeros = np.pad(self._zeros, ((0, more), (0, 0)))
            self._counts = np.pad(self._counts, ((0, more), (0, 0)))

    def finish(self, unit: str) -> Slices:
        """Return the slices with their bits, and how sure each difference is."""
        rows = (self._row(code) for code in range(len(self._counts)) if self._counts[code, 1])
        return Slices(self.name, unit, holm_adjusted(rows))

    def _row(self, code: int) -> Slice:
        segments, ranges, size = self._counts[code].tolist()
        zeros = self._zeros[code].tolist()
        costs = [exact_to_nats(-exact[code]) for exact in self._exact]
        finite = tuple(map(nats_to_bits, costs))
        bits = tuple(math.inf if zero else value for zero, value in zip(zeros, finite, strict=True))
        per_unit = tuple(
            None if not size else math.inf if zero else nats_to_bits(nats / size)
            for nats, zero in zip(costs, zeros, strict=True)
        )
        made = Slice(self.labels[code], segments, ranges, size, bits, per_unit, zeros=tuple(zeros), finite_bits=finite)
        if not size or any(zeros):
            return made
        total = exact_to_nats(self._exact[0][code] - self._exact[1][code]) if self._tables == 2 else costs[0]
        if self._tables == 2:
            made = replace(made, difference=nats_to_bits(total / size))
        over = self._cells.spread(code, total)
        if over is None:
            return made
        p_value = over.p_value if self._tables == 2 else None
        unit = UNKNOWN if over.unit == UNKNOWN else DOCUMENTS  # each is one row here, whatever segments it has
        return replace(made, interval=self._interval(over), p_value=p_value, unit=unit, units=over.units)

    def _interval(self, over: Spread) -> tuple[float, float]:
        interval = over.interval().mapped(nats_to_bits)
        # A cost, other than a difference, is not below 0.
        return (interval.low if self._tables == 2 else max(0.0, interval.low), interval.high)

    def whole_interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of all slices together, bits per unit; None with an event of probability zero."""
        over = None if self._zeros.any() else self._cells.spread(None, exact_to_nats(-sum(self._exact[0])))
        return None if over is None else self._interval(over)


class CutSums:
    """Collects the sums of several ways to cut a text, block by block; each is made when it first comes."""

    def __init__(self) -> None:
        self.cuts: dict[str, SliceSums] = {}

    def add(self, cuts: Iterable[Cut], segment: Ints, sums: Sequence[ExactSums], size: Ints, **how: Any) -> None:
        """Add ranges of whole segments, cut in each of these ways."""
        # cuts: name, labels of the slices (they may grow from block to block), and int64 [n], the slice of each range; sums:
        # of one table or two, exact; the rest, and how: as of `SliceSums.add`.
        for name, labels, codes in cuts:
            whole_segments = name == "group" and len(sums) == 1
            own = self.cuts.setdefault(name, SliceSums(name, labels, len(sums), whole_segments=whole_segments))
            own.labels = max(labels, own.labels, key=len)
            own.add(codes, segment, sums, size, **how)

    def whole_interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the bits per unit of all of one table; None without groups, or with p = 0."""
        return self.cuts["group"].whole_interval() if "group" in self.cuts else None

    def finish(self, unit: str) -> list[Slices]:
        """Return the slices of each way to cut the text, those without any row left out."""
        return [slices for slices in (sums.finish(unit) for sums in self.cuts.values()) if slices.rows]


class _Cells:
    """Values and sizes of the cells (unit, slice), where a unit is a document or, if documents are unknown, a segment."""

    # Where cells become too many, neighboring units are added up in pairs. A way to cut that cuts no segment has a row for
    # each segment, as it is: a slice of few documents is treated as `spread` treats a text of few, which is said about text
    # like these.

    def __init__(self, whole_segments: bool) -> None:
        self._known, self._whole_segments = False, whole_segments
        self._pooled = 0  # a unit is 2^pooled documents or segments that follow each other
        self._parts: list[tuple[Ints, Ints, Floats, Floats]] = []  # unit, slice, value, size
        self._held = 0

    def add(self, units: Ints, slices: Ints, differences: Floats, sizes: Floats, *, known: bool) -> None:
        # Add cells, unit, slice, difference in nats and size, [cells] each; a cell may come again.
        self._known = known
        self._parts.append((units >> self._pooled, slices, differences, sizes))
        self._held += len(units)
        while self._held > _MOST_CELLS and not self._whole_segments:
            joined = self._joined()
            if len(joined[0]) > _MOST_CELLS // 2:
                # Half as many units, each of two neighbors: units [4, 5, 6] -> [2, 2, 3]. What neighbors share is kept in
                # one unit, so that errors do not become smaller by it.
                self._pooled += 1
                self._parts = [(joined[0] >> 1, *joined[1:])]
                joined = self._joined()
            self._parts, self._held = [joined], len(joined[0])

    def _joined(self) -> tuple[Ints, Ints, Floats, Floats]:
        # Each cell once, by unit and then slice; segments as they are.
        unit, code, difference, size = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        if self._whole_segments:
            return unit, code, difference, size
        width = int(code.max()) + 1
        # units [7, 7, 8], slices [1, 1, 0], width 2 -> keys [15, 15, 16] -> cells of unit 7, 8 and slice 1, 0
        cells, inverse = np.unique(unit * width + code, return_inverse=True)
        return cells // width, cells % width, sums_by(inverse, difference), sums_by(inverse, size)

    def spread(self, code: int | None, total: float) -> Spread | None:
        if len(self._parts) != 1 or self._held:
            self._parts, self._held = [self._joined()], 0
        return _spread(self._parts[0], code, total, known=self._known)


def _spread(cells: tuple[Ints, Ints, Floats, Floats], code: int | None, total: float, *, known: bool) -> Spread | None:
    unit, codes, values, sizes = cells
    if code is not None:
        own = codes == code
        unit, values, sizes = unit[own], values[own], sizes[own]
    return spread(values, sizes, unit if known else None, total=total)


def _finite(sums: ExactSums) -> Floats:
    values = sums.nats()
    values[np.isinf(values)] = 0.0
    return values
