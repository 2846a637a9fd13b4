"""Error rates from counts: the edge cases as jiwer has them, and what holds between the four rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.task_rows import ERROR_CASES

from lmgauge.tasks.metrics.error_rates import error_rates, information_lost, information_preserved, match_error_rates

counts = st.tuples(*[st.integers(0, 2**40)] * 4)


def rates(*row: int) -> tuple[float, float, float]:
    sums = np.array([row], dtype=np.float64)
    return float(error_rates(sums)[0]), float(match_error_rates(sums)[0]), float(information_lost(sums)[0])


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        *((case.counts, (case.wer, case.mer, case.wil)) for case in ERROR_CASES),
        ((0, 0, 0, 0), (0, 0, 0)),  # both empty
        ((0, 0, 0, 5), (5, 1, 1)),  # empty reference: the number of insertions
        ((0, 0, 5, 0), (1, 1, 1)),  # empty hypothesis
    ],
)
def test_small_cases(row: tuple[int, ...], expected: tuple[float, float, float]) -> None:
    assert rates(*row) == expected


@given(counts)
def test_what_holds_between_the_rates(row: tuple[int, ...]) -> None:
    wer, mer, wil = rates(*row)
    hits, substitutions, deletions, insertions = row
    assert 0 <= mer <= min(wer, 1)
    assert mer <= wil + 1e-12 or not hits
    assert 0 <= wil <= 1
    preserved = float(information_preserved(np.array([row], dtype=np.float64))[0])
    assert preserved == pytest.approx(1 - wil, abs=1e-15)
    if hits + substitutions + deletions:
        assert wer * (hits + substitutions + deletions) == pytest.approx(substitutions + deletions + insertions)


@given(st.lists(counts, max_size=5))
def test_rows_do_not_touch_each_other(rows: list[tuple[int, ...]]) -> None:
    sums = np.array(rows, dtype=np.float64).reshape(-1, 4)
    together = zip(error_rates(sums), match_error_rates(sums), information_lost(sums), strict=True)
    assert [tuple(map(float, row)) for row in together] == [rates(*row) for row in rows]
