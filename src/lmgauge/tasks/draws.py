"""What is drawn to tell how sure scores are, and whether a system differs from the first: segments, or documents.

Where documents are known, a row of statistics is the sum of a document: what is left out, swapped or drawn. The interval
is then the jackknife's, as the bootstrap's of few documents is too narrow: of real books 18 % of intervals
of 95 % missed with 6 documents and 9 % with 25. Where they are not known, segments are drawn as sacreBLEU draws them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lmgauge.choices import SIGNIFICANCE_TESTS
from lmgauge.errors import UsageError
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import BOOTSTRAP as BOOTSTRAP_METHOD
from lmgauge.numerics.intervals import DOCUMENTS, SEGMENTS, UNKNOWN, Interval
from lmgauge.numerics.resampling import (
    DEFAULT_RESAMPLES,
    DEFAULT_TRIALS,
    Estimate,
    bootstrap_sums,
    jackknife,
    percentile_interval,
    randomized_sums,
    swapped_sums,
)
from lmgauge.numerics.significance import bootstrap_p_value, randomization_p_value, swapped_p_value
from lmgauge.tasks.metrics.protocol import Floats, ScoredSums, Statistics
from lmgauge.tasks.settings import ComparisonSettings

RANDOMIZATION_TEST, BOOTSTRAP_TEST = SIGNIFICANCE_TESTS
SIGNIFICANT = 0.05
ONE_DOCUMENT = "one document"
"""What tells documents apart, where all segments are of one and so segments are drawn."""

# With fewer segments intervals are too narrow, and the bootstrap's rule, made for test sets, gives too small p-values.
_FEW = 30
# Up to this number of documents all swaps are counted, which is less work than tossing 10,000 times.
_ALL_SWAPS = 16


@dataclass(frozen=True)
class IndependentRows:
    """Statistics of what is taken as independent: documents, segments, or units of neighboring segments.

    Attributes:
        statistics: of each system, int64 [rows, columns].
        segments: how many there are in all rows; None: each row is one.
        segments_per_row: more than 1 where neighbors were added up (`UnitSums`).
        documents_by: what tells documents apart, for people; "unknown" if nothing does, `ONE_DOCUMENT` if there is one only.
        by_document: each row is the sum of a document.
    """

    statistics: Sequence[Statistics]
    segments: int | None = None
    segments_per_row: int = 1
    documents_by: str = UNKNOWN
    by_document: bool = False

    def with_documents(self, documents: Sequence[Statistics]) -> IndependentRows:
        """Return documents as rows where there are two or more; else the same rows, of one document.

        Args:
            documents: of each system, int64 [documents, columns], as `in_one_order` or `document_sums` gives them.

        >>> rows = IndependentRows([np.array([[1], [2], [4]])], documents_by="names")
        >>> rows.with_documents([np.array([[3], [4]])]).by_document
        True
        >>> rows.with_documents([np.array([[7]])]).documents_by
        'one document'
        """
        if len(documents[0]) < 2:
            return replace(self, documents_by=ONE_DOCUMENT)
        return IndependentRows(documents, self.count, 1, self.documents_by, by_document=True)

    @property
    def count(self) -> int:
        """The number of segments in all rows."""
        return len(self.statistics[0]) if self.segments is None else self.segments


@dataclass(frozen=True)
class Plan:
    """What is to be drawn, of which rows.

    Attributes:
        data: statistics of all systems.
        settings: the test, and how much was asked for.
    """

    data: IndependentRows
    settings: ComparisonSettings

    def __post_init__(self) -> None:
        """Refuse what has no sound answer.

        Raises:
            UsageError: the paired bootstrap was asked for over documents: with six its rule errs in 26 of 100 cases, not 5.
        """
        if self.settings.test == BOOTSTRAP_TEST and self.data.by_document and self.compares:
            raise UsageError(
                "the test bootstrap takes segments as independent, as sacreBLEU does, and errs over documents; use the test "
                "randomization, or say that documents are unknown (--document unknown)"
            )

    @property
    def rows(self) -> int:
        """The number of rows of statistics."""
        return len(self.data.statistics[0])

    @property
    def compares(self) -> bool:
        """True if there is more than one system."""
        return len(self.data.statistics) > 1

    @property
    def draws(self) -> bool:
        """True if there is anything to draw, or to leave out."""
        return self.settings.test is not None and self.rows > 1

    @property
    def tosses(self) -> bool:
        """True if systems are compared with the first by swaps."""
        return self.draws and self.settings.test == RANDOMIZATION_TEST and self.compares

    @property
    def exact(self) -> bool:
        """True if all swaps are counted, and none is drawn."""
        return self.tosses and self.data.by_document and self.rows <= _ALL_SWAPS

    @property
    def trials(self) -> int | None:
        """How many swaps are tried."""
        if not self.tosses:
            return None
        if self.exact:
            return 1 << (self.rows - 1)
        return DEFAULT_TRIALS if self.settings.resamples is None else self.settings.resamples

    @property
    def resamples(self) -> int | None:
        """The number of resamples of segments."""
        if not self.draws or self.data.by_document:
            return None
        asked = None if self.settings.test == RANDOMIZATION_TEST else self.settings.resamples
        return DEFAULT_RESAMPLES if asked is None else asked

    @property
    def drawn_seed(self) -> int | None:
        """The seed, if anything depends on it."""
        return self.settings.seed if self.resamples is not None or (self.tosses and not self.exact) else None

    @property
    def units(self) -> Interval | None:
        """What is taken as independent, as an interval without ends; None if nothing is drawn."""
        if not self.draws:
            return None
        unit = DOCUMENTS if self.data.by_document and self.rows < self.data.count else SEGMENTS
        return Interval(-math.inf, math.inf, 0.95, BOOTSTRAP_METHOD, unit, self.rows)

    def choices(self) -> dict[str, str]:
        """Keys of the signature, in sacreBLEU's order; documents last."""
        keys = {
            "bs": self.resamples,
            "ar": "exact" if self.exact else self.trials,
            "seed": self.drawn_seed,
            "block": self.data.segments_per_row if self.draws and self.data.segments_per_row > 1 else None,
            "independent": in_signature(self.units) if self.draws and self.data.by_document else None,
        }
        return {key: str(value) for key, value in keys.items() if value is not None}

    def independence(self) -> str:
        """Return what is taken as independent, as a sentence without its full stop; empty if nothing is drawn."""
        units = self.units
        if units is None:
            return ""
        if self.data.documents_by not in (UNKNOWN, ONE_DOCUMENT):
            return in_words(units, self.data.documents_by)
        if self.data.documents_by == ONE_DOCUMENT:
            whose, advice = "segments of one document", "they say nothing about other documents"
        else:
            whose, advice = "segments", "name the documents with --document, if segments belong together"
        return f"{self.data.count:,} {whose} are taken as independent; {advice}"

    def caveats(self) -> Iterator[str]:
        """Yield notes on what is too little to draw from."""
        if self.settings.test is None:
            return
        if self.rows == 1:
            yield "one segment: there is nothing to draw from, so no interval and no test"
        elif self.data.by_document:
            yield from caveats(self.units)
        elif self.rows < _FEW:
            lenient = " and p-values too small" if self.settings.test == BOOTSTRAP_TEST else ""
            yield f"{self.rows} segments are few: intervals are too narrow{lenient}; take {_FEW} or more"
        together = self.data.segments_per_row
        if together > 1:
            yield f"{together} neighboring segments at a time were drawn as one (block:{together})"


