"""Correlation coefficients, intervals and permutation tests against SciPy and against published tables."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lmgauge.numerics.correlation import (
    average_ranks,
    kendall_interval,
    kendall_tau_b,
    pearson_r,
    rank_permutation_p_value,
    spearman_interval,
    spearman_rho,
)

numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))


@st.composite
def columns(draw: st.DrawFn, largest: int = 20) -> tuple[np.ndarray, np.ndarray]:
    n = draw(st.integers(2, largest))
    x, y = (np.array(draw(st.lists(numbers, min_size=n, max_size=n))) for _ in range(2))
    return x, y


def varies(*values: np.ndarray) -> bool:
    return all(len(set(column.tolist())) > 1 for column in values)


@given(columns())
def test_coefficients_are_scipy_s(given_columns: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = given_columns
    assert average_ranks(x).tolist() == stats.rankdata(x).tolist()
    if not varies(x, y):
        assert spearman_rho(x, y) is kendall_tau_b(x, y) is pearson_r(x, y) is None
        return
    assert spearman_rho(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert kendall_tau_b(x, y) == pytest.approx(stats.kendalltau(x, y, variant="b").statistic, abs=1e-12)
    rounded_x, rounded_y = np.round(x, 1), np.round(y, 1)
    if varies(rounded_x, rounded_y):
        expected = stats.pearsonr(rounded_x, rounded_y).statistic
        assert pearson_r(rounded_x, rounded_y) == pytest.approx(expected, abs=1e-9)


@given(columns(6))
def test_the_p_value_counts_all_orders(given_columns: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = given_columns
    if not varies(x, y):
        assert rank_permutation_p_value(x, y, 10, 1) is None
        return
    rho = spearman_rho(x, y)
    assert rho is not None
    others = [spearman_rho(x, np.array(order)) or 0.0 for order in permutations(y)]
    expected = sum(abs(other) >= abs(rho) - 1e-9 for other in others) / len(others)
    assert rank_permutation_p_value(x, y, 10, 1) == (pytest.approx(expected), True)


def test_the_p_value_is_that_of_scipy_s_permutation_test() -> None:
    generator = np.random.default_rng(3)
    x, y = generator.normal(size=7), generator.integers(0, 5, size=7).astype(float)
    expected = stats.permutation_test(
        (y,), lambda order: stats.spearmanr(x, order).statistic, permutation_type="pairings", n_resamples=math.inf
    )
    found = rank_permutation_p_value(x, y, 10, 1)
    assert found == (pytest.approx(expected.pvalue), True)


def test_the_p_value_of_many_is_near_the_asymptotic_one() -> None:
    generator = np.random.default_rng(3)
    x = generator.normal(size=40)
    y = x + generator.normal(size=40) * 3
    found = rank_permutation_p_value(x, y, 100_000, 1)
    assert found is not None
    assert found[0] == pytest.approx(stats.spearmanr(x, y).pvalue, abs=0.005)
    assert found == rank_permutation_p_value(x, y, 100_000, 1)
    assert not found[1]
    perfect = rank_permutation_p_value(x, x, 999, 1)
    assert perfect == (1 / 1000, False)


def test_spearman_s_table() -> None:
    """Upper tail of rho for n = 5: P(rho >= 0.9) = 0.042, P(rho = 1) = 0.0083 (Zar 1972, here two-sided)."""
    x = np.arange(5.0)
    assert rank_permutation_p_value(x, x, 0, 0) == (2 / 120, True)
    assert rank_permutation_p_value(x, np.array([1.0, 0, 2, 3, 4]), 0, 0) == (2 * 5 / 120, True)


def test_intervals_are_the_formulas() -> None:
    low, high = spearman_interval(0.5, 20) or (0, 0)
    error = math.sqrt((1 + 0.125) / 17)
    assert (math.atanh(low), math.atanh(high)) == pytest.approx(
        (math.atanh(0.5) - 1.959964 * error, math.atanh(0.5) + 1.959964 * error)
    )
    low, high = kendall_interval(-0.4, 12) or (0, 0)
    assert math.atanh(high) - math.atanh(low) == pytest.approx(2 * 1.959964 * math.sqrt(0.437 / 8))


def test_no_interval_where_there_is_none() -> None:
    assert (
        spearman_interval(0.5, 3)
        is spearman_interval(1.0, 10)
        is kendall_interval(0.5, 4)
        is kendall_interval(-1.0, 9)
        is None
    )


def test_intervals_hold_the_true_value_about_as_often_as_they_say() -> None:
    generator = np.random.default_rng(5)
    rho = 6 / math.pi * math.asin(0.6 / 2)  # of normal variables correlated by 0.6
    held = 0
    for _ in range(500):
        x = generator.normal(size=30)
        found = spearman_rho(x, 0.6 * x + 0.8 * generator.normal(size=30))
        low, high = spearman_interval(found or 0.0, 30) or (0, 0)
        held += low < rho < high
    assert 0.92 < held / 500 < 0.98


def test_infinity_has_a_rank() -> None:
    x = np.array([1.0, math.inf, 3.0, math.inf])
    assert average_ranks(x).tolist() == [1, 3.5, 2, 3.5]
    assert kendall_tau_b(x, np.arange(4.0)) == pytest.approx(stats.kendalltau([1, 4, 3, 4], range(4)).statistic)
