"""F1 from sums of counts: by hand, and with labels that do not occur."""

from __future__ import annotations

import numpy as np
import pytest

from lmgauge.tasks.metrics.labels import f1_scores

COUNTS = np.array([[2.0, 3.0, 4.0, 1.0, 4.0, 1.0, 0.0, 0.0, 0.0]])
"""Of three labels true positives, predicted, gold: F1 is 4/7, 2/5, and of the third there is none."""


def test_a_label_without_f1_counts_as_zero() -> None:
    assert f1_scores(COUNTS)[0] == pytest.approx((4 / 7 + 2 / 5) / 3, abs=1e-15)


def test_weights_are_gold_counts() -> None:
    assert f1_scores(COUNTS, weighted=True)[0] == pytest.approx((4 * 4 / 7 + 2 / 5) / 5, abs=1e-15)


def test_nothing_at_all() -> None:
    nothing = np.zeros((2, 6))
    assert f1_scores(nothing).tolist() == [0, 0]
    assert f1_scores(nothing, weighted=True).tolist() == [0, 0]
    assert f1_scores(np.zeros((0, 6))).shape == (0,)
