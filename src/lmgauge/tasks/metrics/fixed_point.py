"""Float statistics as whole numbers, so that their sums are exact: the same in any order, in any parts, on any threads."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from lmgauge.errors import UsageError
from lmgauge.tasks.metrics.protocol import Floats, Statistics, TaskMetric, TaskScore
from lmgauge.tasks.texts import References, Texts

SCALE = 2.0**32
"""A float is counted in parts of 1 / `SCALE`."""

LARGEST = 1000.0
"""The largest statistic of a segment: so the sums of two million segments fit into 63 bits."""


class FixedPoint:
    """A metric over its own statistics times `SCALE`, rounded; all else is the metric's."""

    def __init__(self, metric: TaskMetric) -> None:
        self.metric = metric

    def __getattr__(self, name: str) -> Any:
        return getattr(self.metric, name)

    def statistics(
        self, hypotheses: Texts, references: References, threads: int | None = None, sources: Texts | None = None
    ) -> Statistics:
        """Return the metric's statistics, int64 [segments, columns]; see `TaskMetric.statistics`."""
        rows = np.asarray(self.metric.statistics(hypotheses, references, threads, sources), dtype=np.float64)
        if rows.shape != (len(hypotheses), len(self.metric.columns)):
            raise UsageError(
                f"{self.metric.name}: statistics of shape {rows.shape} for {len(hypotheses)} segments and "
                f"{len(self.metric.columns)} columns"
            )
        wrong = np.flatnonzero(~(np.abs(rows) <= LARGEST).all(axis=1))
        if len(wrong):
            raise UsageError(
                f"{self.metric.name}: the statistics of segment {wrong[0] + 1} are {rows[wrong[0]].tolist()}; they must be "
                f"finite and from -{LARGEST:.0f} to {LARGEST:.0f}"
            )
        return np.rint(rows * SCALE).astype(np.int64)

    def scores(self, sums: Floats) -> Floats:
        """Return the number for each row of sums, float64 [rows, columns] -> float64 [rows]."""
        return self.metric.scores(sums / SCALE)

    def score(self, sums: Statistics, references: int | None, choices: dict[str, str] | None = None) -> TaskScore:
        """Return the number and its parts from one sum, int64 [columns]; see `ScoredSums.score`."""
        return self.metric.score(sums / SCALE, references, choices)


def with_whole_statistics(metric: TaskMetric) -> TaskMetric:
    """Return a metric with int64 statistics that gives the same scores; itself if its statistics are whole numbers."""
    # metric: with int64 or float64 statistics [segments, columns].
    return cast(TaskMetric, FixedPoint(metric)) if metric.float_statistics else metric
