"""How sure a figure is: intervals of a ratio of sums over segments.

Every figure of a corpus is a ratio of two sums: total nats over total events, characters or bytes. The events of a
segment depend on each other, the segments hardly do; so the segment is what is drawn again (bootstrap), or what the
standard error is computed over (cluster-robust), never the event. Perplexity and bits are increasing functions of
such a ratio, so their intervals are the ratio's, mapped: see `Interval.mapped`.

Sources: Efron & Tibshirani (1993), "An Introduction to the Bootstrap", chapter 13 (percentile interval; p. 160 for
which order statistics); Cochran (1977), "Sampling Techniques", 3rd ed., chapter 6 (variance of a ratio, eq. 6.13).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmgauge.errors import InputError, UsageError

__all__ = ["Interval", "bootstrap_weights", "linearised", "ratio_interval", "student_t_p_value", "student_t_quantile"]

Floats = NDArray[np.float64]

BOOTSTRAP = "bootstrap"
CLUSTER_ROBUST = "cluster-robust"
# Draws held at a time (8 bytes each, and a few arrays of this size): small enough for a core's own cache.
BATCH_DRAWS = 1 << 16
# Products like 1000 * (1 - 0.9) / 2 fall short of the whole number they stand for by rounding.
ROUNDING = 1e-9
Z_95 = 1.959963984540054  # the normal quantile of a two-sided interval of 95 %


@dataclass(frozen=True)
class Interval:
    """An interval of confidence, and how it was made.

    `method` is "bootstrap" (percentiles of `resamples` seeded resamples of the segments) or "cluster-robust" (normal
    quantiles of the linearised standard error over segments; `resamples` and `seed` are None, nothing is drawn).
    """

    low: float
    high: float
    level: float
    method: str
    resamples: int | None
    seed: int | None

    def mapped(self, function: Callable[[float], float]) -> Interval:
        """The interval of an increasing function of the figure; its ends are the function of the ends.

        :param function: increasing, float to float

        >>> Interval(0.0, 6.0, 0.95, "bootstrap", 1000, 1).mapped(lambda bits: 2.0**bits)
        Interval(low=1.0, high=64.0, level=0.95, method='bootstrap', resamples=1000, seed=1)
        """
        return replace(self, low=function(self.low), high=function(self.high))


def ratio_interval(
    numerators: ArrayLike,
    denominators: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 12345,
    limit: int = 10_000,
) -> Interval | None:
    """Interval of sum(numerators) / sum(denominators), with the segment as the unit that varies.

    Segments that have neither (both 0) say nothing about the ratio and are left out, so they change nothing. Up to
    `limit` segments are bootstrapped; above it the linearised standard error is as good and costs one pass.

    :param numerators: float64 [n], e.g. nats of each segment; `inf` where it has a zero-probability event
    :param denominators: float64 [n], >= 0, in the same order, e.g. events, characters or bytes of each segment
    :param level: share of such intervals that should hold the true ratio, 0 < level < 1
    :param resamples: how often the segments are drawn again; at least 2 / (1 - level) - 1
    :param seed: of the draws, >= 0; the same seed gives the same interval on every machine
    :param limit: segments above which nothing is drawn
    :returns: the interval, in numerator units per denominator unit; (inf, inf) if a numerator is infinite; None if
        fewer than two segments have anything, or all denominators are 0: there is no figure to be sure of
    :raises InputError: shapes differ, a value is NaN, a denominator is negative or infinite, or numerators hold
        both infinities
    :raises UsageError: `level`, `resamples` or `seed` is out of range

    >>> interval = ratio_interval([20.0, 31.0, 9.0, 40.0], [10.0, 12.0, 5.0, 16.0])
    >>> interval.low < 100 / 43 < interval.high
    True
    """
    tail = tail_rank(level, resamples)
    upper, lower = _checked(numerators, denominators)
    something = (upper != 0.0) | (lower != 0.0)
    if not something.all():
        upper, lower = upper[something], lower[something]
    if upper.size < 2 or not lower.any():
        return None
    drawn = upper.size <= limit
    infinite = float(upper[np.isinf(upper)].sum())  # the infinity that is there, or 0
    if infinite:
        low = high = infinite
    elif drawn:
        low, high = _percentiles(upper, lower, resamples, seed, tail)
    else:
        low, high = linearised(upper, lower, level)
    if drawn:
        return Interval(low, high, level, BOOTSTRAP, resamples, seed)
    return Interval(low, high, level, CLUSTER_ROBUST, None, None)


def bootstrap_weights(n: int, resamples: int, seed: int, *, batch_draws: int = BATCH_DRAWS) -> Iterator[NDArray[np.int64]]:
    """Bootstrap resamples of n segments, as how often each segment was drawn, in batches of bounded memory.

    The rows depend on n, `resamples` and `seed` only: two statistics computed with the same three are paired, and the
    batches' size changes nothing.

    :param n: number of segments, >= 1
    :param resamples: number of rows in all
    :param seed: of numpy's default generator, >= 0
    :param batch_draws: at most this many draws in a batch (or one row, if n is larger)
    :returns: int64 [rows, n] at a time; each row sums to n
    :raises UsageError: n or `resamples` is less than 1, or the seed is negative

    >>> [batch.sum(axis=1).tolist() for batch in bootstrap_weights(4, 3, seed=1)]
    [[4, 4, 4]]
    """
    if n < 1 or resamples < 1:
        raise UsageError(f"cannot draw {resamples} resamples of {n} segments: at least one of each is needed")
    if seed < 0:
        raise UsageError(f"seed: {seed} is negative; give 0 or more")
    return _count_batches(n, resamples, seed, min(resamples, max(1, batch_draws // n)))


def _count_batches(n: int, resamples: int, seed: int, batch: int) -> Iterator[NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    # One bincount for the batch: row r counts in the bins r * n to (r + 1) * n.
    first_bins = n * np.arange(batch, dtype=np.int64)[:, None]
    for done in range(0, resamples, batch):
        rows = min(batch, resamples - done)
        # int64, not a smaller type: NumPy keeps a remainder of random bits between calls for 32 and 64 bits only, and
        # with 8 or 16 the numbers would depend on the batch's size.
        draws = generator.integers(0, n, size=(rows, n), dtype=np.int64)
        draws += first_bins[:rows]
        yield np.bincount(draws.ravel(), minlength=rows * n).reshape(rows, n)


def _percentiles(upper: Floats, lower: Floats, resamples: int, seed: int, tail: int) -> tuple[float, float]:
    ratios = np.empty(resamples)
    done = 0
    for counts in bootstrap_weights(upper.size, resamples, seed):
        weights = counts.astype(np.float64)
        rows = len(weights)
        # Products and a sum along each row, not a matrix product: BLAS adds in an order that depends on the shape of
        # the batch and on the number of threads.
        totals = (weights * upper).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratios[done : done + rows] = totals / (weights * lower).sum(axis=1)
        done += rows
    # A resample may hold nothing but segments without a denominator. Its ratio is infinite, also where numerators of
    # both signs cancel to 0/0.
    ratios[np.isnan(ratios)] = math.inf
    ratios.sort()
    return float(ratios[tail - 1]), float(ratios[resamples - tail])


def linearised(upper: Floats, lower: Floats, level: float) -> tuple[float, float]:
    """Ends of the interval of sum(upper) / sum(lower) by its linearised standard error over segments, two or more."""
    # Cochran (1977) eq. 6.13 for a population without end: var R = n / (n - 1) * sum (u - R l)^2 / (sum l)^2.
    from statistics import NormalDist  # not above: decimals and fractions come with it, and only long texts need it

    n, total = upper.size, float(lower.sum())
    ratio = float(upper.sum()) / total
    residuals = (upper - ratio * lower) / total
    # Divided by the largest before squaring: a square can leave float64 where the error itself does not.
    largest = float(np.abs(residuals).max()) or 1.0
    residuals /= largest
    # No np.dot: BLAS adds in an order that depends on the number of threads.
    error = largest * math.sqrt(n / (n - 1) * float((residuals * residuals).sum()))
    reach = NormalDist().inv_cdf((1.0 + level) / 2.0) * error
    low = ratio - reach
    # The normal curve knows no bounds; a ratio of sums that are not negative is not negative.
    return max(low, 0.0) if upper.min() >= 0.0 else low, ratio + reach


def tail_rank(level: float, resamples: int) -> int:
    """Which of the sorted resamples, from 1, is the lower end of the percentile interval; from behind, the upper one.

    Raises:
        UsageError: the level is not between 0 and 1, or the resamples are too few for it.
    """
    # The k of Efron & Tibshirani p. 160: the interval runs from the k-th smallest to the k-th largest of the ratios.
    if not 0.0 < level < 1.0:
        raise UsageError(f"level: {level!r} is not between 0 and 1; 0.95 is usual")
    share = (1.0 - level) / 2.0
    tail = math.floor((resamples + 1) * share + ROUNDING)
    if tail < 1:
        needed = math.ceil(1.0 / share - ROUNDING) - 1
        raise UsageError(f"resamples: {resamples} are too few for level {level!r}; give at least {needed}")
    return tail


def _checked(numerators: ArrayLike, denominators: ArrayLike) -> tuple[Floats, Floats]:
    upper = np.asarray(numerators, dtype=np.float64)
    lower = np.asarray(denominators, dtype=np.float64)
    if upper.ndim != 1 or upper.shape != lower.shape:
        shapes = f"{upper.shape} and {lower.shape}"
        raise InputError(f"an interval needs a numerator and a denominator for each segment, not shapes {shapes}")
    _refuse(np.isnan(upper), upper, "numerator", "not a number")
    _refuse(~((lower >= 0.0) & np.isfinite(lower)), lower, "denominator", "not a finite count of 0 or more")
    if (upper == math.inf).any() and (upper == -math.inf).any():
        raise InputError("numerators hold both inf and -inf: their sum means nothing; remove one of them")
    return upper, lower


def _refuse(bad: NDArray[np.bool_], values: Floats, name: str, reason: str) -> None:
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"{name} {at + 1} of {values.size} is {float(values[at])!r}: {reason}; mend what produced it")


# Above so many degrees of freedom the normal curve is as good: p-values near 0.05 agree within 0.002.
_NORMAL_FROM = 200


def student_t_p_value(t: float, freedom: int) -> float:
    """Two-sided p-value of Student's t, by the finite series for whole degrees of freedom.

    Source: Abramowitz & Stegun (1964), "Handbook of Mathematical Functions", 26.7.3 and 26.7.4.

    :param t: the statistic
    :param freedom: degrees of freedom, at least 1

    >>> round(student_t_p_value(12.706, 1), 4), round(student_t_p_value(2.228, 10), 4)
    (0.05, 0.05)
    """
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


def student_t_quantile(level: float, freedom: int) -> float:
    """What Student's t stays within, on both sides, with this probability.

    :param level: 0 < level < 1
    :param freedom: degrees of freedom, at least 1

    >>> round(student_t_quantile(0.95, 10), 3)
    2.228
    """
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
