"""Exact sums: one rounding, any order, any division into parts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.numerics import exact
from lmgauge.numerics.exact import SCALE, ExactSums, PlainSum, exact_sum, exact_to_nats


def test_the_sum_over_several_blocks() -> None:
    count = exact._BLOCK * 2 + 3
    assert exact_sum(np.full(count, 0.1)) == math.fsum([0.1] * count)
    assert math.copysign(1.0, exact_sum(np.array([-0.0]))) == 1.0


@given(st.lists(st.lists(st.floats(-1e6, 0.0) | st.just(-math.inf), max_size=5), max_size=6))
def test_a_plain_sum_is_the_sum_of_its_parts(parts: list[list[float]]) -> None:
    plain = PlainSum()
    for part in parts:
        plain.add(np.array(part, np.float64))
    values = [value for part in parts for value in part]
    assert plain.zeros == values.count(-math.inf)
    assert not plain.broken
    assert plain.nats == pytest.approx(math.fsum(values) if not plain.zeros else -math.inf, rel=1e-15)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_plain_sum_is_nan_after_a_value_that_is_not_a_log_probability(value: float) -> None:
    plain = PlainSum()
    plain.add(np.array([-1.0, value, -math.inf]))
    plain.add(np.array([-1.0]))
    assert plain.broken
    assert plain.zeros == 1
    assert math.isnan(plain.nats)


def test_a_plain_sum_holds_few_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "_PARTS", 3)
    plain = PlainSum()
    for _ in range(100):
        plain.add(np.array([-0.5]))
        assert len(plain._parts) < 3
    assert plain.nats == -50.0


@given(
    st.lists(st.tuples(st.integers(-(2**62), -1), st.integers(0, 2**64 - 1), st.integers(0, 2)), min_size=1, max_size=20),
    st.integers(1, 7),
)
def test_totals_by_code_are_exact(rows: list[tuple[int, int, int]], block: int) -> None:
    high, low, codes = zip(*rows, strict=True)
    sums = ExactSums(np.array(high), np.array(low, np.uint64), np.zeros(len(rows), np.int64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "_EXACT_ROWS", block)
        totals = sums.totals(np.array(codes), 3)
    expected = [sum((h << 64) + part for h, part, c in rows if c == code) for code in range(3)]
    assert totals == expected
    for total in totals:
        assert exact_to_nats(total) == float(Fraction(total, SCALE))


def test_nats_of_sums() -> None:
    sums = ExactSums(np.array([-(1 << 16), -1, 0]), np.array([0, 1 << 63, 0], np.uint64), np.array([0, 0, 2]))
    assert sums.nats().tolist() == [-1.0, -(2.0**-17), -math.inf]
    assert ExactSums.room(2).nats().tolist() == [0.0, 0.0]
