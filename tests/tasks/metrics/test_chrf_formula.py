"""chrF from sums of counts: worked by hand, row by row, and with nothing to divide by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import chrf as twin

from lmgauge.tasks.metrics.chrf import chrf_averages, chrf_scores


@st.composite
def rows(draw: st.DrawFn) -> list[list[int]]:
    orders = draw(st.integers(1, 8))
    triple = st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)).map(lambda t: [t[0], t[1], min(t)])
    row = st.lists(triple, min_size=orders, max_size=orders).map(lambda triples: [c for triple in triples for c in triple])
    return draw(st.lists(row, min_size=1, max_size=6))


@given(rows(), st.sampled_from([1, 2, 3, 0.25, 10]), st.booleans())
def test_rows_are_what_they_are_alone(sums: list[list[int]], beta: float, eps_smoothing: bool) -> None:
    found = chrf_scores(np.array(sums, dtype=np.float64), beta=beta, eps_smoothing=eps_smoothing)
    assert found.tolist() == [twin.f_score(row, beta, eps_smoothing) for row in sums]


def test_by_hand() -> None:
    """Precision 3/4 and 1/2, recall 1/2 and 1/4: averages 5/8 and 3/8, F2 = 5 * 15/64 / (4 * 5/8 + 3/8)."""
    sums = np.array([[4.0, 6.0, 3.0, 2.0, 4.0, 1.0]])
    precision, recall = chrf_averages(sums)
    assert (precision[0], recall[0]) == (5 / 8, 3 / 8)
    assert chrf_scores(sums, beta=2)[0] == pytest.approx(100 * (75 / 64) / (23 / 8))
    # F2 of the orders: 5 * 3/8 / (3 + 1/2) and 5 * 1/8 / (2 + 1/4).
    assert chrf_scores(sums, beta=2, eps_smoothing=True)[0] == pytest.approx(50 * (15 / 28 + 5 / 18))


def test_an_order_that_one_text_lacks_does_not_count() -> None:
    sums = np.array([[4.0, 6.0, 3.0, 2.0, 0.0, 0.0], [4.0, 6.0, 3.0, 0.0, 4.0, 0.0]])
    alone = chrf_scores(sums[:, :3], beta=2)
    assert (chrf_scores(sums, beta=2) == alone).all()


def test_nothing_gives_zero() -> None:
    nothing = np.zeros((2, 18))
    assert chrf_scores(nothing, beta=2).tolist() == [0, 0]
    assert chrf_scores(nothing, beta=2, eps_smoothing=True).max() < 1e-13
    assert chrf_scores(np.zeros((0, 18)), beta=2).shape == (0,)
