"""How sure scores are, and whether a system differs from the first: what is independent, and the tests over it."""

# A row of statistics is the sum of a document where documents are known, else of a segment. The test `student` is that of
# perplexity: each row is left out once, and where documents are unknown the slow waves along the text count if they are
# larger (`numerics/intervals.py`); nothing is drawn. The tests by sacreBLEU's name draw segments as it does.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np

from lmgauge.base.choices import SignificanceTest
from lmgauge.base.errors import UsageError
from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import DOCUMENTS, FEWEST_UNITS, SEGMENTS, UNKNOWN, Interval
from lmgauge.numerics.resampling import (
    DEFAULT_RESAMPLES,
    DEFAULT_TRIALS,
    Estimate,
    bootstrap_p_value,
    bootstrap_sums,
    document_sums,
    jackknife,
    percentile_interval,
    randomization_p_value,
    randomized_sums,
)
from lmgauge.tasks.metrics.protocol import ScoredSums, Statistics
from lmgauge.tasks.settings import ComparisonSettings
from lmgauge.tasks.texts import Integers

STUDENT, SACREBLEU, SACREBLEU_BOOTSTRAP, _ = get_args(SignificanceTest)
SIGNIFICANT = 0.05

# With fewer segments sacreBLEU's intervals are too narrow, and its bootstrap's rule, made for test sets, gives too small
# p-values.
_FEW = 30


@dataclass(frozen=True)
class IndependentRows:
    """Statistics of what is taken as independent: documents, segments, or units of neighboring segments."""

    statistics: Sequence[Statistics]  # of each system, int64 [rows, columns]
    segments: int | None = None  # how many there are in all rows; None: each row is one
    segments_per_row: int = 1  # more than 1 where neighbors were added up (`UnitSums`)
    documents_by: str = UNKNOWN  # what tells documents apart, for people; "unknown" if nothing does
    by_document: bool = False  # each row is the sum of a document

    @classmethod
    def of(cls, statistics: Sequence[Statistics], codes: Integers | None, documents_by: str) -> IndependentRows:
        """Return segments as rows, or their documents where these are known and enough."""
        # codes: int64 [segments], the number of the document of each; None where documents are not known.
        rows = cls(statistics, documents_by=documents_by)
        return rows if codes is None else rows.with_documents(document_sums(statistics, codes))

    def with_documents(self, documents: Sequence[Statistics]) -> IndependentRows:
        """Return documents as rows where there are six or more; else the same rows."""
        # documents: of each system, int64 [documents, columns], as `in_one_order` or `document_sums` gives them.
        if len(documents[0]) < FEWEST_UNITS:
            return self
        return IndependentRows(documents, self.count, 1, self.documents_by, by_document=True)

    @property
    def count(self) -> int:
        """Return the number of segments in all rows."""
        return len(self.statistics[0]) if self.segments is None else self.segments

    @property
    def unit(self) -> str:
        """Return what a row is: "documents", "segments" where each is a document, or "unknown" of segments otherwise."""
        if self.by_document and len(self.statistics[0]) < self.count:
            return DOCUMENTS
        return SEGMENTS if self.by_document or self.documents_by == SEGMENTS else UNKNOWN


@dataclass(frozen=True)
class SignificancePlan:
    """What is to be tested, over which rows."""

    data: IndependentRows
    settings: ComparisonSettings  # the test, and how much was asked for

    def __post_init__(self) -> None:
        if self.by_sacrebleu and self.data.by_document:
            raise UsageError(
                f"the test {self.settings.test} takes segments as independent, as sacreBLEU does: use the test {STUDENT}, "
                "or say that documents are unknown (--document unknown)"
            )

    @property
    def by_sacrebleu(self) -> bool:
        """Return True if segments are drawn as sacreBLEU draws them."""
        return self.settings.test in (SACREBLEU, SACREBLEU_BOOTSTRAP)

    @property
    def rows(self) -> int:
        """Return the number of rows of statistics."""
        return len(self.data.statistics[0])

    @property
    def trials(self) -> int | None:
        """Return how many swaps are tried."""
        if self.settings.test != SACREBLEU or self.rows < 2 or len(self.data.statistics) < 2:
            return None
        return DEFAULT_TRIALS if self.settings.resamples is None else self.settings.resamples

    @property
    def resamples(self) -> int | None:
        """Return the number of resamples of segments."""
        if not self.by_sacrebleu or self.rows < 2:
            return None
        asked = None if self.settings.test == SACREBLEU else self.settings.resamples
        return DEFAULT_RESAMPLES if asked is None else asked

    @property
    def drawn_seed(self) -> int | None:
        """Return the seed, if anything depends on it."""
        return None if self.resamples is None else self.settings.seed

    def choices(self, widest: Interval | None) -> dict[str, str]:
        """Return keys of the signature, in sacreBLEU's order; what is independent last."""
        keys = {
            "bs": self.resamples,
            "ar": self.trials,
            "seed": self.drawn_seed,
            "block": self.data.segments_per_row if self.settings.test and self.data.segments_per_row > 1 else None,
            "independent": in_signature(widest) if self.settings.test == STUDENT else None,
        }
        return {key: str(value) for key, value in keys.items() if value is not None}

    def independence(self, widest: Interval | None) -> str:
        """Return what is taken as independent, as a sentence without its full stop; empty if there is no interval."""
        if widest is None:
            return ""
        if self.by_sacrebleu:
            return f"{self.data.count:,} segments are taken as independent, as sacreBLEU takes them"
        return in_words(widest, self.data.documents_by)

    def caveats(self, widest: Interval | None) -> Iterator[str]:
        """Yield notes on what is too little."""
        if self.settings.test is None:
            return
        if not self.by_sacrebleu:
            yield from caveats(widest)
        elif self.rows == 1:
            yield "one segment: there is nothing to draw from, so no interval and no test"
        elif self.rows < _FEW:
            lenient = " and p-values too small" if self.settings.test == SACREBLEU_BOOTSTRAP else ""
            yield f"{self.rows} segments are few: intervals are too narrow{lenient}; take {_FEW} or more"
        together = self.data.segments_per_row
        if together > 1:
            yield f"{together} neighboring segments at a time were taken as one (block:{together})"


