"""A metric small enough to be checked by eye: the share of a hypothesis's words that a reference has at the same place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.tasks.alignment import Alignment, ErrorCounts
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.metrics.protocol import TaskMetric
from lmgauge.tasks.scoring import block_of_strings, block_statistics
from lmgauge.tasks.settings import ComparisonSettings
from lmgauge.tasks.significance import IndependentRows
from lmgauge.tasks.texts import References, Texts


@dataclass(frozen=True)
class ShareScore:
    metric: str
    score: float
    hits: int
    words: int
    signature: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Share(TaskMetric):
    lowercase: bool = False
    reference_columns: ClassVar[slice] = slice(1, 2)
    columns: ClassVar[tuple[str, ...]] = ("hits", "words")

    @property
    def name(self) -> str:
        return "share"

    def prepared(self, texts: Texts) -> Texts:
        return texts.mapped(str.lower) if self.lowercase else texts

    def statistics(
        self, hypotheses: Texts, references: References, threads: int | None = None, sources: Texts | None = None
    ) -> NDArray[np.int64]:
        against, offsets = references.texts.strings(), references.offsets.tolist()
        rows = []
        for i, hypothesis in enumerate(hypotheses.strings()):
            words = hypothesis.split()
            hits = [
                sum(a == b for a, b in zip(words, reference.split(), strict=False))
                for reference in against[offsets[i] : offsets[i + 1]]
            ]
            rows.append((max(hits), len(words)))
        return np.array(rows, dtype=np.int64).reshape(-1, 2)

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(100 * sums[:, 0] / np.maximum(sums[:, 1], 1))

    def score(self, sums: NDArray[np.int64], references: int | None, choices: dict[str, str] | None = None) -> ShareScore:
        keys = {"nrefs": "var" if references is None else str(references)} | (choices or {})
        score = float(self.scores(sums[None].astype(np.float64))[0])
        return ShareScore(self.name, score, int(sums[0]), int(sums[1]), "|".join(f"{k}:{v}" for k, v in keys.items()))


@dataclass(frozen=True)
class ErrorShare(Share):
    """The same as a rate of errors."""

    percent: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    is_error_rate: ClassVar[bool] = True

    def scores(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return 1 - super().scores(sums) / 100


def statistics(metric: TaskMetric, hypotheses: Sequence[str], references: Sequence[str]) -> NDArray[Any]:
    """The statistics of each segment, [segments, columns]."""
    (rows,) = block_statistics(metric, block_of_strings(metric, {"": hypotheses}, references), None)
    return rows


def compared(metric: TaskMetric, names: Sequence[str], statistics: Sequence[Any], **options: Any) -> Systems:
    """`compare_systems` of statistics [segments, columns]: options of the settings, the rows, or its own."""
    settings = {name: options.pop(name) for name in ("resamples", "seed", "threads") if name in options}
    settings |= {"significance": options.pop("test") or "none"} if "test" in options else {}
    own = {name: options.pop(name) for name in ("groups", "notes") if name in options}
    rows = IndependentRows([np.asarray(part) for part in statistics], **options)
    return compare_systems(metric, names, rows, 1, settings=ComparisonSettings(**settings), **own)


def grouped(codes: NDArray[Any], names: Sequence[str], statistics: Sequence[NDArray[Any]]) -> list[dict[str, Any]]:
    """Sums of the segments of each group, whose index into `names` is the code."""
    return [{name: part[codes == i].sum(axis=0) for i, name in enumerate(names)} for part in statistics]


def error_counts(alignments: Iterable[Alignment]) -> ErrorCounts:
    counts = ErrorCounts()
    for alignment in alignments:
        counts.add(alignment)
    return counts
