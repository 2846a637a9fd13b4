"""Sums by unit and by code: the same whatever the parts were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.errors import UsageError
from lmgauge.numerics.resampling import CodedSums, UnitSums


def table(segments: int, columns: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 1000, (segments, columns))


@given(st.lists(st.integers(0, 40), max_size=12), st.sampled_from([2, 4, 6, 16]))
def test_units_do_not_depend_on_the_parts(sizes: list[int], limit: int) -> None:
    rows = table(sum(sizes), 2)
    units = UnitSums(2, limit)
    at = 0
    for size in sizes:
        units.add(rows[at : at + size])
        at += size
    per = units.segments_per_unit
    expected = [rows[i : i + per].sum(axis=0) for i in range(0, len(rows), per)]
    assert units.rows().tolist() == [row.tolist() for row in expected]
    assert len(units.rows()) <= limit
    assert per == 1 or len(rows) > limit * per // 2  # no more are added up than must be
    assert units.total.tolist() == rows.sum(axis=0).tolist()
    assert units.segments == len(rows)


def test_units_come_in_pairs() -> None:
    for limit in (0, 1, 7):
        with pytest.raises(UsageError, match="even"):
            UnitSums(3, limit)


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=9), max_size=6))
def test_sums_by_code_do_not_depend_on_the_parts(parts: list[list[int]]) -> None:
    codes = [code for part in parts for code in part]
    rows, sums, at = table(len(codes), 2), CodedSums(2), 0
    for part in parts:
        sums.add(np.array(part), rows[at : at + len(part)])
        at += len(part)
    expected = [rows[np.array(codes) == code].sum(axis=0).tolist() for code in range(max(codes, default=-1) + 1)]
    assert sums.sums[: len(expected)].tolist() == expected
    assert not sums.sums[len(expected) :].any()
