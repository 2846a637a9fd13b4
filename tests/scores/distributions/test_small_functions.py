"""What small functions of `distributions` give for an example each."""

from __future__ import annotations

import numpy as np

from lmgauge.scores.distributions import blocks, reductions, stored_rows


def test_blocks() -> None:
    assert blocks.rows_among(np.array([1, 4, 5, 9]), seen=4, size=3).tolist() == [0, 1]


def test_reductions() -> None:
    assert reductions.tenth_of(np.array([0.1, 0.11, 1.0])).tolist() == [0, 1, 9]


def test_stored_rows() -> None:
    assert stored_rows.with_values(np.array([[1.0, 2.0, 3.0]]), np.array([[0, 2]]), 0.0).tolist() == [[0.0, 2.0, 0.0]]
