"""Is a difference real: tests of paired units, and their adjustment where several are made.

Two models that scored the same text differ by so many nats in each unit: each document, where documents are known. Under the
hypothesis that neither is better the sign of each difference is as good as tossed: the sign-flip permutation test counts how
often tossed signs give a sum as far from zero (Fisher 1935; Good 2005, "Permutation, Parametric and Bootstrap Tests of
Hypotheses", section 3.7). Where several models are compared, p-values are adjusted as Holm (1979) does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import UsageError
from lmgauge.threads import run_ranges, thread_count

Floats = NDArray[np.float64]

DEFAULT_RESAMPLES = 10_000
# Units times resamples up to which signs are tossed: some seconds. Above, the normal curve says the same.
_MOST_DRAWS = 4_000_000_000
# Up to so many units all assignments of signs are counted, which is less work than tossing 10,000 times.
_ALL_SIGNS = 16
# A tossed sum that equals the observed one may differ from it by the rounding of its additions.
_ROUNDING = 1e-12


def sign_flip_p_value(
    differences: Floats, *, resamples: int = DEFAULT_RESAMPLES, seed: int = 12345, threads: int | None = None
) -> float | None:
    """Return the two-sided p-value of the hypothesis that the differences are symmetric about 0: that no model is better.

    Args:
        differences: float64 [units], finite.
        resamples: how many assignments of signs; of 16 units or fewer all are counted, and nothing is drawn.
        seed: of the signs.
        threads: how many; the value does not depend on it.

    Returns:
        The share of all assignments whose sum is as far from 0, so at least 2 / 2^units; of more than 16 units
        (1 + how many drawn sums are as far from 0) / (1 + resamples) (Phipson & Smyth 2010). None for fewer than two units.

    Example:
        >>> sign_flip_p_value(np.array([3.0, 1.0, 2.0]))  # only +++ and --- of 8 are as far from 0
        0.25
    """
    check_draws(resamples, seed)
    if len(differences) < 2:
        return None
    observed, reach = abs(float(differences.sum())), float(np.abs(differences).sum())
    if not reach:
        return 1.0
    if len(differences) <= _ALL_SIGNS:
        sums = _all_signed_sums(differences)
        return float(np.count_nonzero(np.abs(sums) >= observed - _ROUNDING * reach)) / len(sums)
    if len(differences) * resamples > _MOST_DRAWS:
        return math.erfc(observed / math.sqrt(2 * float(np.square(differences).sum())))
    values, sums = np.ascontiguousarray(differences), np.empty(resamples)

    def toss(begin: int, end: int) -> None:
        _native.sign_flip_sums(values, seed, begin, sums[begin:end])

    run_ranges(toss, resamples, thread_count(threads))
    as_far = int(np.count_nonzero(np.abs(sums) >= observed - _ROUNDING * reach))
    return (1 + as_far) / (1 + resamples)


def _all_signed_sums(differences: Floats) -> Floats:
    """Return the sums under all assignments of signs, the first sign held, float64 [2^(n - 1)].

    >>> _all_signed_sums(np.array([3.0, 1.0])).tolist()
    [4.0, 2.0]
    """
    sums = differences[:1]
    for value in differences[1:]:
        sums = np.concatenate((sums + value, sums - value))
    return sums


def check_draws(resamples: int, seed: int) -> None:
    """Refuse numbers that nothing can be drawn with.

    Raises:
        UsageError: `resamples` is below 1, or the seed below 0 or above 2^64 - 1.
    """
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
