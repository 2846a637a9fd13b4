"""Correlation of two columns of numbers: by rank and linear, with intervals and tests by permutation.

Sources: Spearman (1904), "The proof and measurement of association between two things"; Kendall (1945), "The treatment of
ties in ranking problems" (tau-b); Bonett & Wright (2000), "Sample size requirements for estimating Pearson, Kendall and
Spearman correlations" (standard error of z for rho); Fieller, Hartley & Pearson (1957), "Tests for rank correlation
coefficients. I" (for tau); Good (2005), "Permutation, Parametric and Bootstrap Tests of Hypotheses", 3rd ed.
"""

from __future__ import annotations

import math

import numpy as np

from lmgauge.numerics.exact import Floats, Ints

EXACT_UP_TO = 9
"""Most numbers whose permutations are all counted: 9! = 362,880."""

_Z_95 = 1.959963984540054
# How many numbers the permutations held at a time have.
_BLOCK = 1 << 20


def average_ranks(values: Floats) -> Floats:
    """Return ranks from 1, the smallest first; equal values share the average of their ranks."""
    # values: float64 [n], no NaN.
    # -> float64 [n].
    # average_ranks([3.0, 1.0, 3.0]) -> [2.5, 1.0, 2.5]
    # values [3, 1, 3]: distinct 1, 3 with counts [1, 2] -> last ranks [1, 3] -> averages [1, 2.5]
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]


def pearson_r(x: Floats, y: Floats) -> float | None:
    """Return Pearson's r."""
    # x: float64 [n]; y: float64 [n].
    # pearson_r([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]) -> 1.0
    if _constant(x) or _constant(y):
        return None
    left, right = _centered(x), _centered(y)
    r = math.fsum(left * right) / math.sqrt(math.fsum(left * left) * math.fsum(right * right))
    return max(-1.0, min(1.0, r))


def spearman_rho(x: Floats, y: Floats) -> float | None:
    """Return Spearman's rho (1904): Pearson's r of the ranks."""
    # x: float64 [n]; y: float64 [n].
    # spearman_rho([1.0, 2.0, 30.0], [2.0, 40.0, 60.0]) -> 1.0
    return pearson_r(average_ranks(x), average_ranks(y))


def kendall_tau_b(x: Floats, y: Floats) -> float | None:
    """Return Kendall's tau-b (1945): concordant less discordant pairs, over the geometric mean of untied pairs."""
    # x: float64 [n]; y: float64 [n].
    # kendall_tau_b([1.0, 2.0, 3.0], [2.0, 9.0, 4.0]) == 1 / 3 -> True
    if _constant(x) or _constant(y):
        return None
    agreement = untied_x = untied_y = 0
    for i in range(len(x) - 1):
        # Comparisons and not differences: inf - inf is NaN.
        left = (x[i + 1 :] > x[i]).astype(np.int64) - (x[i + 1 :] < x[i])
        right = (y[i + 1 :] > y[i]).astype(np.int64) - (y[i + 1 :] < y[i])
        agreement += int((left * right).sum())
        untied_x += int(np.count_nonzero(left))
        untied_y += int(np.count_nonzero(right))
    return max(-1.0, min(1.0, agreement / math.sqrt(untied_x * untied_y)))


def spearman_interval(rho: float, n: int) -> tuple[float, float] | None:
    """Return the 95 % interval of rho by Fisher's z, with the standard error sqrt((1 + rho^2 / 2) / (n - 3))."""
    # Source: Bonett & Wright (2000).
    # -> its ends; None for n < 4, and for rho of 1 or -1, whose z is infinite.
    return _fisher(rho, (1 + rho * rho / 2) / (n - 3)) if n > 3 else None


def kendall_interval(tau: float, n: int) -> tuple[float, float] | None:
    """Return the 95 % interval of tau by Fisher's z, with the standard error sqrt(0.437 / (n - 4))."""
    # Source: Fieller, Hartley & Pearson (1957).
    return _fisher(tau, 0.437 / (n - 4)) if n > 4 else None


def rank_permutation_p_value(x: Floats, y: Floats, permutations: int, seed: int) -> tuple[float, bool] | None:
    """Return the two-sided p-value of Spearman's rho: how often a permutation of y gives one at least as far from zero."""
    # Up to 9 numbers all permutations are counted, so the p-value is exact; above, random ones, and the order of the data
    # is one more: (count + 1) / (permutations + 1) (Good 2005).
    # x: float64 [n]; y: float64 [n].
    # -> the p-value and whether it is exact; None where one of them is constant or there are fewer than two.
    if _constant(x) or _constant(y):
        return None
    # Twice the ranks are whole numbers, so that equally far is equal: n * sum(a b) - sum(a) sum(b) is rho but for a factor.
    left, right = _doubled_ranks(x), _doubled_ranks(y)
    n, middle = len(x), int(left.sum()) * int(right.sum())
    observed = abs(n * int(left @ right) - middle)
    if n <= EXACT_UP_TO:
        permuted = np.abs(n * (_all_orders(right) @ left) - middle)
        return float(np.count_nonzero(permuted >= observed)) / len(permuted), True
    generator, count, done = np.random.default_rng(seed), 0, 0
    while done < permutations:
        rows = min(permutations - done, max(1, _BLOCK // n))
        orders = generator.permuted(np.broadcast_to(right, (rows, n)), axis=1)
        count += int(np.count_nonzero(np.abs(n * (orders @ left) - middle) >= observed))
        done += rows
    return (count + 1) / (permutations + 1), False


def _all_orders(values: Ints) -> Ints:
    # All orders of values [n], int64 [n!, n]: each value at each place of all orders of those before it.
    # values [a, b]: [[]] -> [[a]] -> b before and behind: [[b, a], [a, b]]
    orders = np.zeros((1, 0), dtype=np.int64)
    for value in values:
        orders = np.concatenate([np.insert(orders, place, value, axis=1) for place in range(orders.shape[1] + 1)])
    return orders


def _doubled_ranks(values: Floats) -> Ints:
    return np.rint(2 * average_ranks(values)).astype(np.int64)


def _fisher(value: float, variance: float) -> tuple[float, float] | None:
    if abs(value) >= 1:
        return None
    z, reach = math.atanh(value), _Z_95 * math.sqrt(variance)
    return math.tanh(z - reach), math.tanh(z + reach)


def _constant(values: Floats) -> bool:
    return len(values) < 2 or bool((values == values[0]).all())


def _centered(values: Floats) -> Floats:
    # Divided by the largest, so that squares neither overflow nor vanish.
    apart = values - math.fsum(values) / len(values)
    return np.asarray(apart / np.abs(apart).max())
