"""How sure a figure is: the standard error of a ratio of sums over what is independent, with its interval and test.

Every figure of a corpus is a ratio of two sums: total nats over total events, characters or bytes. What varies from text to
text is the document: the lines of one hearing, article or book are alike, so the document is the unit of the standard error.
Where documents are not known, neighboring segments may belong to one. Then the standard error of independent segments is
held against that of the slow waves along the text, and the larger one counts.

* **Known units**: the jackknife, which leaves out one document at a time (Efron & Tibshirani 1993, "An Introduction to the
  Bootstrap", chapter 11), with Student's quantiles. Degrees of freedom follow the effective number of documents,
  (sum l)^2 / sum l^2 for sizes l (Carter, Schnepel & Steigerwald 2017, eq. 12, with equal variances): where one
  document is half of the text, many small ones beside it do not make the figure sure.
* **Unknown units**, and fewer than six documents, which cannot tell how documents vary: if neighbors are alike, the slow
  waves along the text are larger than the fast ones. Each of the cosine transforms of the residuals estimates the variance
  of their sum; the mean of the B slowest, with Student's t of B degrees of freedom, is a test that holds under dependence
  of a range far below n / B (Lazarus, Lewis, Stock & Watson 2018, "HAR inference: recommendations for practice"). B is
  found by doubling: as long as the next B waves are as large as the B slower ones, nothing speaks against independence.
  Where they are smaller, a quarter of these B waves is kept.
* **Fewer than six units** of any kind give neither an interval nor a test.

Interval and test are of one error and one Student's t: a 95 % interval leaves out 0 if and only if p is below 0.05.

What is not in the sample cannot widen an interval. Where a kind of document is rare and heavy (5 of 363 books are verse,
long and difficult), samples without it have intervals that miss. Corrections for skewness (Johnson 1978, Hall 1992), a log
scale and the bootstrap-t were tried on such samples and miss as often: nothing in the sample tells.

Perplexity and bits are increasing functions of such a ratio, so their intervals are the ratio's, mapped: `Interval.mapped`.
An interval is made around the figure that is shown, bit for bit, so it always holds it: see `total` of `spread`.
docs/explanation/intervals.md tells how often these intervals and tests err on real text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmgauge.base.errors import InputError
from lmgauge.numerics.checks import refuse
from lmgauge.numerics.exact import Floats, Ints, exact_sum

BOOTSTRAP = "bootstrap"
JACKKNIFE = "jackknife"
WAVES = "slow waves"
DOCUMENTS, SEGMENTS, UNKNOWN = "documents", "segments", "unknown"

LEVEL = 0.95
"""Share of intervals that hold the true value, where nobody asked for another."""

_FEWEST_WAVES = 8
FEWEST_POINTS = 2 * _FEWEST_WAVES + 1
"""With fewer segments nothing tells whether neighbors are alike."""
# Waves are as large as slower ones if a test at 5 %, one-sided, does not tell them apart.
_Z_ALIKE = 1.6448536269514722
# A wave is slow beside what is pooled here: 2^k neighboring segments of texts of more than 2^16.
_MOST_POINTS = 1 << 16


@dataclass(frozen=True)
class Interval:
    """A confidence interval, how it was made, and what it takes as independent."""

    low: float
    high: float
    level: float  # share of such intervals that hold the true value
    method: str
    # what is taken as independent: "documents"; "segments", where each is a document or (task metrics) is taken as one;
    # "unknown", where documents are not known or fewer than six
    unit: str = SEGMENTS
    units: int = 0  # how many there are (segments, where unknown)
    alike: float = 1.0  # where unknown, how many times wider the interval is than that of independent segments; 1 or more
    effective: int = 0  # as how many units of like size the units count; fewer where some are much larger than others
    resamples: int | None = None
    seed: int | None = None

    def __repr__(self) -> str:
        """Return the ends, the level, and what is taken as independent."""
        unit = self.unit.replace(UNKNOWN, SEGMENTS)
        return f"<Interval: {self.low:.6g} to {self.high:.6g}, level {self.level:g}, of {self.units:,} {unit}>"

    def mapped(self, function: Callable[[float], float]) -> Interval:
        """Return the interval of an increasing function of the figure; its ends are the function of the ends."""
        # function: from the unit of the figure to another, e.g. bits to perplexity.
        return replace(self, low=function(self.low), high=function(self.high))


@dataclass(frozen=True)
class Spread:
    """A ratio of sums and its standard error."""

    ratio: float
    error: float
    freedom: int  # degrees of freedom of Student's t
    method: str
    unit: str
    units: int
    alike: float = 1.0

    def interval(self, level: float = LEVEL) -> Interval:
        reach = student_t_quantile(level, self.freedom) * self.error
        return Interval(
            self.ratio - reach, self.ratio + reach, level, self.method, self.unit, self.units, self.alike, self.effective
        )  # fmt: skip

    @property
    def effective(self) -> int:
        """Return the number of units of like size that the units count as; all of them where they are unknown."""
        return self.units if self.unit == UNKNOWN else self.freedom + 1

    @property
    def p_value(self) -> float:
        """Return the two-sided p-value of the hypothesis that the ratio is 0."""
        # Never below 2^(1 - units): the signs of so few could come out alike by chance.
        p = student_t_p_value(self.ratio / self.error, self.freedom) if self.error else float(self.ratio == 0.0)
        return max(p, 2.0 ** (1 - min(self.units, 1000)))

    def detectable(self, level: float = LEVEL, power: float = 0.8) -> float:
        """Return the ratio that a test at this level finds in these units with this power: (z_level + z_power) error."""
        normal = NormalDist()
        return (normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)) * self.error

    def units_needed(self, level: float = LEVEL, effect: float | None = None) -> int | None:
        """Return how many such units a test at this level needs to find this ratio, or another effect, with 80 % power."""
        # The usual normal approximation, n (detectable / effect)^2; six at least, as the signs of fewer cannot come out so
        # one-sided that 5 % is reached (2 of 2^5 is 6 %).
        effect = self.ratio if effect is None else effect
        if not effect:
            return None
        needed = self.units * (self.detectable(level) / effect) ** 2
        return max(math.ceil(needed), FEWEST_UNITS) if needed < 1e15 else None


FEWEST_UNITS = 6
"""With fewer there is no interval, and no test at 5 % can be sure: all signs alike has p = 2 / 2^5."""


def spread(
    numerators: Floats, denominators: Floats, documents: Ints | None = None, *, total: float | None = None
) -> Spread | None:
    """Return sum(numerators) / sum(denominators) with its standard error over what is independent."""
    # numerators: float64 [segments], finite, e.g. nats of each segment, in reading order; denominators: float64 [segments],
    # 0 or more, e.g. its events, characters or bytes; documents: int64 [segments], the document of each; None where
    # documents are not known. Fewer than six are treated as unknown: what can be said is then about text like theirs;
    # total: the sum of the numerators as it is shown, where it is known more exactly than from these.
    something = (numerators != 0.0) | (denominators != 0.0)
    if not something.all():
        numerators, denominators = numerators[something], denominators[something]
        documents = None if documents is None else documents[something]
    if not denominators.any():
        return None
    ratio = (exact_sum(numerators) if total is None else total) / float(denominators.sum())
    over_documents = None
    if documents is not None:
        codes, inverse = np.unique(documents, return_inverse=True)
        unit = SEGMENTS if len(codes) == len(documents) else DOCUMENTS
        upper, lower = (sums_by(inverse, column) for column in (numerators, denominators))
        over_documents = spread_of(ratio, upper - ratio * lower, lower, unit)
    return over_documents or spread_of(ratio, numerators - ratio * denominators, denominators, UNKNOWN)


def sums_by(codes: NDArray[np.integer[Any]], values: Floats) -> Floats:
    """Return the sums of values by their codes."""
    # sums_by([1, 0, 1], [1.0, 2.0, 4.0]) -> [2.0, 5.0]
    # codes: integers [n], from 0; values: float64 [n].
    # -> float64 [highest code + 1].
    return np.asarray(np.bincount(codes, values), np.float64)


def effective_freedom(sizes: Floats) -> int:
    """Return the degrees of freedom of units of these sizes: their effective number, (sum l)^2 / sum l^2, less one."""
    # effective_freedom([5.0, 5.0, 5.0]), effective_freedom([100.0, 1.0, 1.0]) -> (2, 1)
    # sizes: float64 [units], 0 or more.
    # sizes [5, 5, 5] -> 1 / (3 / 9) = 3 units, 2 degrees; [100, 1, 1] -> 1.04 units, and 1 degree is the least.
    shares = sizes / sizes.sum()
    return max(1, math.floor(1.0 / float((shares * shares).sum()) + 1e-6) - 1)


def spread_of(figure: float, deviations: Floats, sizes: Floats, unit: str) -> Spread | None:
    """Return any figure with its standard error: what it falls by without each unit is what a ratio falls by."""
    # deviations: float64 [units], in reading order: the fall without each times the size of the rest; u - R l of a ratio;
    # sizes: float64 [units], 0 or more.
    n, rest = len(sizes), sizes.sum() - sizes
    if np.count_nonzero(sizes) < FEWEST_UNITS or not float(rest.min()) > 0.0 or not np.isfinite(deviations).all():
        return None
    moves = deviations / rest
    # Divided by the largest before squaring: a square can leave float64 where the error itself does not.
    largest = float(np.abs(moves).max()) or 1.0
    # No np.dot: BLAS adds in an order that depends on the number of threads.
    # Efron & Tibshirani (1993), equation 11.5, with the figure itself in place of the mean of those without one unit:
    # sqrt((n - 1) / n sum of moves^2).
    error = largest * math.sqrt((n - 1) / n * float(((moves / largest) ** 2).sum()))
    freedom = effective_freedom(sizes)
    slow = _slow_waves(deviations / sizes.sum()) if unit == UNKNOWN else None
    if slow is not None and error:
        alike = student_t_quantile(LEVEL, slow[1]) * slow[0] / (student_t_quantile(LEVEL, freedom) * error)
        if alike > 1.0:
            return Spread(figure, *slow, WAVES, UNKNOWN, len(sizes), alike)
    return Spread(figure, error, freedom, JACKKNIFE, unit, len(sizes))


def _slow_waves(residuals: Floats) -> tuple[float, int] | None:
    # Standard error of the sum of residuals by the slow waves along them, and how many waves that is.
    # None where the slow waves are no larger than the fast ones, or the series is too short to tell.
    while len(residuals) > _MOST_POINTS:
        # residuals [1, 2, 4, 8, 16] -> [3, 12, 16]: slow waves are the same, fast ones are not asked about.
        residuals = np.add.reduceat(residuals, np.arange(0, len(residuals), 2))
    largest = float(np.abs(residuals).max()) if len(residuals) else 0.0
    if not largest:
        return None
    powers = _wave_powers(residuals / largest)
    sums = np.concatenate(([0.0], np.cumsum(powers)))
    waves = _FEWEST_WAVES
    while (faster := min(2 * waves, len(powers)) - waves) >= _FEWEST_WAVES:
        slow, fast = sums[waves] / waves, (sums[waves + faster] - sums[waves]) / faster
        if _larger(slow, fast, waves, faster):
            # The 32 slowest waves, say, are larger than the next 32: what is alike reaches about so far, and the 8 slowest
            # are safely slower.
            slowest = max(_FEWEST_WAVES, waves // 4)
            return largest * math.sqrt(sums[slowest] / slowest), slowest
        waves *= 2
    return None


def _wave_powers(values: Floats) -> Floats:
    # 2 (sum_i v_i cos(pi k (i + 1/2) / n))^2 for k = 1 .. n - 1, float64 [n - 1].
    # Of independent values with mean 0 the expectation of each is the variance of their sum.
    n = len(values)
    # The discrete cosine transform (type 2) as the Fourier transform of the series and its mirror image, which is symmetric
    # about -1/2: turned by half a step (the exponential) it is real, and twice the sum of cosines.
    spectrum = np.fft.rfft(np.concatenate((values, values[::-1])))[1:n]
    cosines = (spectrum * np.exp(-0.5j * np.pi * np.arange(1, n) / n)).real / 2.0
    powers: Floats = 2.0 * cosines * cosines
    return powers


def _larger(first: float, second: float, first_freedom: int, second_freedom: int) -> bool:
    # F's tail is Paulson's approximation (1942, Annals of Mathematical Statistics 13): good from 8 degrees of freedom on.
    if not second > 0.0:
        return first > 0.0
    a, b = 2.0 / (9 * first_freedom), 2.0 / (9 * second_freedom)
    # The cube roots of numerator and denominator are nearly normal, with mean 1 - 2 / (9 f) and variance 2 / (9 f) (Wilson
    # & Hilferty 1931).
    root = (first / second) ** (1 / 3)
    return bool((1 - b) * root - (1 - a) > _Z_ALIKE * math.sqrt(b * root * root + a))


def ratio_interval(
    numerators: ArrayLike,
    denominators: ArrayLike,
    documents: Ints | None = None,
    *,
    level: float = LEVEL,
    total: float | None = None,
) -> Interval | None:
    """Return the interval of sum(numerators) / sum(denominators), over documents or, where unknown, as `spread` does."""
    # numerators: float64 [segments], in reading order; `inf` where a segment has a zero-probability event; denominators:
    # float64 [segments], 0 or more; documents: int64 [segments], or None where they are not known.
    # -> the interval, in numerator units per denominator unit, not below 0 if no numerator is; (inf, inf) if a numerator is
    # infinite; None if fewer than six units have anything.
    upper, lower = _checked(numerators, denominators)
    infinite = np.isinf(upper)
    some = bool(infinite.any())
    figure = spread(np.where(infinite, 0.0, upper), lower, documents, total=None if some else total)
    if figure is None:
        return None
    interval = figure.interval(level)
    if some:
        end = float(upper[infinite].sum())
        return replace(interval, low=end, high=end, alike=1.0)
    # Student's curve knows no bounds; a ratio of sums that are not negative is not negative.
    return replace(interval, low=max(0.0, interval.low)) if upper.min() >= 0.0 else interval


def _checked(numerators: ArrayLike, denominators: ArrayLike) -> tuple[Floats, Floats]:
    upper = np.asarray(numerators, dtype=np.float64)
    lower = np.asarray(denominators, dtype=np.float64)
    if upper.ndim != 1 or upper.shape != lower.shape:
        shapes = f"{upper.shape} and {lower.shape}"
        raise InputError(f"an interval needs a numerator and a denominator for each segment, not shapes {shapes}")
    refuse(np.isnan(upper), upper, "numerator", "not a number")
    refuse(~((lower >= 0.0) & np.isfinite(lower)), lower, "denominator", "not a finite count of 0 or more")
    if (upper == math.inf).any() and (upper == -math.inf).any():
        raise InputError("numerators hold both inf and -inf: their sum means nothing; remove one of them")
    return upper, lower


# Above this many degrees of freedom the normal curve is as good: p-values near 0.05 agree within 0.002.
_NORMAL_FROM = 200


def student_t_p_value(t: float, freedom: int) -> float:
    """Return the two-sided p-value of Student's t, by the finite series for whole degrees of freedom."""
    # Source: Abramowitz & Stegun (1964), "Handbook of Mathematical Functions", 26.7.3 and 26.7.4.
    if freedom > _NORMAL_FROM:
        return math.erfc(abs(t) / math.sqrt(2))
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= (k - 1) / k * cosine * cosine
        total += term
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return min(1.0, max(0.0, 1.0 - inside))


