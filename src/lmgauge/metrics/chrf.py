"""chrF and chrF++: F scores of character and word n-grams, from sums of their counts.

Sources: Popović (2015), "chrF: character n-gram F-score for automatic MT evaluation"; Popović (2017), "chrF++: words
helping character n-grams". The digits are sacreBLEU 2.6's, which differs from the papers' formula in averaging precision
and recall over the orders that both texts have ("effective order") before the F score is made of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["chrf_averages", "chrf_scores"]

Floats = NDArray[np.float64]

EPSILON = 1e-16
"""What stands for a precision, a recall or an F score that does not exist, with `eps_smoothing`."""


def chrf_scores(sums: Floats, *, beta: float, eps_smoothing: bool = False) -> Floats:
    """chrF times 100: the F score of average precision P and average recall R.

    F = (1 + beta^2) P R / (beta^2 P + R) (Popović 2015, equation 1), with P and R averaged over the orders of which both
    texts have n-grams; 0 where nothing matches. With `eps_smoothing` the mean of the orders' F scores instead, in which
    an order without n-grams counts with 1e-16, as in chrF++.py, Moses and NLTK.

    Args:
        sums: float64 [rows, 3 * orders]: n-grams of the hypothesis, of the reference, and matches, of each order.
        beta: how many times recall weighs as much as precision.
        eps_smoothing: as above.

    Returns:
        float64 [rows], 0 to 100.

    >>> float(chrf_scores(np.array([[4.0, 5.0, 4.0, 3.0, 4.0, 2.0]]), beta=2).round(4)[0])
    67.9916
    """
    factor = beta**2
    # One order after the other, not np.sum: its additions come in another order, and the last digit is compared.
    if eps_smoothing:
        return _mean_of_orders(sums, factor)
    precision, recall = chrf_averages(sums)
    below = factor * precision + recall
    return 100 * _ratio((1 + factor) * precision * recall, below, 0.0)


def chrf_averages(sums: Floats) -> tuple[Floats, Floats]:
    """Precision and recall averaged over the orders of which both texts have n-grams; 0 where there is none.

    Args:
        sums: float64 [rows, 3 * orders], as for `chrf_scores`.

    Returns:
        float64 [rows] each, 0 to 1.
    """
    precisions, recalls, effective = np.zeros(len(sums)), np.zeros(len(sums)), np.zeros(len(sums))
    for hypothesis, reference, matches in _orders(sums):
        both = (hypothesis > 0) & (reference > 0)
        precisions += np.where(both, _ratio(matches, hypothesis, 0.0), 0.0)
        recalls += np.where(both, _ratio(matches, reference, 0.0), 0.0)
        effective += both
    return _ratio(precisions, effective, 0.0), _ratio(recalls, effective, 0.0)


def _mean_of_orders(sums: Floats, factor: float) -> Floats:
    total = np.zeros(len(sums))
    for hypothesis, reference, matches in _orders(sums):
        precision = _ratio(matches, hypothesis, EPSILON)
        recall = _ratio(matches, reference, EPSILON)
        total += _ratio((1 + factor) * precision * recall, factor * precision + recall, EPSILON)
    orders: int = sums.shape[1] // 3
    return 100 * total / orders


def _orders(sums: Floats) -> list[tuple[Floats, Floats, Floats]]:
    return [(sums[:, at], sums[:, at + 1], sums[:, at + 2]) for at in range(0, sums.shape[1], 3)]


def _ratio(above: Floats, below: Floats, otherwise: float) -> Floats:
    """above / below where below is positive."""
    quotient: Floats = np.divide(above, below, out=np.full(above.shape, otherwise), where=below > 0)
    return quotient
