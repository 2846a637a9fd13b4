"""The bootstrap, swaps of systems, and the jackknife, over sums of statistics: one resampler, one rule for percentiles.

A score of a corpus is a function of one sum of statistics over segments, so a resample needs no text: how often each
segment was drawn, times the statistics of all systems side by side, is one matrix product, and exact in float64, as
statistics are integers and their sums stay below 2^53.

The draws are sacreBLEU's, to the bit (`sacrebleu_draws`, `sacrebleu_coins`): those of NumPy's default generator, PCG64, in
the order in which sacreBLEU asks for them. So intervals agree with its own but for its float32 arithmetic, and p-values
agree (`significance.py`). Interval ends are the resampled scores that leave a fortieth of all resamples outside on either
side, as in sacreBLEU and Moses (`percentile_interval`).

Sources: Koehn (2004), "Statistical significance tests for machine translation evaluation" (paired bootstrap); Riezler &
Maxwell (2005), "On some pitfalls in automatic evaluation and significance testing for MT" (approximate randomization);
Noreen (1989), "Computer-intensive methods for testing hypotheses" (both); Efron & Tibshirani (1993), "An Introduction to the
Bootstrap", chapter 11 (jackknife; `intervals.spread` has the closed form for ratios of two sums).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import MOST, check_whole
from lmgauge.base.threads import run_ranges, thread_count
from lmgauge.numerics.exact import Floats
from lmgauge.numerics.intervals import BOOTSTRAP, LEVEL, Interval, Spread, spread_of

# -----------------------------------------------------------------------------------------------------------------------
# Sums of statistics by unit and by code, of segments that come in parts: what is resampled, swapped or left out.
# Statistics are whole numbers, int64 [segments, columns], so that every sum is exact and no order or division changes it.


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


# -----------------------------------------------------------------------------------------------------------------------
# Numbers that look random and are the same on every machine and in every version: the mixing step of SplitMix64.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Step between the states of SplitMix64: 2**64 over the golden ratio, odd."""


def mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the output of the SplitMix64 generator (Steele, Lea, Flood 2014) for its states: it permutes 64-bit numbers."""
    # state: uint64 [any shape].
    # -> uint64 of the same shape.
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


DEFAULT_RESAMPLES = 1_000
"""Of the bootstrap."""

DEFAULT_TRIALS = 10_000
"""Of randomization: swaps of two systems, or signs of their differences."""

MOST_DRAWS = 1_000_000
"""Most resamples, or swaps, whose sums are held."""

_TAIL = 40  # one in this many resamples lies outside the interval on either side
# Rows of draws at a time, and how many segments are multiplied at a time: small enough for a core's cache.
_ROWS, _CHUNK = 64, 1 << 13
_WHOLE = 1 << 16  # segments up to which all statistics are held as float64
_WORD = 64  # bits of the generator's words
# Coins held at a time (in bits), and trials: enough to be worth the tables of sums that each block begins with.
_BITS, _MOST_TRIALS = 1 << 29, 2048
_COINS_PER_THREAD = 1 << 24  # below this a second thread costs more than it saves


def check_draws(draws: int, seed: int, most: int | None = None) -> None:
    """Refuse numbers that nothing can be drawn with."""
    check_whole("resamples", draws, 1, MOST if most is None else most)
    check_whole("seed", seed, 0)


class Estimate(NamedTuple):
    """A figure's interval, half its width, which is what people print after ±, and the mean of resamples, if any."""

    mean: float | None
    interval: Interval
    half_width: float


def percentile_interval(scores: Floats, seed: int, units: int = 0) -> Estimate:
    """Return the mean, the 95 % interval and half its width, of the scores of resamples."""
    # The ends are the scores with exactly n // 40 of the n resamples below, and above (Koehn 2004, section 3).
    # scores: float64 [resamples], at least 40.
    resamples = len(scores)
    if resamples < _TAIL:
        raise UsageError(f"resamples: {resamples} are too few for an interval of 95 %; give at least {_TAIL}")
    # 100 scores: 100 // 40 = 2 lie outside on either side, the ends are the 3rd and the 98th.
    ordered, outside = np.sort(scores), resamples // _TAIL
    low, high = float(ordered[outside]), float(ordered[resamples - outside - 1])
    interval = Interval(low, high, LEVEL, BOOTSTRAP, units=units, resamples=resamples, seed=seed)
    return Estimate(float(scores.mean()), interval, 0.5 * (high - low))


