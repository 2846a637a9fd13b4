"""How sure a score is, and a difference of two, from leaving out one document at a time.

Efron & Tibshirani (1993), "An Introduction to the Bootstrap", chapter 11, with Student's quantiles: for scores that are any
function of sums, such as BLEU. `intervals.spread` has the closed form for ratios of two sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lmgauge.numerics.grouped_sums import Statistics
from lmgauge.numerics.intervals import (
    DOCUMENTS,
    JACKKNIFE,
    LEVEL,
    SEGMENTS,
    Interval,
    effective_freedom,
    student_t_quantile,
)
from lmgauge.numerics.resampling import Estimate

Floats = NDArray[np.float64]


def jackknife(
    scores: Callable[[Floats], Floats],
    statistics: Sequence[Statistics],
    sizes: Floats,
    segments: int,
    bounds: tuple[float, float] = (0.0, math.inf),
) -> list[tuple[Estimate | None, Interval | None]]:
    """Return the interval of each system's score, and of its difference to the first (None for the first itself).

    Args:
        scores: the score of each row of sums, float64 [rows, columns] -> float64 [rows].
        statistics: of each system int64 [documents, columns].
        sizes: float64 [documents], how much reference each document has; degrees of freedom follow the effective number of
            documents, (sum l)^2 / sum l^2 for sizes l.
        segments: how many there are in all documents.
        bounds: the lowest and the highest score there can be; intervals end there.

    Returns:
        None for intervals where fewer than two documents have a reference, or a score without one of them is not finite.

    Example:
        >>> rows = np.array([[10, 20], [12, 20], [13, 20], [9, 20]])  # hits and words of four documents
        >>> ((accuracy, _),) = jackknife(lambda sums: sums[:, 0] / sums[:, 1], [rows], rows[:, 1] * 1.0, 9)
        >>> round(accuracy.interval.low, 3), round(accuracy.interval.high, 3)
        (0.405, 0.695)
    """
    if np.count_nonzero(sizes) < 2:
        return [(None, None) for _ in statistics]
    freedom = effective_freedom(sizes)
    shape = Interval(0.0, 0.0, LEVEL, JACKKNIFE, DOCUMENTS if len(sizes) < segments else SEGMENTS, len(sizes))
    intervals: list[tuple[Estimate | None, Interval | None]] = []
    first: Floats | None = None
    for rows in statistics:
        total = rows.sum(axis=0, dtype=np.int64)
        # The whole and the rest without each document, by one formula.
        values = scores(np.concatenate((total[None], total - rows)).astype(np.float64))
        interval = _interval(values, freedom, shape)
        difference = None if first is None else _interval(values - first, freedom, shape)
        if interval is None:
            intervals.append((None, difference))
        else:  # Student's curve knows no bounds; scores do
            half = 0.5 * (interval.high - interval.low)
            within = replace(interval, low=max(bounds[0], interval.low), high=min(bounds[1], interval.high))
            intervals.append((Estimate(None, within, half), difference))
        first = values if first is None else first
    return intervals


def _interval(values: Floats, freedom: int, shape: Interval) -> Interval | None:
    """Return the interval of the first of the figures; the others are those without one document each."""
    if not np.isfinite(values).all():
        return None
    moves = values[1:] - values[0]
    # No np.dot: BLAS adds in an order that depends on the number of threads.
    error = math.sqrt((len(moves) - 1) / len(moves) * float((moves * moves).sum()))
    reach = student_t_quantile(shape.level, freedom) * error
    return replace(shape, low=float(values[0]) - reach, high=float(values[0]) + reach)
