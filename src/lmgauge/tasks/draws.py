"""What is drawn to tell how sure scores are, and whether a system differs from the first: segments, or documents.

Where documents are known, a row of statistics is the sum of a document: what is left out, swapped or drawn. The interval
is then the jackknife's, as the bootstrap's of few documents is too narrow: of real books 18 % of intervals
of 95 % missed with 6 documents and 9 % with 25. Where they are not known, segments are drawn as sacreBLEU draws them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmgauge.choices import SIGNIFICANCE_TESTS
from lmgauge.errors import UsageError
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import BOOTSTRAP as BOOTSTRAP_METHOD
from lmgauge.numerics.intervals import DOCUMENTS, SEGMENTS, UNKNOWN, Interval
from lmgauge.numerics.jackknife import jackknife
from lmgauge.numerics.resampling import (
    DEFAULT_RESAMPLES,
    DEFAULT_TRIALS,
    Estimate,
    bootstrap_sums,
    percentile_interval,
    randomized_sums,
    swapped_sums,
)
from lmgauge.numerics.significance import bootstrap_p_value, randomization_p_value, swapped_p_value
from lmgauge.tasks.metrics.protocol import Floats, ScoredSums, Statistics

RANDOMIZATION_TEST, BOOTSTRAP_TEST = SIGNIFICANCE_TESTS
SIGNIFICANT = 0.05
ONE_DOCUMENT = "one document"
"""What tells documents apart, where all segments are of one and so segments are drawn."""

# Below so many segments intervals are too narrow, and the bootstrap's rule, made for test sets, gives too small p-values.
_FEW = 30
# Up to so many documents all swaps are counted, which is less work than tossing 10,000 times.
_ALL_SWAPS = 16


@dataclass(frozen=True)
class Plan:
    """What is to be drawn.

    Attributes:
        test: "bootstrap", "randomization", or None to draw nothing at all.
        systems: how many there are.
        rows: of statistics.
        segments: how many there are in all rows.
        per_row: segments a row, where neighbors were added up.
        documents_by: what tells documents apart, "unknown" if nothing does; or `ONE_DOCUMENT`.
        by_document: whether each row is the sum of a document.
        asked: resamples that were asked for.
        seed: of all draws.
    """

    test: str | None
    systems: int
    rows: int
    segments: int
    per_row: int
    documents_by: str
    by_document: bool
    asked: int | None
    seed: int

    def __post_init__(self) -> None:
        """Refuse what has no sound answer.

        Raises:
            UsageError: the paired bootstrap was asked for over documents: with six its rule errs in 26 of 100 cases, not 5.
        """
        if self.test == BOOTSTRAP_TEST and self.by_document and self.systems > 1:
            raise UsageError(
                "the test bootstrap takes segments as independent, as sacreBLEU does, and errs over documents; use the test "
                "randomization, or say that documents are unknown (--document unknown)"
            )

    @property
    def draws(self) -> bool:
        """Whether there is anything to draw, or to leave out."""
        return self.test is not None and self.rows > 1

    @property
    def tosses(self) -> bool:
        """Whether systems are compared with the first by swaps."""
        return self.draws and self.test == RANDOMIZATION_TEST and self.systems > 1

    @property
    def exact(self) -> bool:
        """Whether all swaps are counted, and none is drawn."""
        return self.tosses and self.by_document and self.rows <= _ALL_SWAPS

    @property
    def trials(self) -> int | None:
        """How many swaps are tried."""
        if not self.tosses:
            return None
        return 1 << (self.rows - 1) if self.exact else DEFAULT_TRIALS if self.asked is None else self.asked

    @property
    def resamples(self) -> int | None:
        """How many resamples of segments are drawn."""
        if not self.draws or self.by_document:
            return None
        return DEFAULT_RESAMPLES if self.asked is None or self.test == RANDOMIZATION_TEST else self.asked

    @property
    def drawn_seed(self) -> int | None:
        """The seed, if anything depends on it."""
        return self.seed if self.resamples is not None or (self.tosses and not self.exact) else None

    @property
    def units(self) -> Interval | None:
        """What is taken as independent, as an interval without ends; None if nothing is drawn."""
        if not self.draws:
            return None
        unit = DOCUMENTS if self.by_document and self.rows < self.segments else SEGMENTS
        return Interval(-math.inf, math.inf, 0.95, BOOTSTRAP_METHOD, unit, self.rows)

    def choices(self) -> dict[str, str]:
        """Keys of the signature, in sacreBLEU's order; documents last."""
        keys = {
            "bs": self.resamples,
            "ar": "exact" if self.exact else self.trials,
            "seed": self.drawn_seed,
            "block": self.per_row if self.draws and self.per_row > 1 else None,
            "independent": in_signature(self.units) if self.draws and self.by_document else None,
        }
        return {key: str(value) for key, value in keys.items() if value is not None}

    def independence(self) -> str:
        """Return what is taken as independent, as a sentence without its full stop; empty if nothing is drawn."""
        units = self.units
        if units is None:
            return ""
        if self.documents_by not in (UNKNOWN, ONE_DOCUMENT):
            return in_words(units, self.documents_by)
        if self.documents_by == ONE_DOCUMENT:
            whose, advice = "segments of one document", "they say nothing about other documents"
        else:
            whose, advice = "segments", "name the documents with --document, if segments belong together"
        return f"{self.segments:,} {whose} are taken as independent; {advice}"

    def caveats(self) -> Iterator[str]:
        """Yield notes on what is too little to draw from."""
        if self.test is None:
            return
        if self.rows == 1:
            yield "one segment: there is nothing to draw from, so no interval and no test"
        elif self.by_document:
            yield from caveats(self.units, tested=self.systems > 1)
        elif self.rows < _FEW:
            lenient = " and p-values too small" if self.test == BOOTSTRAP_TEST else ""
            yield f"{self.rows} segments are few: intervals are too narrow{lenient}; take {_FEW} or more"
        if self.per_row > 1:
            yield f"{self.per_row} neighboring segments at a time were drawn as one (block:{self.per_row})"


