"""Shares of yes and no: their interval, and the test of two shares over the same items.

Sources: Wilson (1927), "Probable inference, the law of succession, and statistical inference"; McNemar (1947), "Note on the
sampling error of the difference between correlated proportions", here with the exact binomial probability.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from lmgauge.numerics.exact import Floats
from lmgauge.numerics.intervals import LEVEL, Interval

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
