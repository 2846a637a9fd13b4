"""Is a difference real: tests of paired units, and their adjustment where several are made.

Two models that scored the same text differ by some nats in each unit: each document, where documents are known. Under the
hypothesis that neither is better the sign of each difference is as good as tossed: the sign-flip permutation test counts how
often tossed signs give a sum as far from zero (Fisher 1935; Good 2005, "Permutation, Parametric and Bootstrap Tests of
Hypotheses", section 3.7). Systems whose score is not a sum, such as BLEU, are swapped instead, unit by unit, or resampled
(`resampling.py`). Where several models are compared, p-values are adjusted as Holm (1979) does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lmgauge._kernels import _native
from lmgauge.choices import DEFAULT_SEED
from lmgauge.numerics.exact import Floats
from lmgauge.numerics.resampling import DEFAULT_TRIALS, check_draws
from lmgauge.threads import run_ranges, thread_count

# Units times resamples up to which signs are tossed: some seconds. Above, the normal curve says the same.
_MOST_DRAWS = 4_000_000_000
# Up to this many units all assignments of signs are counted, which is less work than tossing 10,000 times.
_ALL_SIGNS = 16
# A tossed sum that equals the observed one may differ from it by the rounding of its additions.
_ROUNDING = 1e-12


def sign_flip_p_value(
    differences: Floats, *, resamples: int = DEFAULT_TRIALS, seed: int = DEFAULT_SEED, threads: int | None = None
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

    Raises:
        UsageError: see `check_draws`.

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


def bootstrap_p_value(first: Floats, second: Floats, difference: float) -> float:
    """Return the p-value of the paired bootstrap by the rule of sacreBLEU and Moses (Koehn 2004; Noreen 1989 for the + 1).

    It says how often a difference strays from the usual one by more than the real one is large. The rule is lenient: it
    counts one side only, so where there is no difference some 12 % of texts give p < 0.05 (17 % of texts of 10 segments;
    simulated). The swaps of `randomization_p_value` keep to their 5 %, and the bootstrap's interval of the difference to
    about 6 %: where they disagree, believe these.

    Args:
        first: scores of one system in each resample, float64 [resamples].
        second: those of the other, in the same resamples.
        difference: of the scores over all segments, either way round.

    Example:
        >>> bootstrap_p_value(np.array([5.0, 5.0, 5.0, 5.0]), np.array([6.0, 8.0, 3.0, 15.0]), 2.0)
        0.4
    """
    differences = np.abs(second - first)
    strayed = int(np.count_nonzero(differences - differences.mean() > abs(difference)))
    return (strayed + 1) / (len(first) + 1)


def randomization_p_value(first: Floats, second: Floats, difference: float, differing: int) -> float:
    """Return the p-value of approximate randomization: how often mixed systems differ by more than the real ones.

    As in sacreBLEU, ties do not count (Riezler & Maxwell 2005). Systems that differ in k segments only give the real
    difference again in 2 of 2^k mixtures, without which even k = 1 would seem beyond doubt; so no p-value is below that
    share, which is nothing where test sets differ in more than some dozen segments.

    Args:
        first: scores of one mixed system in each trial, float64 [trials].
        second: those of the other.
        difference: of the scores of the real systems, either way round.
        differing: segments in which the systems' statistics differ.

    Example:
        >>> first, second = np.array([1.0, 5.0, 9.0]), np.array([2.0, 2.0, 2.0])
        >>> randomization_p_value(first, second, 2.0, 99), randomization_p_value(first, second, 7.0, 2)
        (0.75, 0.5)
    """
    strayed = int(np.count_nonzero(np.abs(first - second) > abs(difference)))
    return max((strayed + 1) / (len(first) + 1), min(1.0, 2.0 ** (1 - differing)))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for the number of tests (Holm 1979): each is the chance of any false alarm at that level.

    Args:
        p_values: [tests]; None where there is no test, which stays None.

    Example:
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
