"""Is one system better than another: the bootstrap and approximate randomisation over sums of statistics.

A score of a corpus is a function of one sum of statistics over segments, so a resample needs no text: how often each
segment was drawn, times the statistics of all systems side by side, is one matrix product, and exact in float64, as
statistics are integers and their sums stay below 2^53. Draws and rules are those of sacreBLEU (`significance.py`), which
took them from Moses and MultEval, so intervals agree but for its float32 arithmetic, and p-values agree.

The bootstrap's p-value by that rule is lenient: it counts one side only, so where there is no difference some 12 % of texts
give p < 0.05 (17 % of texts of 10 segments; simulated). Randomisation keeps to its 5 %, and the bootstrap's interval of the
difference to about 6 %: where they disagree, believe these.

Sources: Koehn (2004), "Statistical significance tests for machine translation evaluation" (paired bootstrap); Riezler &
Maxwell (2005), "On some pitfalls in automatic evaluation and significance testing for MT" (approximate randomisation);
Noreen (1989), "Computer-intensive methods for testing hypotheses" (both, and the + 1 in p-values).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import UsageError
from lmgauge.numerics.intervals import BOOTSTRAP, Interval
from lmgauge.tasks.metrics.protocol import Statistics
from lmgauge.threads import run_ranges, thread_count

Floats = NDArray[np.float64]

DEFAULT_RESAMPLES = 1_000
DEFAULT_TRIALS = 10_000
DEFAULT_SEED = 12345
UNITS = 1 << 20
"""Most rows of statistics that are kept; of more segments, neighbours are added up."""

MOST_DRAWS = 1_000_000
"""Most resamples, or trials."""

_LEVEL = 0.95
_TAIL = 40  # one in so many resamples lies outside the interval on either side
# Rows of draws at a time, and how many segments are multiplied at a time: small enough for a core's cache.
_ROWS, _CHUNK = 64, 1 << 13
_WHOLE = 1 << 16  # segments up to which all statistics are held as float64
_ROUNDING = 1e-12
_WORD = 64  # bits of the generator's words
# Coins held at a time (in bits), and trials: enough to be worth the tables of sums that each block begins with.
_BITS, _MOST_TRIALS = 1 << 29, 2048
_COINS_PER_THREAD = 1 << 24  # below this a second thread costs more than it saves


class Estimate(NamedTuple):
    """What resamples say of a figure: their mean, the interval, and half its width, which is what people print after ±.

    The jackknife has no resamples, and so no mean of them.
    """

    mean: float | None
    interval: Interval
    half_width: float


class UnitSums:
    """Statistics of ever more segments in bounded memory: where they become too many, neighbours are added pairwise.

    A unit is then 2^j segments in a row (the last one may have fewer), whatever the sizes of the parts were that came in.
    """

    def __init__(self, columns: int, limit: int = UNITS) -> None:
        """Begin with nothing.

        Args:
            columns: statistics a segment.
            limit: most units kept, even and at least 2.
        """
        if limit < 2 or limit % 2:
            raise UsageError(f"limit: {limit} units cannot be added up in pairs; give an even number, 2 or more")
        self._limit, self._columns = limit, columns
        self._units = np.zeros((0, columns), dtype=np.int64)
        self.segments_per_unit = 1
        self.segments = 0

    def add(self, rows: Statistics) -> None:
        """Takes the statistics of further segments, int64 [segments, columns]."""
        while len(rows):
            if self.segments == self._limit * self.segments_per_unit:
                self._halve()
            taken = rows[: self._limit * self.segments_per_unit - self.segments]
            self._put(taken)
            rows = rows[len(taken) :]

    def _put(self, rows: Statistics) -> None:
        per = self.segments_per_unit
        first, last = self.segments // per, (self.segments + len(rows) - 1) // per
        if last >= len(self._units):
            room = np.zeros((min(self._limit, max(last + 1, 2 * len(self._units))), self._columns), dtype=np.int64)
            room[: len(self._units)] = self._units
            self._units = room
        if per == 1:
            self._units[first : last + 1] = rows
        else:
            starts = np.maximum(np.arange(first, last + 1) * per - self.segments, 0)
            self._units[first : last + 1] += np.add.reduceat(rows, starts, axis=0)
        self.segments += len(rows)

    def _halve(self) -> None:
        kept = self._units[0::2] + self._units[1::2]
        self._units[: len(kept)] = kept
        self._units[len(kept) :] = 0
        self.segments_per_unit *= 2

    def rows(self) -> Statistics:
        """The sums of each unit, int64 [units, columns]."""
        return self._units[: -(-self.segments // self.segments_per_unit)]

    @property
    def total(self) -> NDArray[np.int64]:
        """The sum over all segments, int64 [columns]."""
        return np.asarray(self.rows().sum(axis=0, dtype=np.int64))


def bootstrap_sums(statistics: Sequence[Statistics], resamples: int, seed: int) -> list[Floats]:
    """Sums of statistics over segments drawn with replacement, the same segments for every system.

    The draws are those of `numpy.random.default_rng(seed).choice(n, (resamples, n))`.

    Args:
        statistics: of each system, int64 [segments, columns].
        resamples: how often to draw.
        seed: of the draws.

    Returns:
        Of each system float64 [resamples, columns], exact.

    Raises:
        UsageError: no segments, resamples below 1, or a seed below 0.

    >>> sums, = bootstrap_sums([np.array([[1], [10], [100]])], resamples=2, seed=12345)
    >>> sums.tolist()  # choice(3, (2, 3)) is [[2, 0, 2], [0, 0, 2]]
    [[201.0], [102.0]]
    """
    segments = _checked(statistics, resamples, seed)
    state = _generator_state(seed)
    found = np.empty((resamples, sum(part.shape[1] for part in statistics)))
    counts = np.empty((min(resamples, _ROWS), segments), dtype=np.uint8)
    beside = _Beside(statistics)
    for begin in range(0, resamples, _ROWS):
        block = counts[: resamples - begin]
        _native.draw_counts(state, block)
        found[begin : begin + len(block)] = beside.products(block)
    return _apart(found, statistics)


class _Beside:
    """Statistics of systems side by side, as factors of matrix products; of many segments some are float64 at a time."""

    def __init__(self, statistics: Sequence[Statistics]) -> None:
        self._statistics, self._segments = statistics, len(statistics[0])
        self._whole = self._factors(0, self._segments) if self._segments <= _WHOLE else None

    def _factors(self, begin: int, end: int) -> Floats:
        return np.concatenate([part[begin:end] for part in self._statistics], axis=1, dtype=np.float64)

    def products(self, weights: NDArray[np.uint8]) -> Floats:
        """Weights [rows, segments] times statistics: float64 [rows, columns of all systems]."""
        total = np.zeros((len(weights), sum(part.shape[1] for part in self._statistics)))
        for begin in range(0, self._segments, _CHUNK):
            end = min(begin + _CHUNK, self._segments)
            factors = self._factors(begin, end) if self._whole is None else self._whole[begin:end]
            total += weights[:, begin:end].astype(np.float64) @ factors
        return total


def _apart(products: Floats, statistics: Sequence[Statistics]) -> list[Floats]:
    ends = np.cumsum([part.shape[1] for part in statistics])
    return [np.ascontiguousarray(part) for part in np.split(products, ends[:-1], axis=1)]


def _generator_state(seed: int) -> NDArray[np.uint64]:
    """The state of NumPy's default generator with this seed, as the kernel keeps it."""
    kept = np.random.PCG64(seed).state["state"]
    low = (1 << 64) - 1
    numbers = (kept["state"] >> 64, kept["state"] & low, kept["inc"] >> 64, kept["inc"] & low, 0, 0)
    return np.array(numbers, dtype=np.uint64)


