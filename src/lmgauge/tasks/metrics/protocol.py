"""What every task metric is: statistics per segment that add up, and a number from their sum.

Statistics that are floats are added up as whole numbers, so that sums are the same in any order, any parts, on any threads.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import UsageError
from lmgauge.base.plugins import Plugins
from lmgauge.tasks.texts import References, Texts

METRICS = Plugins(
    "metrics",
    """
    bleu = lmgauge.tasks.metrics.bleu:BLEU
    cer = lmgauge.tasks.metrics.error_rates:CER
    chrf = lmgauge.tasks.metrics.chrf:ChrF
    ter = lmgauge.tasks.metrics.ter:TER
    wer = lmgauge.tasks.metrics.error_rates:WER
    """,
)
"""The class of a metric by its name; its fields are options."""
SACREBLEU_VERSION = "2.6.0"
"""The sacreBLEU whose digits BLEU, chrF and TER are."""

Statistics = NDArray[np.int64]
"""int64 [segments, columns]: the sufficient statistics; any rows may be added up."""

Floats = NDArray[np.float64]


class TaskScore(Protocol):
    """A number with the parts it was made of."""

    @property
    def metric(self) -> str:
        """Return the metric's name, such as "BLEU" or "chrF2++"."""

    @property
    def score(self) -> float:
        """Return the number in the metric's own unit: BLEU, chrF and TER times 100, error rates as a ratio."""

    @property
    def signature(self) -> str:
        """Return all choices that move the number, in sacreBLEU's format."""

    def to_dict(self) -> dict[str, Any]:
        """Return the score and its parts, flat, for JSON and data frames."""


class ScoredSums(Protocol):
    """What turns sums of statistics into a number."""

    # Classes that inherit from it get the defaults below.

    percent: ClassVar[bool] = False  # the number is a ratio, printed in per cent (error rates, F1)
    higher_is_better: ClassVar[bool] = True  # a higher number is the better one: BLEU, chrF; not error rates
    bounds: ClassVar[tuple[float, float]] = (0.0, 100.0)
    reference_columns: ClassVar[slice]  # the statistics whose sum says how much reference a segment has

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the statistics."""

    @property
    def name(self) -> str:
        """What signatures and tables call it."""

    def scores(self, sums: Floats) -> Floats:
        """Return the number for each row of sums of statistics.

        Args:
            sums: float64 [rows, columns].

        Returns:
            float64 [rows], in the metric's unit.

        Raises:
            UsageError: the number of columns is not the metric's.
        """

    def score(self, sums: Any, references: int | None, choices: dict[str, str] | None = None) -> TaskScore:
        """Return the number and its parts from one sum of statistics.

        Args:
            sums: int64 [columns], or float64 if the statistics are; the sum over the segments in question.
            references: references per segment, None where the number varies; for the signature.
            choices: further keys of the signature: {"bs": "1000", "seed": "12345"}.

        Raises:
            UsageError: the number of statistics is not the metric's.
            MissingExtraError: a library that the signature names is not installed.
        """


class TaskMetric(ScoredSums, Protocol):
    """A metric of texts, and its options.

    A metric that a model computes (such as COMET) fits as well: its statistics are floats, for example the model's score
    of a segment and 1, and it may need the source texts.

    Attributes:
        is_error_rate: a blank hypothesis or reference is a valid text (all is deleted, or inserted), so that texts that
            are all blank have a score.
        needs_sources: statistics are also of the texts that were translated.
        float_statistics: statistics are float64. They are rounded to multiples of 2^-32 before they are added up, so that
            sums do not depend on order, parts or threads.
        zero_means: why a score may be 0, for a note; "" if there is nothing to say.

    Example:
        >>> import lmgauge, numpy as np
        >>> metric = lmgauge.tasks.WER()
        >>> metric.columns
        ('hits', 'substitutions', 'deletions', 'insertions')
        >>> metric.scores(np.array([[3.0, 1.0, 0.0, 0.0]]))  # 3 hits, 1 substitution: one word of four is wrong
        array([0.25])
    """

    is_error_rate: ClassVar[bool] = False
    needs_sources: ClassVar[bool] = False
    float_statistics: ClassVar[bool] = False
    zero_means: ClassVar[str] = ""

    def prepared(self, texts: Texts) -> Texts:
        """Return hypotheses as the statistics need them: lower case, tokens.

        Raises:
            InputError: a text cannot be prepared, or a file that this needs is missing.
            MissingExtraError: a library that this needs is not installed.
        """
        return texts

    def prepared_references(self, texts: Texts) -> Texts:
        """Return references as the statistics need them; worth keeping for further systems.

        Args:
            texts: one or more for each segment.

        Raises:
            InputError, MissingExtraError: as `prepared`.
        """
        return self.prepared(texts)

    def statistics(
        self, hypotheses: Texts, references: References, threads: int | None = None, sources: Texts | None = None
    ) -> NDArray[Any]:
        """Return the statistics of each segment, from prepared texts of equal number.

        Args:
            hypotheses: one for each segment, prepared.
            references: one or more for each segment, prepared.
            threads: how many to use, all cores if None; the result does not depend on it.
            sources: one for each segment, as they were written; only if the metric `needs_sources`.

        Returns:
            int64 [segments, columns], or float64 with `float_statistics`.

        Raises:
            InputError: the texts cannot be scored; the message names the segment.
            UsageError: the options do not fit the texts.
        """


def signature_of(keys: dict[str, str]) -> str:
    """Return the signature that keys and their values make."""
    return "|".join(f"{key}:{value}" for key, value in keys.items())


def reference_key(references: int | None) -> dict[str, str]:
    """Return the signature's key for a number of references per segment; None where the number varies."""
    return {"nrefs": "var" if references is None else str(references)}


def metric_named(metric: TaskMetric | str, **options: Any) -> TaskMetric:
    """Return a metric, or the one of a name."""
    if not isinstance(metric, str):
        return metric
    kind: type[TaskMetric] | None = METRICS.find(metric)
    if kind is None:
        raise UsageError(f"metric {metric!r}: choose one of {', '.join(METRICS.names())}")
    return kind(**options)


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
