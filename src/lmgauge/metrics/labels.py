"""F1 of labelled outputs, from sums of counts: for many rows of sums at once, where scikit-learn takes one list of labels.

Source: van Rijsbergen (1979), "Information Retrieval", 2nd ed., chapter 7; the digits, and what stands for a quotient
without a denominator, are scikit-learn's `precision_recall_fscore_support`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["f1_scores"]

Floats = NDArray[np.float64]


def f1_scores(sums: Floats, *, weighted: bool = False, zero_division: float = 0.0) -> Floats:
    """The mean of the labels' F1 = 2 TP / (predicted + gold), 0 to 1.

    Args:
        sums: float64 [rows, 3 * labels]: true positives, times predicted and times gold, of each label.
        weighted: each label counts as often as it is gold; otherwise all count alike.
        zero_division: the F1 of a label that is neither gold nor predicted; NaN leaves it out of the mean.

    Returns:
        float64 [rows]; NaN where `zero_division` is NaN and no label has an F1.

    >>> float(f1_scores(np.array([[1.0, 1.0, 2.0, 1.0, 2.0, 1.0]]))[0]) == 2 / 3
    True
    """
    right, predicted, gold = sums[:, 0::3], sums[:, 1::3], sums[:, 2::3]
    below = predicted + gold
    f1 = np.divide(2 * right, below, out=np.full(below.shape, zero_division), where=below > 0)
    there = ~np.isnan(f1)
    weights = np.where(there, gold if weighted else 1.0, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.where(total > 0, weights, there)  # nothing is gold: as scikit-learn, all alike
    count = weights.sum(axis=1)
    summed = (weights * np.where(there, f1, 0.0)).sum(axis=1)
    mean: Floats = np.divide(summed, count, out=np.full(len(sums), np.nan), where=count > 0)
    return mean
