"""What small functions of `numerics` give for an example each."""

from __future__ import annotations

import math

import numpy as np

from lmgauge.numerics import checks, intervals, units


def test_checks() -> None:
    assert checks.as_real_array([[1, 2], [3, 4]], "count").shape == (2, 2)
    assert checks.as_vector([1, 2], "count").tolist() == [1.0, 2.0]
    assert checks.as_distribution([0.25, 0.75], "p").tolist() == [0.25, 0.75]


def test_intervals() -> None:
    assert intervals.sums_by(np.array([1, 0, 1]), np.array([1.0, 2.0, 4.0])).tolist() == [2.0, 5.0]
    assert intervals.effective_freedom(np.array([5.0, 5.0, 5.0])) == 2
    assert intervals.effective_freedom(np.array([100.0, 1.0, 1.0])) == 1


def test_proportions() -> None:
    assert [round(end, 4) for end in intervals.wilson_ends(1.0, 10, 1.96)] == [0.7225, 1.0]
    assert intervals.binomial_quantiles(100, 0.5, 0.025) == (40, 60)


def test_units() -> None:
    assert units.nats_to_scale(math.log(8.0), "bits") == 3.0
    assert round(units.nats_to_scale(math.log(8.0), "perplexity"), 12) == 8.0
    assert units.difference_to_scale(math.log(2.0), "bits") == 1.0
    assert units.difference_to_scale(0.0, "perplexity") == 1.0