def bootstrap_sums(statistics: Sequence[Statistics], resamples: int, seed: int) -> list[Floats]:
    """Return sums of statistics over segments drawn with replacement, the same segments for every system."""
    # statistics: of each system, int64 [segments, columns].
    # -> of each system float64 [resamples, columns], exact.
    # rows [1], [10], [100], drawn [[2, 0, 1], [0, 1, 2]] times -> sums 102 and 210.
    segments = _check_statistics(statistics, resamples, seed)
    products = np.empty((resamples, sum(part.shape[1] for part in statistics)))
    factors, begin = _Factors(statistics), 0
    for counts in sacrebleu_draws(segments, resamples, seed):
        products[begin : begin + len(counts)] = factors.products(counts)
        begin += len(counts)
    ends = np.cumsum([part.shape[1] for part in statistics])
    return [np.ascontiguousarray(part) for part in np.split(products, ends[:-1], axis=1)]


def sacrebleu_draws(segments: int, resamples: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    """Yield how often each segment is drawn in some of the resamples, by the draws of sacreBLEU."""
    # They are those of `numpy.random.default_rng(seed).choice(segments, (resamples, segments))`, counted as they are drawn.
    # -> uint8 [some resamples, segments]; holds until the next is asked for.
    # [counts.tolist() for counts in sacrebleu_draws(3, 2, seed=12345)] -> [[[1, 0, 2], [2, 0, 1]]]
    state = _generator_state(seed)
    counts = np.empty((min(resamples, _ROWS), segments), dtype=np.uint8)
    for begin in range(0, resamples, _ROWS):
        block = counts[: resamples - begin]
        _native.draw_counts(state, block)
        yield block


def _generator_state(seed: int) -> NDArray[np.uint64]:
    # State of NumPy's default generator with this seed, as the kernel keeps it.
    state = np.random.PCG64(seed).state["state"]
    low = (1 << 64) - 1
    numbers = (state["state"] >> 64, state["state"] & low, state["inc"] >> 64, state["inc"] & low, 0, 0)
    return np.array(numbers, dtype=np.uint64)


class _Factors:
    """Statistics of systems side by side, as factors of matrix products; of many segments some are float64 at a time."""

    def __init__(self, statistics: Sequence[Statistics]) -> None:
        self._statistics, self._segments = statistics, len(statistics[0])
        self._whole = self._factors(0, self._segments) if self._segments <= _WHOLE else None

    def _factors(self, begin: int, end: int) -> Floats:
        return np.concatenate([part[begin:end] for part in self._statistics], axis=1, dtype=np.float64)

    def products(self, weights: NDArray[np.uint8]) -> Floats:
        # Weights [rows, segments] times statistics: float64 [rows, columns of all systems].
        total = np.zeros((len(weights), sum(part.shape[1] for part in self._statistics)))
        for begin in range(0, self._segments, _CHUNK):
            end = min(begin + _CHUNK, self._segments)
            factors = self._factors(begin, end) if self._whole is None else self._whole[begin:end]
            # Whole numbers below 2^53 add exactly in float64, so that blocks and BLAS threads change no digit.
            total += weights[:, begin:end].astype(np.float64) @ factors
        return total


def randomized_sums(
    first: Statistics, others: Sequence[Statistics], trials: int, seed: int, threads: int | None = None
) -> list[tuple[Floats, Floats]]:
    """Return sums of two systems' statistics after tossing a coin, for each segment, over whose output is whose."""
    # first: statistics of the system the others are compared with, int64 [segments, columns].
    # -> for each of the others the sums of both mixed systems, float64 [trials, columns], exact.
    segments = _check_statistics([first, *others], trials, seed)
    differences = [np.ascontiguousarray(first - other) for other in others]
    moved = [np.empty((trials, first.shape[1]), dtype=np.int64) for _ in others]
    workers = max(1, min(thread_count(threads), trials * segments // _COINS_PER_THREAD))
    for begin, end, bits in sacrebleu_coins(segments, trials, seed):
        for rows, sums in zip(differences, moved, strict=True):
            _add_chosen(bits, rows, sums[begin:end], workers)
    mixed = []
    for sums, other in zip(moved, others, strict=True):
        # `sums` has first - other of the segments whose coin is 1: the mixed system is `other` with these exchanged. first
        # [1], [2], other [10], [20], coins [0, 1]: mine 30 + (2 - 20) = 12, theirs 3 + 18 = 21.
        mine = other.sum(axis=0, dtype=np.int64) + sums
        mixed.append((mine.astype(np.float64), (first.sum(axis=0, dtype=np.int64) - sums).astype(np.float64)))
    return mixed


def _add_chosen(bits: NDArray[np.uint64], rows: Statistics, sums: Statistics, workers: int) -> None:
    run_ranges(lambda low, high: _native.coin_sums(bits, low, rows, sums[low:high]), len(sums), workers)


def sacrebleu_coins(segments: int, trials: int, seed: int) -> Iterator[tuple[int, int, NDArray[np.uint64]]]:
    """Yield the begin and the end of some trials, and their coins as bits, by the coins of sacreBLEU."""
    # They are those of `numpy.random.default_rng(seed).integers(2, size=(trials, segments), dtype=bool)`: NumPy tosses with
    # the bits of its generator, one after the other, so they need not become truth values.
    # -> two numbers of trials, and uint64 words with the lowest bit first, two spare ones at the end.
    generator = np.random.PCG64(seed)
    # As many trials as begin and end with a word.
    # 3 segments: 64 trials are 192 coins, 3 words; 96 segments: gcd 32, 2 trials are 192 coins. So each block begins with a
    # fresh word, as in one draw of all.
    step = _WORD // math.gcd(segments, _WORD)
    rows = step * max(1, min(_MOST_TRIALS, _BITS // segments) // step)
    for begin in range(0, trials, rows):
        end = min(begin + rows, trials)
        words = -(-(end - begin) * segments // _WORD)
        bits = np.zeros(words + 2, dtype=np.uint64)
        bits[:words] = generator.random_raw(words)
        yield begin, end, bits


def _check_statistics(statistics: Sequence[Statistics], draws: int, seed: int) -> int:
    segments = len(statistics[0])
    if not segments or {len(part) for part in statistics} != {segments}:
        raise UsageError("statistics of systems to be compared are of the same segments, one at least")
    check_draws(draws, seed, MOST_DRAWS)
    return segments


def jackknife(
    scores: Callable[[Floats], Floats], statistics: Sequence[Statistics], sizes: Floats, unit: str
) -> list[tuple[Spread | None, Spread | None]]:
    """Return each system's score with its standard error, and its difference to the first (None for the first itself)."""
    # Each row is left out once, for all systems alike; see `intervals.spread_of`.
    # scores: the score of each row of sums, float64 [rows, columns] -> float64 [rows]; statistics: of each system int64
    # [rows, columns], in reading order where documents are unknown; sizes: float64 [rows], how much reference each row has.
    spreads: list[tuple[Spread | None, Spread | None]] = []
    first: tuple[float, Floats] | None = None
    for rows in statistics:
        total = rows.sum(axis=0, dtype=np.int64)
        # The whole and the rest without each row, by one formula.
        parts = (total - rows[begin : begin + _CHUNK] for begin in range(0, len(rows), _CHUNK))
        values = np.concatenate([scores(part.astype(np.float64)) for part in (total[None], *parts)])
        figure, falls = float(values[0]), (values[0] - values[1:]) * (sizes.sum() - sizes)
        first = first or (figure, falls)
        apart = None if not spreads else spread_of(figure - first[0], falls - first[1], sizes, unit)
        spreads.append((spread_of(figure, falls, sizes, unit), apart))
    return spreads


# -----------------------------------------------------------------------------------------------------------------------
# Tests of systems whose score is not a sum, such as BLEU, and the adjustment of p-values where several are made.
#
# Of two models on one text the difference is a ratio of sums: its test is Student's t of the same error as its interval
# (`intervals.Spread.p_value`). Systems are swapped instead, unit by unit, or resampled (`resampling.py`). Where several
# models
# are compared, p-values are adjusted as Holm (1979) does.
T = TypeVar("T")


def bootstrap_p_value(first: Floats, second: Floats, difference: float) -> float:
    """Return the p-value of the paired bootstrap by the rule of sacreBLEU and Moses."""
    # Koehn 2004; Noreen 1989 for the + 1.
    # It says how often a difference strays from the usual one by more than the real one is large. The rule is lenient: it
    # counts one side only, so where there is no difference some 12 % of texts give p < 0.05 (17 % of texts of 10 segments;
    # simulated). The swaps of `randomization_p_value` keep to their 5 %, and the bootstrap's interval of the difference to
    # about 6 %: where they disagree, believe these.
    # first: scores of one system in each resample, float64 [resamples].
    # bootstrap_p_value([5.0, 5.0, 5.0, 5.0], [6.0, 8.0, 3.0, 15.0], 2.0) -> 0.4
    differences = np.abs(second - first)
    strayed = int(np.count_nonzero(differences - differences.mean() > abs(difference)))
    return (strayed + 1) / (len(first) + 1)


def randomization_p_value(first: Floats, second: Floats, difference: float, differing: int) -> float:
    """Return the p-value of approximate randomization: how often mixed systems differ by more than the real ones."""
    # As in sacreBLEU, ties do not count (Riezler & Maxwell 2005). Systems that differ in k segments only give the real
    # difference again in 2 of 2^k mixtures, without which even k = 1 would seem beyond doubt; so no p-value is below that
    # share, which is nothing where test sets differ in more than some dozen segments.
    # first: scores of one mixed system in each trial, float64 [trials].
    strayed = int(np.count_nonzero(np.abs(first - second) > abs(difference)))
    return max((strayed + 1) / (len(first) + 1), min(1.0, 2.0 ** (1 - differing)))


def swap_p_values(differences: Floats) -> list[float]:
    """Return p-values of sums above 0 of differences by swaps of the two in whole units, adjusted for the number of sums.

    A swap turns the sign of a unit's differences, of all sums at once. Each sum counts in units of the root of its squares,
    which no swap changes, and is held against the largest of all sums in each swap (Westfall & Young 1993, "Resampling-based
    multiple testing"): so p is the chance that any of the tests raises a false alarm at that level. Of few units all swaps
    are made, else as many as `DEFAULT_TRIALS`, the same each time.
    """
    # differences: float64 [units, sums]
    units = len(differences)
    scales = np.sqrt((differences**2).sum(axis=0))
    standard = differences / np.where(scales, scales, 1.0)
    if 2**units <= DEFAULT_TRIALS:
        bits = (np.arange(2**units)[:, None] >> np.arange(units)) & 1
    else:
        bits = np.random.Generator(np.random.PCG64(0)).integers(2, size=(DEFAULT_TRIALS - 1, units))
        bits = np.concatenate((np.zeros((1, units), bits.dtype), bits))
    sums = (1.0 - 2.0 * bits) @ standard
    observed, largest = sums[0], sums.max(axis=1)
    # The swap that swaps nothing is one of them; rounding is not to make it smaller than itself.
    return [float(np.mean(largest >= value - 1e-9)) for value in observed]


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for the number of tests (Holm 1979): each is the chance of any false alarm at that level."""
    # p_values: [tests]; None where there is no test, which stays None.
    # holm([0.01, 0.04, None, 0.03]) -> [0.03, 0.06, None, 0.06]
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, i) in enumerate(known):
        # p 0.01, 0.03, 0.04 of three tests: 0.01 * 3, 0.03 * 2, and 0.04 * 1, raised to 0.06, as a larger p is never surer.
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[i] = highest
    return adjusted


def holm_adjusted(tests: Iterable[T], *, best_of: int = 2) -> tuple[T, ...]:
    """Return results of tests, their `p_value_holm` the `p_value` adjusted for the number of tests."""
    # best_of: of how many models the figures themselves chose the best, with which all others are compared. Each of them
    # might have been the best, on one side of its tests: best_of families at p / 2 each (Bonferroni; Holm within each).
    made: list[Any] = list(tests)
    adjusted = [p if p is None else min(1.0, p * best_of / 2) for p in holm([test.p_value for test in made])]
    return tuple(replace(test, p_value_holm=p) for test, p in zip(made, adjusted, strict=True))