def randomized_sums(
    first: Statistics, others: Sequence[Statistics], trials: int, seed: int, threads: int | None = None
) -> list[tuple[Floats, Floats]]:
    """Sums of two systems' statistics after tossing a coin, for each segment, over whose output is whose.

    The coins are those of `numpy.random.default_rng(seed).integers(2, size=(trials, n), dtype=bool)`, the same for all.

    Args:
        first: statistics of the system the others are held against, int64 [segments, columns].
        others: statistics of the others.
        trials: how often to toss.
        seed: of the coins.
        threads: how many; no number depends on it.

    Returns:
        For each of the others the sums of both mixed systems, float64 [trials, columns], exact.

    Raises:
        UsageError: no segments, trials below 1, or a seed below 0.
    """
    segments = _checked([first, *others], trials, seed)
    apart = [np.ascontiguousarray(first - other) for other in others]
    moved = [np.empty((trials, first.shape[1]), dtype=np.int64) for _ in others]
    workers = max(1, min(thread_count(threads), trials * segments // _COINS_PER_THREAD))
    for begin, end, bits in _coins(segments, trials, seed):
        for rows, sums in zip(apart, moved, strict=True):
            _add_chosen(bits, rows, sums[begin:end], workers)
    mixed = []
    for sums, other in zip(moved, others, strict=True):
        mine = other.sum(axis=0, dtype=np.int64) + sums
        mixed.append((mine.astype(np.float64), (first.sum(axis=0, dtype=np.int64) - sums).astype(np.float64)))
    return mixed


def _add_chosen(bits: NDArray[np.uint64], rows: Statistics, sums: Statistics, workers: int) -> None:
    run_ranges(lambda low, high: _native.coin_sums(bits, low, rows, sums[low:high]), len(sums), workers)


def _coins(segments: int, trials: int, seed: int) -> Iterator[tuple[int, int, NDArray[np.uint64]]]:
    """Begin and end of some trials, and their coins as bits, the lowest of each word first, with two spare words.

    NumPy tosses with the bits of its generator, one after the other, so they need not become truth values.
    """
    generator = np.random.PCG64(seed)
    # As many trials as begin and end with a word.
    step = _WORD // math.gcd(segments, _WORD)
    rows = step * max(1, min(_MOST_TRIALS, _BITS // segments) // step)
    for begin in range(0, trials, rows):
        end = min(begin + rows, trials)
        words = -(-(end - begin) * segments // _WORD)
        bits = np.zeros(words + 2, dtype=np.uint64)
        bits[:words] = generator.random_raw(words)
        yield begin, end, bits


def estimate(scores: Floats, seed: int, units: int = 0) -> Estimate:
    """Mean, 95 % interval and half its width, of the scores of resamples.

    Args:
        scores: float64 [resamples], at least 40.
        seed: they were drawn with, to be told.
        units: how many segments they were drawn from, to be told.

    Raises:
        UsageError: fewer than 40 resamples, of which none lies outside such an interval.
    """
    resamples = len(scores)
    if resamples < _TAIL:
        raise UsageError(f"resamples: {resamples} are too few for an interval of 95 %; give at least {_TAIL}")
    ordered, outside = np.sort(scores), resamples // _TAIL
    low, high = float(ordered[outside]), float(ordered[resamples - outside - 1])
    interval = Interval(low, high, _LEVEL, BOOTSTRAP, units=units, resamples=resamples, seed=seed)
    return Estimate(float(scores.mean()), interval, 0.5 * (high - low))


def bootstrap_p_value(first: Floats, second: Floats, difference: float) -> float:
    """P-value of the paired bootstrap: how often a difference strays from the usual one by more than the real one is large.

    Args:
        first: scores of one system in each resample, float64 [resamples].
        second: those of the other, in the same resamples.
        difference: of the scores over all segments, either way round.
    """
    differences = np.abs(second - first)
    strayed = int(np.count_nonzero(differences - differences.mean() > abs(difference)))
    return (strayed + 1) / (len(first) + 1)


def randomization_p_value(first: Floats, second: Floats, difference: float, differing: int) -> float:
    """P-value of approximate randomisation: how often mixed systems differ by more than the real ones.

    As in sacreBLEU, ties do not count. Systems that differ in k segments only give the real difference again in 2 of 2^k
    mixtures, without which even k = 1 would seem beyond doubt; so no p-value is below that share, which is nothing where
    test sets differ in more than some dozen segments.

    Args:
        first: scores of one mixed system in each trial, float64 [trials].
        second: those of the other.
        difference: of the scores of the real systems, either way round.
        differing: segments in which the systems' statistics differ.
    """
    strayed = int(np.count_nonzero(np.abs(first - second) > abs(difference)))
    return max((strayed + 1) / (len(first) + 1), min(1.0, 2.0 ** (1 - differing)))


def swapped_sums(first: Statistics, other: Statistics) -> tuple[Floats, Floats]:
    """Sums of two systems' statistics under all swaps of rows between them, but for those that mirror another.

    Args:
        first: statistics of one system, int64 [rows, columns]; few rows, as there are 2^(rows - 1) swaps.
        other: of the other.

    Returns:
        The sums of both mixed systems, float64 [2^(rows - 1), columns], exact; those of the real systems first.
    """
    moved = np.zeros((1, first.shape[1]), dtype=np.int64)
    for row in (other - first)[1:]:
        moved = np.concatenate((moved, moved + row))
    mine, theirs = first.sum(axis=0, dtype=np.int64) + moved, other.sum(axis=0, dtype=np.int64) - moved
    return mine.astype(np.float64), theirs.astype(np.float64)


def swapped_p_value(first: Floats, second: Floats) -> float:
    """Exact p-value of randomisation: the share of all swaps after which systems differ by as much as the real ones.

    The real systems are one of these swaps, so no p-value of n rows is below 2 / 2^n.

    Args:
        first: scores of one mixed system, float64 [swaps]; of the real ones first.
        second: those of the other.
    """
    differences = np.abs(second - first)
    # What equals the real difference may differ from it by rounding.
    reach = differences[0] - _ROUNDING * max(float(np.abs(first).max()), float(np.abs(second).max()))
    return float(np.count_nonzero(differences >= reach)) / len(differences)


def _checked(statistics: Sequence[Statistics], draws: int, seed: int) -> int:
    segments = len(statistics[0])
    if not segments or {len(part) for part in statistics} != {segments}:
        raise UsageError("statistics of systems to be compared are of the same segments, one at least")
    whole = isinstance(draws, Integral) and isinstance(seed, Integral)
    if not whole or not 1 <= draws <= MOST_DRAWS or seed < 0:
        raise UsageError(
            f"cannot draw {draws!r} times with seed {seed!r}; give 1 to {MOST_DRAWS:,}, and a seed of 0 or more"
        )
    return segments
