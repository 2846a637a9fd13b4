"""Exact sums: the same for every order of the values and every division of them into parts.

Three kinds, for three uses. `exact_sum` adds up one array, rounded once. `ExactSums` holds sums of log-probabilities as
integers, multiples of 2^-80 nats, so that sums of parts add up to the whole without any rounding; the kernel `sum_events`
fills it. `PlainSum` is the slow and obvious way, which an audit holds the fast ones against.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SCALE = 1 << 80
"""Exact sums are multiples of 1 / SCALE nats."""

# How many values are held as Python floats at a time.
_BLOCK = 1 << 16
# How many partial sums are kept before they are added up, so that no list grows with the text.
_PARTS = 4096
# Rows whose halves of 32 bits stay below 2^53 in sum, which float64 counts exactly.
_EXACT_ROWS = 1 << 20


def exact_sum(values: Floats) -> float:
    """Return the sum in float64, rounded once."""
    # values: float64 [n], no NaN, not both `inf` and `-inf`.
    # -> the correctly rounded sum; never `-0.0`.
    # exact_sum([1e16, 1.0, -1e16]) -> 1.0
    # tolist() of a block is several times faster than iterating over NumPy scalars and bounds the memory.
    blocks = (values[start : start + _BLOCK].tolist() for start in range(0, values.size, _BLOCK))
    return math.fsum(chain.from_iterable(blocks)) + 0.0


@dataclass
class PlainSum:
    """A sum of log-probabilities, the plain way: a correctly rounded sum of each part, and of those the sum."""

    zeros: int = 0  # values of `-inf`, events of probability zero
    broken: bool = False  # True if a value was NaN or `inf`, which no log-probability is
    _parts: list[float] = field(default_factory=list)

    def add(self, values: Floats) -> None:
        """Add values."""
        # values: float64 [n], nats.
        finite = [value for value in values.tolist() if math.isfinite(value)]
        zeros = int(np.count_nonzero(values == -np.inf))
        self.zeros += zeros
        self.broken |= len(finite) + zeros < len(values)
        self._parts.append(math.fsum(finite))
        if len(self._parts) >= _PARTS:
            self._parts = [math.fsum(self._parts)]

    @property
    def nats(self) -> float:
        """Return the sum: NaN if a value was NaN or `inf`, else `-inf` if one was `-inf`."""
        return math.nan if self.broken else -math.inf if self.zeros else math.fsum(self._parts)


@dataclass(frozen=True, slots=True)
class ExactSums:
    """Sums of log-probabilities, exact: `high` multiples of 2^-16 nats plus `low` multiples of 2^-80."""

    high: Ints  # int64 [n]
    low: NDArray[np.uint64]  # uint64 [n]
    zeros: Ints  # int64 [n], events of probability zero, which the sums leave out

    @classmethod
    def room(cls, count: int) -> ExactSums:
        """Return `count` sums of nothing, for a kernel to fill."""
        return cls(np.zeros(count, np.int64), np.zeros(count, np.uint64), np.zeros(count, np.int64))

    def nats(self) -> Floats:
        """Return the sums as float64 [n], `-inf` where an event has probability zero."""
        values = self.possible_nats()
        values[self.zeros > 0] = -np.inf
        return values

    def possible_nats(self) -> Floats:
        """Return the sums as float64 [n], of the events that are possible."""
        # high 3, low 2^63 (half of a unit of high) -> (3 + 0.5) 2^-16 nats
        values: Floats = (self.high.astype(np.float64) + self.low.astype(np.float64) * 2.0**-64) * 2.0**-16
        return values

    def totals(self, codes: Ints, size: int) -> list[int]:
        """Return for each code the exact sum of its rows, in multiples of 2^-80 nats."""
        # codes: int64 [n], from 0, below `size`.
        totals = [0] * size
        for begin in range(0, len(codes), _EXACT_ROWS):
            rows = slice(begin, begin + _EXACT_ROWS)
            high, low = self.high[rows], self.low[rows]
            # -1 multiple of 2^-16 nats: high >> 32 is -1, high & 0xFFFFFFFF is 2^32 - 1, and (-1 << 96) + ((2^32 - 1) <<
            # 64) is -1 << 64.
            halves = (high >> 32, high & 0xFFFFFFFF, low >> np.uint64(32), low & np.uint64(0xFFFFFFFF))
            for half, shift in zip(halves, (96, 64, 32, 0), strict=True):
                for code, part in enumerate(np.bincount(codes[rows], half.astype(np.float64), size).tolist()):
                    totals[code] += int(part) << shift
        return totals


def exact_costs(values: Floats) -> int:
    """Return the exact sum of values that are not negative, in multiples of 2^-80; of each, what is finer is left out."""
    # Sums of parts add up to that of the whole, in whatever order.
    # values: float64 [n], of 0 to 2^46, such as the nats of documents.
    # exact_costs([0.5, 1.0]) == 3 << 79 -> True
    scaled = values * 2.0**16
    high = np.floor(scaled)
    low = ((scaled - high) * 2.0**64).astype(np.uint64)
    sums = ExactSums(high.astype(np.int64), low, np.zeros(len(values), np.int64))
    return sums.totals(np.zeros(len(values), np.int64), 1)[0]


def exact_to_nats(exact: int) -> float:
    """Return an exact sum in nats, correctly rounded."""
    # exact: multiples of 2^-80 nats.
    return exact / SCALE
