"""Shares: Wilson's interval and McNemar's test, against published numbers, sums and the textbook's binomial."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.numerics.proportions import binomial_cumulative, mcnemar_p_value, wilson_interval


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    # Newcombe (1998), "Two-sided confidence intervals for the single proportion", table I, method 3.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_wilson_as_published(right: int, count: int, low: float, high: float) -> None:
    interval = wilson_interval(right / count, count, "pairs")
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)
    assert (interval.unit, interval.units) == ("pairs", count)


@given(st.integers(1, 400), st.data())
def test_wilson_holds_the_share_and_turns_with_it(count: int, data: st.DataObject) -> None:
    share = data.draw(st.integers(0, count)) / count
    interval, turned = wilson_interval(share, count, ""), wilson_interval(1 - share, count, "")
    assert interval.low - 1e-12 <= share <= interval.high + 1e-12
    assert interval.low == pytest.approx(1 - turned.high, abs=1e-12)


@given(st.integers(0, 300), st.floats(0.01, 0.99))
def test_the_binomial_is_the_textbook_sum(count: int, chance: float) -> None:
    terms = [comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]
    assert binomial_cumulative(count, chance).tolist() == pytest.approx(
        [sum(terms[: k + 1]) for k in range(count + 1)], abs=1e-9
    )


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial_test(first: int, second: int) -> None:
    n = first + second
    exact = min(1.0, 2 * sum(comb(n, k) for k in range(min(first, second) + 1)) / 2**n)
    assert mcnemar_p_value(first, second) == pytest.approx(exact, rel=1e-9)
    assert mcnemar_p_value(first, second) == mcnemar_p_value(second, first)


def test_mcnemar_of_many_items() -> None:
    assert mcnemar_p_value(50_000, 50_000) == 1.0
    assert mcnemar_p_value(49_000, 51_000) == pytest.approx(2.5887160383e-10, rel=1e-9)  # scipy.stats.binomtest
