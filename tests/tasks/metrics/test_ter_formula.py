"""TER from sums: by hand, and where there is nothing to divide by."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.tasks.metrics.compiled import LENGTH_SCALE
from lmgauge.tasks.metrics.ter import ter_scores


def test_by_hand() -> None:
    rows = np.array([[4, 13 * LENGTH_SCALE], [3, 1 * LENGTH_SCALE], [0, 9 * LENGTH_SCALE], [1, LENGTH_SCALE * 7 // 3]])
    assert ter_scores(rows.astype(np.float64)).tolist() == [100 * (4 / 13), 300.0, 0.0, 100 * (1 / (7 / 3))]


def test_without_reference_words_it_is_all_or_nothing() -> None:
    assert ter_scores(np.array([[5.0, 0.0], [0.0, 0.0]])).tolist() == [100.0, 0.0]


def test_every_number_of_references_divides_the_scale() -> None:
    assert all(LENGTH_SCALE % references == 0 for references in range(1, 17))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=8))
def test_rows_are_what_they_are_alone(rows: list[tuple[int, int]]) -> None:
    sums = np.array([[edits, length * LENGTH_SCALE] for edits, length in rows], dtype=np.float64)
    expected = [100 * (edits / length) if length else 100.0 * (edits > 0) for edits, length in rows]
    assert ter_scores(sums).tolist() == expected
