"""What every task metric is: statistics per segment that add up, and a number from their sum."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from lmgauge.tasks.texts import References, Texts

SACREBLEU_VERSION = "2.6.0"
"""The sacreBLEU whose digits BLEU, chrF and TER are."""

Statistics = NDArray[np.int64]
"""int64 [segments, columns]: the sufficient statistics; any rows may be added up."""


class TaskScore(Protocol):
    """A number with the parts it was made of."""

    @property
    def metric(self) -> str:
        """The metric's name, such as "BLEU" or "chrF2++"."""

    @property
    def score(self) -> float:
        """The number in the metric's own unit: BLEU, chrF and TER times 100, error rates as a ratio."""

    @property
    def signature(self) -> str:
        """All choices that move the number, in sacreBLEU's format."""

    def to_dict(self) -> dict[str, Any]:
        """The score and its parts, flat, for JSON and data frames."""


class ScoredSums(Protocol):
    """What turns sums of statistics into a number.

    Attributes:
        percent: whether the number is a ratio that people read as per cent (error rates).
        higher_is_better: BLEU, chrF yes; error rates no.
        reference_columns: the statistics whose sum says how much reference a segment has.
    """

    percent: ClassVar[bool]
    higher_is_better: ClassVar[bool]
    reference_columns: ClassVar[slice]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the statistics."""

    @property
    def name(self) -> str:
        """What signatures and tables call it."""

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """The number for each row of sums of statistics, float64 [rows, columns] -> float64 [rows]."""

    def score(self, sums: NDArray[np.int64], references: int | None, choices: dict[str, str] | None = None) -> TaskScore:
        """The number and its parts from one sum of statistics, int64 [columns].

        Args:
            sums: the sum over the segments in question.
            references: references per segment, None where the number varies; for the signature.
            choices: further keys of the signature: {"bs": "1000", "seed": "12345"}.
        """


class TaskMetric(ScoredSums, Protocol):
    """A metric of texts, and its options."""

    def prepared(self, texts: Texts) -> Texts:
        """Hypotheses as the statistics need them: lower case, tokens."""

    def prepared_references(self, texts: Texts) -> Texts:
        """References as the statistics need them; worth keeping for further systems."""

    def statistics(self, hypotheses: Texts, references: References, threads: int | None = None) -> Statistics:
        """The statistics of each segment, from prepared texts of equal number."""