@lru_cache(maxsize=4096)  # a table of slices asks for the same few again and again
def student_t_quantile(level: float, freedom: int) -> float:
    """Return what Student's t stays within, on both sides, with this probability."""
    low, high = 0.0, 1.0
    while student_t_p_value(high, freedom) > 1.0 - level:
        high *= 2.0
    for _ in range(100):
        middle = (low + high) / 2.0
        if student_t_p_value(middle, freedom) > 1.0 - level:
            low = middle
        else:
            high = middle
    return high


# -- shares of yes and no: their interval, and the test of two shares over the same items -------------------------------
#
# Sources: Wilson (1927), "Probable inference, the law of succession, and statistical inference"; McNemar (1947), "Note
# on the
# sampling error of the difference between correlated proportions", here with the exact binomial probability.
WILSON = "Wilson"


def wilson_ends(share: float, count: float, quantile: float) -> tuple[float, float]:
    """Return the ends of Wilson's interval of a share."""
    # [round(end, 4) for end in wilson_ends(1.0, 10, 1.96)] -> [0.7225, 1.0]
    reach = quantile**2
    middle = (share + reach / (2 * count)) / (1 + reach / count)
    half = math.sqrt(reach * (share * (1 - share) / count + reach / (4 * count * count))) / (1 + reach / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def wilson_interval(share: float, count: int, unit: str, level: float = LEVEL) -> Interval:
    """Return Wilson's interval of a share of independent items."""
    low, high = wilson_ends(share, count, NormalDist().inv_cdf((1 + level) / 2))
    return Interval(low, high, level, WILSON, unit, count, effective=count)


def binomial_cumulative(count: int, chance: float) -> Floats:
    """Return the probabilities that a binomial count is at most 0, 1, ..., `count`."""
    # -> float64 [count + 1].
    # binomial_cumulative(2, 0.5).round(12) -> [0.25, 0.75, 1.0]
    counts = np.arange(1, count + 1)
    steps = np.log((count - counts + 1) / counts) + math.log(chance) - math.log1p(-chance)
    logs = np.concatenate(([0.0], np.cumsum(steps))) + count * math.log1p(-chance)
    cumulative: Floats = np.cumsum(np.exp(logs))
    return cumulative


def binomial_quantiles(count: int, chance: float, tail: float) -> tuple[int, int]:
    """Return the counts below and above which a binomial count falls with a probability of at most `tail` each."""
    chances = binomial_cumulative(count, chance)
    low, high = np.searchsorted(chances, tail, side="right"), np.searchsorted(chances, 1 - tail, side="left")
    return int(low), min(count, int(high))


def mcnemar_p_value(first_only: int, second_only: int) -> float:
    """Return the exact two-sided p-value of the hypothesis that two raters are right equally often on the same items."""
    # first_only: items that only the first has right; second_only: items that only the second has right.
    # -> Twice the binomial probability of as few items on the smaller side, at most 1.
    fewer, differing = min(first_only, second_only), first_only + second_only
    return min(1.0, 2.0 * float(binomial_cumulative(differing, 0.5)[fewer]))
