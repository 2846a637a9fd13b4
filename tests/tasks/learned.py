"""A metric as a model would compute it: a float per segment, from source, hypothesis and references. No model is needed."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.tasks.metrics.protocol import Floats, TaskMetric, reference_key, signature_of
from lmgauge.tasks.texts import References, Texts


@dataclass(frozen=True)
class LearnedScore:
    metric: str
    score: float
    segments: float
    signature: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Learned(TaskMetric):
    """The mean of made-up qualities of segments, some below 0, as such metrics give them."""

    model: str = "made-up"
    needs_sources: ClassVar[bool] = True
    float_statistics: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    reference_columns: ClassVar[slice] = slice(1, 2)
    columns: ClassVar[tuple[str, ...]] = ("quality", "segments")
    name: ClassVar[str] = "learned"

    def statistics(
        self, hypotheses: Texts, references: References, threads: int | None = None, sources: Texts | None = None
    ) -> NDArray[np.float64]:
        assert sources is not None
        against, offsets = references.texts.strings(), references.offsets.tolist()
        rows = []
        for i, (source, hypothesis) in enumerate(zip(sources.strings(), hypotheses.strings(), strict=True)):
            rows.append((self.quality(source, hypothesis, against[offsets[i] : offsets[i + 1]]), 1.0))
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    @staticmethod
    def quality(source: str, hypothesis: str, references: list[str]) -> float:
        """-1 to 1, an irrational number as a network's would be."""
        alike = max(len({*hypothesis.split()} & {*text.split()}) for text in references)
        return math.tanh(alike / 3 - abs(len(source) - len(hypothesis)) / 10)

    def scores(self, sums: Floats) -> Floats:
        return np.asarray(sums[:, 0] / np.maximum(sums[:, 1], 1))

    def score(self, sums: Any, references: int | None, choices: dict[str, str] | None = None) -> LearnedScore:
        signature = signature_of(reference_key(references) | (choices or {}) | {"model": self.model})
        return LearnedScore(self.name, float(self.scores(np.asarray(sums)[None])[0]), float(sums[1]), signature)