@dataclass
class Drawn:
    """What is found of one system."""

    interval: Estimate | None = None
    difference_interval: Interval | None = None
    p_value: float | None = None
    notes: list[str] = field(default_factory=list)


def draw(
    metric: ScoredSums, names: Sequence[str], statistics: Sequence[Statistics], plan: Plan, threads: int | None
) -> list[Drawn]:
    """Return the interval of each system, and the p-value of each but the first against the first.

    Args:
        metric: that gave the statistics.
        names: of the systems.
        statistics: of each system, int64 [rows, columns].
        plan: what is to be drawn.
        threads: how many; no number depends on it.
    """
    drawn = [Drawn() for _ in statistics]
    if plan.draws:
        # By one formula for all, so that a trial that swaps all or nothing ties with the real difference.
        totals = np.stack([part.sum(axis=0, dtype=np.int64) for part in statistics]).astype(np.float64)
        real = metric.scores(totals)
        if plan.by_document:
            for of_system, (interval, difference) in zip(drawn, leave_out(metric, statistics, plan.segments), strict=True):
                of_system.interval, of_system.difference_interval = interval, difference
        if plan.resamples is not None:
            _bootstrap(metric, statistics, drawn, plan, real)
        if plan.tosses:
            _randomize(metric, statistics, drawn, plan, real, threads)
        _settle_identical(names, statistics, drawn, "document" if plan.by_document else "segment")
    return drawn


def leave_out(
    metric: ScoredSums, statistics: Sequence[Statistics], segments: int
) -> list[tuple[Estimate | None, Interval | None]]:
    """Return the jackknife's interval of each system's score, and of its difference to the first; see `jackknife`.

    Args:
        metric: that gave the statistics.
        statistics: of each system int64 [documents, columns].
        segments: how many there are in all documents.
    """
    sizes = statistics[0][:, metric.reference_columns].sum(axis=1).astype(np.float64)
    return jackknife(metric.scores, statistics, sizes, segments, metric.bounds)


def _bootstrap(
    metric: ScoredSums, statistics: Sequence[Statistics], drawn: Sequence[Drawn], plan: Plan, real: Floats
) -> None:
    assert plan.resamples is not None
    resampled = [metric.scores(sums) for sums in bootstrap_sums(statistics, plan.resamples, plan.seed)]
    for i, (of_system, values) in enumerate(zip(drawn, resampled, strict=True)):
        of_system.interval = percentile_interval(values, plan.seed, plan.rows)
        of_system.difference_interval = (
            percentile_interval(values - resampled[0], plan.seed, plan.rows).interval if i else None
        )
        if i and plan.test == BOOTSTRAP_TEST:
            of_system.p_value = bootstrap_p_value(resampled[0], values, float(real[i] - real[0]))


def _randomize(
    metric: ScoredSums,
    statistics: Sequence[Statistics],
    drawn: Sequence[Drawn],
    plan: Plan,
    real: Floats,
    threads: int | None,
) -> None:
    assert plan.trials is not None
    if plan.exact:
        for of_system, other in list(zip(drawn, statistics, strict=True))[1:]:
            mine, theirs = swapped_sums(statistics[0], other)
            of_system.p_value = swapped_p_value(metric.scores(mine), metric.scores(theirs))
        return
    mixed = randomized_sums(statistics[0], statistics[1:], plan.trials, plan.seed, threads)
    for i, (mine, theirs) in enumerate(mixed, start=1):
        difference = float(real[i] - real[0])
        differing = int((statistics[i] != statistics[0]).any(axis=1).sum())
        drawn[i].p_value = randomization_p_value(metric.scores(mine), metric.scores(theirs), difference, differing)


def _settle_identical(names: Sequence[str], statistics: Sequence[Statistics], drawn: Sequence[Drawn], row: str) -> None:
    """P-value 1 where nothing tells a system from the first: the bootstrap's rule would give the least."""
    same = []
    for name, part, of_system in list(zip(names, statistics, drawn, strict=True))[1:]:
        if of_system.p_value is not None and np.array_equal(part, statistics[0]):
            of_system.p_value = 1.0
            same.append(name)
    if same:
        who = same[0] if len(same) == 1 else f"{same[0]} and {len(same) - 1} more"
        drawn[0].notes.append(
            f"{who}: the same counts as {names[0]} in every {row}, so p = 1 (sacreBLEU prints its least p-value)"
        )


def doubts(name: str, drawn: Drawn, p: float | None, test: str | None) -> Iterator[str]:
    """Yield where the lenient rule of the paired bootstrap says yes and the interval does not.

    Args:
        name: of the system.
        drawn: of it.
        p: its p-value, adjusted.
        test: that gave it.
    """
    interval = drawn.difference_interval
    if test == BOOTSTRAP_TEST and p is not None and p < SIGNIFICANT and interval and interval.low <= 0 <= interval.high:
        yield (
            f"{name}: p is below {SIGNIFICANT} by sacreBLEU's rule, which counts one side only, but the 95 % interval of "
            "the difference holds 0: ask the randomization test"
        )
