"""Slow twins of `evaluation/statistics.py`: leave one out and divide again; cosines term by term; F and t from SciPy."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats


def jackknife_error(upper: Sequence[float], lower: Sequence[float]) -> float:
    """Efron & Tibshirani (1993) eq. 11.5, about the figure of the whole: one unit left out at a time."""
    n = len(upper)
    whole = math.fsum(upper) / math.fsum(lower)
    without = [
        math.fsum(u for i, u in enumerate(upper) if i != out) / math.fsum(v for i, v in enumerate(lower) if i != out)
        for out in range(n)
    ]
    return math.sqrt((n - 1) / n * math.fsum((ratio - whole) ** 2 for ratio in without))


def freedom(lower: Sequence[float]) -> int:
    """Effective number of units, less one."""
    return max(1, math.floor(sum(lower) ** 2 / sum(v * v for v in lower) + 1e-6) - 1)


def wave_powers(values: Sequence[float]) -> list[float]:
    """2 (sum_i v_i cos(pi k (i + 1/2) / n))^2 for k = 1 .. n - 1."""
    n = len(values)
    return [2 * math.fsum(v * math.cos(math.pi * k * (i + 0.5) / n) for i, v in enumerate(values)) ** 2 for k in range(1, n)]


def slow_waves(upper: Sequence[float], lower: Sequence[float]) -> tuple[float, int] | None:
    """Standard error by the slow waves and how many; None where the F test finds them no larger than the fast ones."""
    total = math.fsum(lower)
    ratio = math.fsum(upper) / total
    powers = wave_powers([(u - ratio * v) / total for u, v in zip(upper, lower, strict=True)])
    waves = 8
    while min(2 * waves, len(powers)) - waves >= 8:
        fast = powers[waves : 2 * waves]
        found = (sum(powers[:waves]) / waves) / (sum(fast) / len(fast))
        if stats.f.sf(found, waves, len(fast)) < 0.05:
            kept = max(8, waves // 4)
            return math.sqrt(sum(powers[:kept]) / kept), kept
        waves *= 2
    return None


def half_width(error: float, degrees: int) -> float:
    """Of a 95 % interval."""
    return float(stats.t.ppf(0.975, degrees)) * error