@dataclass
class Uncertainty:
    """How sure the score of one system is, and whether it differs from the first."""

    interval: Estimate | None = None
    difference_interval: Interval | None = None
    p_value: float | None = None
    notes: list[str] = field(default_factory=list)


def widest(drawn: Sequence[Uncertainty]) -> Interval | None:
    """Return the interval of scores and differences that is wider than that of independent segments by most."""
    scores = [one.interval.interval for one in drawn if one.interval is not None]
    differences = [one.difference_interval for one in drawn if one.difference_interval is not None]
    return max([*differences, *scores], key=lambda interval: interval.alike, default=None)


def uncertainties(metric: ScoredSums, names: Sequence[str], plan: SignificancePlan) -> list[Uncertainty]:
    """Return the interval of each system, and the p-value of each but the first against the first."""
    # metric: that gave the statistics, [rows, columns] of each system.
    statistics = plan.data.statistics
    drawn = [Uncertainty() for _ in statistics]
    if plan.settings.test == STUDENT:
        _leave_out(metric, names, drawn, plan)
    if plan.resamples is not None:
        _resample(metric, drawn, plan, plan.resamples)
    _settle_identical(names, drawn, plan.data)
    return drawn


def _leave_out(metric: ScoredSums, names: Sequence[str], drawn: Sequence[Uncertainty], plan: SignificancePlan) -> None:
    statistics, unit = plan.data.statistics, plan.data.unit
    sizes = statistics[0][:, metric.reference_columns].sum(axis=1).astype(np.float64)
    spreads = jackknife(metric.scores, statistics, sizes, unit)
    for name, of_system, rows, (own, apart) in zip(names, drawn, statistics, spreads, strict=True):
        if own is not None:
            whole = own.interval()
            # Student's curve knows no bounds; scores do.
            low, high = max(metric.bounds[0], whole.low), min(metric.bounds[1], whole.high)
            of_system.interval = Estimate(None, replace(whole, low=low, high=high), 0.5 * (whole.high - whole.low))
        if apart is not None:
            # Where few rows differ, their signs say no more than tossed coins.
            differing = int((rows != statistics[0]).any(axis=1).sum())
            of_system.p_value = max(apart.p_value, 2.0 ** min(0, 1 - differing))
            if 0 < differing < FEWEST_UNITS:
                what = DOCUMENTS if unit == DOCUMENTS else SEGMENTS
                drawn[0].notes.append(
                    f"{name}: differs from {names[0]} in {differing} {what}; fewer than {FEWEST_UNITS} show no difference"
                )
            else:
                of_system.difference_interval = apart.interval()


def _resample(metric: ScoredSums, drawn: Sequence[Uncertainty], plan: SignificancePlan, resamples: int) -> None:
    statistics, settings = plan.data.statistics, plan.settings
    # By one formula for all, so that a trial that swaps all or nothing ties with the real difference.
    real = metric.scores(np.stack([part.sum(axis=0, dtype=np.int64) for part in statistics]).astype(np.float64))
    resampled = [metric.scores(sums) for sums in bootstrap_sums(statistics, resamples, settings.seed)]
    for i, (of_system, values) in enumerate(zip(drawn, resampled, strict=True)):
        of_system.interval = percentile_interval(values, settings.seed, plan.rows)
        if i:
            of_system.difference_interval = percentile_interval(values - resampled[0], settings.seed, plan.rows).interval
        if i and settings.test == SACREBLEU_BOOTSTRAP:
            of_system.p_value = bootstrap_p_value(resampled[0], values, float(real[i] - real[0]))
    if plan.trials is None:
        return
    mixed = randomized_sums(statistics[0], statistics[1:], plan.trials, settings.seed, settings.threads)
    for i, (mine, theirs) in enumerate(mixed, start=1):
        differing = int((statistics[i] != statistics[0]).any(axis=1).sum())
        difference = float(real[i] - real[0])
        drawn[i].p_value = randomization_p_value(metric.scores(mine), metric.scores(theirs), difference, differing)


def _settle_identical(names: Sequence[str], drawn: Sequence[Uncertainty], data: IndependentRows) -> None:
    # P-value 1 where nothing tells a system from the first: the bootstrap's rule would give the least.
    same, row = [], "document" if data.by_document else "segment"
    for name, part, of_system in list(zip(names, data.statistics, drawn, strict=True))[1:]:
        if of_system.p_value is not None and np.array_equal(part, data.statistics[0]):
            of_system.p_value = 1.0
            same.append(name)
    if same:
        who = same[0] if len(same) == 1 else f"{same[0]} and {len(same) - 1} more"
        drawn[0].notes.append(f"{who}: the same counts as {names[0]} in every {row}, so p = 1")


def doubts(name: str, drawn: Uncertainty, p: float | None, test: str | None) -> Iterator[str]:
    """Yield where the lenient rule of the paired bootstrap says yes and the interval does not."""
    interval = drawn.difference_interval
    if test == SACREBLEU_BOOTSTRAP and p is not None and p < SIGNIFICANT and interval and interval.low <= 0 <= interval.high:
        yield (
            f"{name}: p is below {SIGNIFICANT} by sacreBLEU's rule, which counts one side only, but the 95 % interval of "
            "the difference holds 0: ask another test"
        )
