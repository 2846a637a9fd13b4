"""Ranks and entropies that a score table tells of its events, where it was asked for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import ScoreBatch


@dataclass(frozen=True)
class RankStatistics:
    """What the columns `rank` and `entropy` of a score table tell, over all its events; None without the column.

    Attributes:
        events: rows.
        first, top_5, top_10: share of events whose token was the most probable, or among the 5 or 10 most probable.
        mean_reciprocal_rank: mean of 1 / rank.
        mean_entropy_bits: what the model expected to pay for an event.
        mean_surprisal_bits: what it paid; infinite with an event of probability zero.
    """

    events: int
    first: float | None
    top_5: float | None
    top_10: float | None
    mean_reciprocal_rank: float | None
    mean_entropy_bits: float | None
    mean_surprisal_bits: float


class RankSums:
    """Collects `RankStatistics`, batch by batch."""

    def __init__(self) -> None:
        self._events = 0
        self._within = [0, 0, 0]
        self._columns = {"rank", "entropy"}
        self._sums: dict[str, list[float]] = {"reciprocal": [], "entropy": [], "surprisal": []}

    def add(self, batch: ScoreBatch) -> None:
        """Add the rows of a batch.

        Args:
            batch: events, with the columns `rank` and `entropy` (nats) or without.
        """
        if not len(batch):
            return
        self._events += len(batch)
        self._columns &= batch.extra.keys()
        self._sums["surprisal"].append(-float(batch.logprob.sum()))
        if "rank" in self._columns:
            rank = batch.extra["rank"]
            for i, most in enumerate((1, 5, 10)):
                self._within[i] += int(np.count_nonzero(rank <= most))
            self._sums["reciprocal"].append(float((1.0 / rank).sum()))
        if "entropy" in self._columns:
            self._sums["entropy"].append(float(batch.extra["entropy"].sum()))

    def finish(self) -> RankStatistics | None:
        """Return the statistics; None where the table has neither column."""
        if not self._columns or not self._events:
            return None

        def mean(name: str) -> float:
            return math.fsum(self._sums[name]) / self._events

        ranks = "rank" in self._columns
        first, top_5, top_10 = (count / self._events if ranks else None for count in self._within)
        return RankStatistics(
            events=self._events,
            first=first,
            top_5=top_5,
            top_10=top_10,
            mean_reciprocal_rank=mean("reciprocal") if ranks else None,
            mean_entropy_bits=nats_to_bits(mean("entropy")) if "entropy" in self._columns else None,
            mean_surprisal_bits=nats_to_bits(mean("surprisal")),
        )