@dataclass
class Drawn:
    """What is found of one system."""

    interval: Estimate | None = None
    difference_interval: Interval | None = None
    p_value: float | None = None
    notes: list[str] = field(default_factory=list)


def draw(metric: ScoredSums, names: Sequence[str], plan: Plan) -> list[Drawn]:
    """Return the interval of each system, and the p-value of each but the first against the first.

    Args:
        metric: that gave the statistics, [rows, columns] of each system.
        names: of the systems.
        plan: what is to be drawn.

    Raises:
        UsageError: fewer than 40 resamples, or a seed below 0.
    """
    statistics, by_document = plan.data.statistics, plan.data.by_document
    drawn = [Drawn() for _ in statistics]
    if plan.draws:
        # By one formula for all, so that a trial that swaps all or nothing ties with the real difference.
        totals = np.stack([part.sum(axis=0, dtype=np.int64) for part in statistics]).astype(np.float64)
        real = metric.scores(totals)
        if by_document:
            for of_system, (interval, difference) in zip(drawn, leave_out(metric, statistics, plan.data.count), strict=True):
                of_system.interval, of_system.difference_interval = interval, difference
        if plan.resamples is not None:
            _bootstrap(metric, drawn, plan, real)
        if plan.tosses:
            _randomize(metric, drawn, plan, real)
        _settle_identical(names, statistics, drawn, "document" if by_document else "segment")
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


def _bootstrap(metric: ScoredSums, drawn: Sequence[Drawn], plan: Plan, real: Floats) -> None:
    assert plan.resamples is not None
    seed = plan.settings.seed
    resampled = [metric.scores(sums) for sums in bootstrap_sums(plan.data.statistics, plan.resamples, seed)]
    for i, (of_system, values) in enumerate(zip(drawn, resampled, strict=True)):
        of_system.interval = percentile_interval(values, seed, plan.rows)
        of_system.difference_interval = percentile_interval(values - resampled[0], seed, plan.rows).interval if i else None
        if i and plan.settings.test == BOOTSTRAP_TEST:
            of_system.p_value = bootstrap_p_value(resampled[0], values, float(real[i] - real[0]))


def _randomize(metric: ScoredSums, drawn: Sequence[Drawn], plan: Plan, real: Floats) -> None:
    assert plan.trials is not None
    statistics, settings = plan.data.statistics, plan.settings
    if plan.exact:
        for of_system, other in list(zip(drawn, statistics, strict=True))[1:]:
            mine, theirs = swapped_sums(statistics[0], other)
            of_system.p_value = swapped_p_value(metric.scores(mine), metric.scores(theirs))
        return
    mixed = randomized_sums(statistics[0], statistics[1:], plan.trials, settings.seed, settings.threads)
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
