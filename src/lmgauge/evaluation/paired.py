"""Is a difference real: tests and intervals from paired segments.

Two models that scored the same segments differ by so many nats in each. Under the hypothesis that neither is better the
sign of each difference is as good as tossed: the sign-flip permutation test counts how often tossed signs give a sum as
far from zero (Fisher 1935; Good 2005, "Permutation, Parametric and Bootstrap Tests of Hypotheses", section 3.7). The
interval draws the segments anew, for both models together: the paired bootstrap (Efron & Tibshirani 1993, chapter 13;
for translation Koehn 2004). Where several models are compared, p-values are adjusted as Holm (1979) does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import UsageError
from lmgauge.evaluation.statistics import BOOTSTRAP, CLUSTER_ROBUST, Interval, linearised, tail_rank
from lmgauge.threads import run_ranges, thread_count

Floats = NDArray[np.float64]

DEFAULT_RESAMPLES = 10_000
POWER = 0.8
# Segments times resamples up to which resamples are drawn: some seconds. Above, the normal curve says the same.
_MOST_DRAWS = 4_000_000_000
_FEWEST_SIGNS = 6
# A tossed sum that equals the observed one may differ from it by the rounding of its additions.
_ROUNDING = 1e-12


def bootstrap_sums(columns: Floats, resamples: int, seed: int, threads: int | None = None) -> Floats:
    """Sums of columns over segments drawn with replacement.

    Args:
        columns: float64 [segments, k].
        resamples: how often to draw.
        seed: same seed, same sums, on any number of threads.
        threads: how many.

    Returns:
        float64 [resamples, k].
    """
    _check_draws(resamples, seed)
    sums = np.empty((resamples, columns.shape[1]))
    values = np.ascontiguousarray(columns)

    def draw(begin: int, end: int) -> None:
        _native.bootstrap_sums(values, seed, begin, sums[begin:end])

    run_ranges(draw, resamples, thread_count(threads))
    return sums


def difference_intervals(
    differences: Floats,
    denominators: Floats,
    *,
    level: float = 0.95,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 12345,
    threads: int | None = None,
) -> list[Interval | None]:
    """Intervals of sum(differences) / sum(denominators), for several denominators at once, from the same draws.

    Args:
        differences: float64 [segments], nats of one model minus nats of the other; finite.
        denominators: float64 [segments, k], e.g. events, bytes, characters, words.
        level: share of such intervals that should hold the true difference.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        threads: how many; no number depends on it.

    Returns:
        An interval a denominator, in nats per denominator; None where there are fewer than two segments, or nothing to
        divide by.

    Raises:
        UsageError: too few resamples for the level.
    """
    tail = tail_rank(level, resamples)
    if len(differences) < 2:
        return [None] * denominators.shape[1]
    if len(differences) * resamples > _MOST_DRAWS:
        return [_robust(differences, denominators[:, k], level) for k in range(denominators.shape[1])]
    sums = bootstrap_sums(np.column_stack((differences, denominators)), resamples, seed, threads)
    found: list[Interval | None] = []
    for k in range(denominators.shape[1]):
        if not denominators[:, k].any():
            found.append(None)
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = sums[:, 0] / sums[:, 1 + k]
        ratios[np.isnan(ratios)] = 0.0  # a resample of nothing but segments that have neither
        ratios.sort()
        low, high = float(ratios[tail - 1]), float(ratios[resamples - tail])
        found.append(Interval(low, high, level, BOOTSTRAP, resamples, seed))
    return found


def _robust(differences: Floats, denominators: Floats, level: float) -> Interval | None:
    if not denominators.any():
        return None
    # `linearised` bounds ratios of positive sums at 0, which a difference is not.
    low, high = linearised(differences, denominators, level)
    if differences.min() >= 0:
        low = 2 * float(differences.sum()) / float(denominators.sum()) - high
    return Interval(low, high, level, CLUSTER_ROBUST, None, None)


def sign_flip_p_value(
    differences: Floats, *, resamples: int = DEFAULT_RESAMPLES, seed: int = 12345, threads: int | None = None
) -> float | None:
    """Two-sided p-value of the hypothesis that the differences are symmetric about 0: that no model is better.

    Args:
        differences: float64 [segments], finite.
        resamples: how many assignments of signs; the smallest p-value is 1 / (resamples + 1).
        seed: of the signs.
        threads: how many; the value does not depend on it.

    Returns:
        (1 + how many sums are as far from 0) / (1 + resamples) (Phipson & Smyth 2010); None for fewer than two segments.
    """
    _check_draws(resamples, seed)
    if len(differences) < 2:
        return None
    observed, reach = abs(float(differences.sum())), float(np.abs(differences).sum())
    if not reach:
        return 1.0
    if len(differences) * resamples > _MOST_DRAWS:
        return math.erfc(observed / math.sqrt(2 * float(np.square(differences).sum())))
    values, sums = np.ascontiguousarray(differences), np.empty(resamples)

    def toss(begin: int, end: int) -> None:
        _native.sign_flip_sums(values, seed, begin, sums[begin:end])

    run_ranges(toss, resamples, thread_count(threads))
    as_far = int(np.count_nonzero(np.abs(sums) >= observed - _ROUNDING * reach))
    return (1 + as_far) / (1 + resamples)


def _check_draws(resamples: int, seed: int) -> None:
    if not isinstance(seed, int) or not isinstance(resamples, int) or resamples < 1 or not 0 <= seed < 1 << 64:
        raise UsageError(f"resamples must be 1 or more and the seed 0 or more and below 2^64, not {resamples} and {seed}")


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values adjusted for so many tests (Holm 1979): the chance of any false alarm stays below what each now says.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, i) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[i] = highest
    return adjusted


def segments_needed(differences: Floats, *, level: float = 0.95, power: float = POWER) -> int | None:
    """How many such segments a test at this level needs to find a difference of this size with this power.

    The usual normal approximation, n = ((z_level + z_power) s / mean)^2 with s the standard deviation of the differences;
    six at least, as signs of fewer cannot come out so one-sided that 5 % is reached (2 of 2^5 is 6 %).

    Args:
        differences: float64 [segments], finite.
        level: of the interval, two-sided.
        power: chance of finding the difference, if it is what it seems.

    Returns:
        None where the mean is 0, or there are fewer than two segments.
    """
    if len(differences) < 2 or not float(differences.mean()):
        return None
    from statistics import NormalDist  # decimals and fractions come with it

    normal = NormalDist()
    reach = normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)
    needed = (reach * float(differences.std(ddof=1)) / float(differences.mean())) ** 2
    return max(math.ceil(needed), _FEWEST_SIGNS) if needed < 1e15 else None
