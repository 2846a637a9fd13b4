"""Tests of systems whose score is not a sum, such as BLEU, and the adjustment of p-values where several are made.

Of two models on one text the difference is a ratio of sums: its test is Student's t of the same error as its interval
(`intervals.Spread.p_value`). Systems are swapped instead, unit by unit, or resampled (`resampling.py`). Where several models
are compared, p-values are adjusted as Holm (1979) does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from lmgauge.numerics.exact import Floats

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


def holm_adjusted(tests: Iterable[T]) -> tuple[T, ...]:
    """Return results of tests, their `p_value_holm` the `p_value` adjusted for the number of tests."""
    made: list[Any] = list(tests)
    adjusted = holm([test.p_value for test in made])
    return tuple(replace(test, p_value_holm=p) for test, p in zip(made, adjusted, strict=True))
