"""Sums of one table, or of two side by side, over slices of the text: exact, and with how sure a difference is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.paired import holm
from lmgauge.evaluation.slicing.ranges import ExactSums, Floats, Ints, to_nats
from lmgauge.evaluation.statistics import student_t_p_value, student_t_quantile
from lmgauge.metrics.perplexity import nats_to_bits

_FULL = 8  # cells a range, up to which a table of all cells is quicker than sorting


@dataclass(frozen=True)
class Slice:
    """One slice of the text.

    Attributes:
        label: what is in it.
        segments: segments that have any of it.
        ranges: stretches of text in it.
        size: bytes (or events, where bytes are not to be compared) in it.
        bits: of each model in all; infinite with an event of probability zero.
        bits_per_unit: of each model, per byte (or event).
        difference: of the second model from the first, bits per byte (or event); None for one model, infinite or
            undefined values.
        interval: 95 %, low and high, of the difference, cluster-robust over segments; None for fewer than two.
        p_value: two-sided, adjusted by Holm over the slices of the table.
        zeros: of each model, events of probability zero.
        finite_bits: of each model, without those events.
    """

    label: str
    segments: int
    ranges: int
    size: int
    bits: tuple[float, ...]
    bits_per_unit: tuple[float | None, ...]
    difference: float | None = None
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    zeros: tuple[int, ...] = ()
    finite_bits: tuple[float, ...] = ()


@dataclass(frozen=True)
class Slices:
    """A way to cut the text, e.g. by class, and what is in each slice; slices that no byte falls into are left out."""

    name: str
    unit: str
    rows: tuple[Slice, ...]


class SliceSums:
    """Collects the sums of slices, block by block.

    Args:
        name: of this way to cut the text.
        labels: of the slices; may grow.
        tables: how many tables stand side by side, 1 or 2.
    """

    def __init__(self, name: str, labels: Sequence[str], tables: int) -> None:
        self.name, self.labels, self._tables = name, labels, tables
        self._exact: list[list[int]] = [[] for _ in range(tables)]
        self._zeros = np.zeros((0, tables), np.int64)
        self._counts = np.zeros((0, 3), np.int64)  # segments, ranges, size
        self._moments = np.zeros((0, 3), np.float64)  # sums over segments of d d, d n, n n

    def add(self, codes: Ints, segment: Ints, sums: Sequence[ExactSums], size: Ints) -> None:
        """Adds ranges of whole segments.

        Args:
            codes: int64 [n], which slice each range is in.
            segment: int64 [n], number of its segment, rising.
            sums: of each table.
            size: int64 [n], bytes (or events).
        """
        self._grow(len(self.labels))
        width = len(self.labels)
        for k, part in enumerate(sums):
            for code, total in enumerate(part.totals(codes, width)):
                self._exact[k][code] += total
            self._zeros[:, k] += np.bincount(codes, part.zeros, width).astype(np.int64)
        if not len(codes):
            return
        # Cells: the slices of each segment; with many slices only those that hold a range.
        first = int(segment[0])
        cell_of = (segment - first) * width + codes
        cells = (int(segment[-1]) - first + 1) * width
        if cells > _FULL * len(codes):
            present, cell_of = np.unique(cell_of, return_inverse=True)
            slice_of = present % width
        else:
            slice_of = np.arange(cells) % width
        ranges_in = np.bincount(cell_of, minlength=len(slice_of))
        sizes = np.bincount(cell_of, size, len(slice_of))
        for column, counted in enumerate((ranges_in > 0, ranges_in, sizes)):
            self._counts[:, column] += np.bincount(slice_of, counted, width).astype(np.int64)
        if self._tables == 2:
            difference = np.bincount(cell_of, _finite(sums[0]) - _finite(sums[1]), len(slice_of))
            for column, product in enumerate((difference * difference, difference * sizes, sizes * sizes)):
                self._moments[:, column] += np.bincount(slice_of, product, width)

    def _grow(self, width: int) -> None:
        more = width - len(self._counts)
        if more > 0:
            for exact in self._exact:
                exact.extend([0] * more)
            self._zeros = np.pad(self._zeros, ((0, more), (0, 0)))
            self._counts = np.pad(self._counts, ((0, more), (0, 0)))
            self._moments = np.pad(self._moments, ((0, more), (0, 0)))

    def finish(self, unit: str) -> Slices:
        """The table; `unit` says what sizes count."""
        rows = [self._row(code) for code in range(len(self._counts)) if self._counts[code, 1]]
        adjusted = holm([row.p_value for row in rows])
        return Slices(
            self.name,
            unit,
            tuple(replace(row, p_value=p) for row, p in zip(rows, adjusted, strict=True)),
        )

    def _row(self, code: int) -> Slice:
        segments, ranges, size = self._counts[code].tolist()
        zeros = self._zeros[code].tolist()
        finite = tuple(nats_to_bits(to_nats(-exact[code])) for exact in self._exact)
        bits = tuple(math.inf if zero else value for zero, value in zip(zeros, finite, strict=True))
        per_unit = tuple(value / size if size else None for value in bits)
        difference, interval, p_value = None, None, None
        if self._tables == 2 and size and not any(zeros):
            difference = nats_to_bits(to_nats(self._exact[0][code] - self._exact[1][code])) / size
            interval, p_value = _interval(difference, self._moments[code], segments, size)
        return Slice(
            self.labels[code], segments, ranges, size, bits, per_unit, difference, interval, p_value, tuple(zeros), finite
        )


def _interval(
    difference: float, moments: NDArray[np.float64], segments: int, size: int
) -> tuple[tuple[float, float] | None, float | None]:
    """Cochran (1977) eq. 6.13 from sums of products, as `statistics.linearised` from the values, with Student's quantiles:
    a slice may be in few segments. No test of signs of so few could be surer than all of them alike."""
    if segments < 2:
        return None, None
    dd, dn, nn = moments.tolist()
    ratio = difference * math.log(2)
    squares = max(0.0, dd - 2 * ratio * dn + ratio * ratio * nn)
    error = nats_to_bits(math.sqrt(segments / (segments - 1) * squares) / size)
    p_value = student_t_p_value(difference / error, segments - 1) if error else float(difference == 0)
    reach = student_t_quantile(0.95, segments - 1) * error
    return (difference - reach, difference + reach), max(p_value, 2.0 ** (1 - min(segments, 1000)))


def _finite(sums: ExactSums) -> Floats:
    values = sums.nats()
    values[np.isinf(values)] = 0.0
    return values
