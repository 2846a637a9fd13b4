"""How sure a score is, and a difference of two, from leaving out one document at a time.

Efron & Tibshirani (1993), "An Introduction to the Bootstrap", chapter 11, with Student's quantiles; the same as
`evaluation.statistics` does for ratios of sums, for scores that are other functions of sums, such as BLEU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.numerics.intervals import DOCUMENTS, JACKKNIFE, SEGMENTS, Interval, effective_freedom, student_t_quantile
from lmgauge.tasks.metrics.protocol import ScoredSums, Statistics
from lmgauge.tasks.significance import Estimate, Floats
from lmgauge.tasks.texts import Integers

_LEVEL = 0.95


class CodedSums:
    """Sums of statistics by a code of each segment, its document or its group, of segments that come in parts."""

    def __init__(self, columns: int) -> None:
        """Begin with nothing.

        Args:
            columns: statistics a segment.
        """
        self._sums = np.zeros((0, columns), dtype=np.int64)

    def add(self, codes: NDArray[np.integer[Any]], rows: Statistics) -> None:
        """Take further segments.

        Args:
            codes: [segments], of each, from 0.
            rows: int64 [segments, columns].
        """
        present, inverse = np.unique(codes, return_inverse=True)
        if present[-1] >= len(self._sums):
            room = np.zeros((max(int(present[-1]) + 1, 2 * len(self._sums)), self._sums.shape[1]), dtype=np.int64)
            room[: len(self._sums)] = self._sums
            self._sums = room
        found = np.zeros((len(present), self._sums.shape[1]), dtype=np.int64)
        np.add.at(found, inverse, rows)
        self._sums[present] += found

    @property
    def sums(self) -> Statistics:
        """Of each code, int64 [codes or more, columns]; those behind the last are 0."""
        return self._sums


def document_sums(segments: Sequence[Statistics], documents: Integers) -> list[Statistics]:
    """Add up the segments of each document, in an order that does not depend on how documents are numbered.

    Args:
        segments: of each system, int64 [segments, columns].
        documents: int64 [segments], the number of the document of each.

    Returns:
        Of each system int64 [documents, columns], without documents that have nothing.
    """
    made = [CodedSums(rows.shape[1]) for rows in segments]
    for found, rows in zip(made, segments, strict=True):
        found.add(documents, rows)
    return in_one_order([found.sums for found in made])


def in_one_order(sums: Sequence[Statistics]) -> list[Statistics]:
    """Return documents in an order that does not depend on their numbers, without those that have nothing.

    Names and order of documents then change no digit, also not of what is drawn.

    Args:
        sums: of each system, int64 [documents, columns].
    """
    beside = np.concatenate(sums, axis=1)
    something = np.flatnonzero(beside.any(axis=1))
    order = something[np.lexsort(beside[something].T[::-1])]
    return [part[order] for part in sums]


def jackknife(
    metric: ScoredSums, statistics: Sequence[Statistics], segments: int
) -> list[tuple[Estimate | None, Interval | None]]:
    """Return the interval of each system's score, and of its difference to the first (None for the first itself).

    Degrees of freedom follow the effective number of documents, (sum l)^2 / sum l^2 for sizes l of their references.

    Args:
        metric: that gave the statistics.
        statistics: of each system int64 [documents, columns].
        segments: how many there are in all documents.

    Returns:
        None for intervals where fewer than two documents have a reference, or a score without one of them is not finite.
    """
    sizes = statistics[0][:, metric.reference_columns].sum(axis=1).astype(np.float64)
    if np.count_nonzero(sizes) < 2:
        return [(None, None) for _ in statistics]
    freedom = effective_freedom(sizes)
    shape = Interval(0.0, 0.0, _LEVEL, JACKKNIFE, DOCUMENTS if len(sizes) < segments else SEGMENTS, len(sizes))
    highest = (1.0 if metric.percent else 100.0) if metric.higher_is_better else math.inf
    found: list[tuple[Estimate | None, Interval | None]] = []
    first: Floats | None = None
    for rows in statistics:
        total = rows.sum(axis=0, dtype=np.int64)
        # The whole and the rest without each document, by one formula.
        scores = metric.scores(np.concatenate((total[None], total - rows)).astype(np.float64))
        interval = _interval(scores, freedom, shape)
        difference = None if first is None else _interval(scores - first, freedom, shape)
        if interval is None:
            found.append((None, difference))
        else:  # Student's curve knows no bounds; scores do
            half = 0.5 * (interval.high - interval.low)
            within = replace(interval, low=max(0.0, interval.low), high=min(highest, interval.high))
            found.append((Estimate(None, within, half), difference))
        first = scores if first is None else first
    return found


def _interval(scores: Floats, freedom: int, shape: Interval) -> Interval | None:
    """Return the interval of the first of the figures; the others are those without one document each."""
    if not np.isfinite(scores).all():
        return None
    moves = scores[1:] - scores[0]
    # No np.dot: BLAS adds in an order that depends on the number of threads.
    error = math.sqrt((len(moves) - 1) / len(moves) * float((moves * moves).sum()))
    reach = student_t_quantile(shape.level, freedom) * error
    return replace(shape, low=float(scores[0]) - reach, high=float(scores[0]) + reach)
