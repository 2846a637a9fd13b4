"""What is known of whether a model has seen texts: scores of both sets, and a row for each text."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from lmgauge.errors import UsageError
from lmgauge.evaluation.row_files import write_table
from lmgauge.numerics.intervals import Interval
from lmgauge.result_list import pandas_module
from lmgauge.shown import Shown

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class ScoreOfSets:
    """One score, over both sets."""

    name: str  # `loss`, `min_k`, `min_k_plus_plus`, `zlib`, `reference`, `zlib_per_byte` or `bytes`
    title: str  # in words
    seen_if: str  # "low" or "high": which values speak for seen text
    # median, control_median: of the texts in question and of the control texts; None where there are none
    median: float | None
    control_median: float | None
    auroc: float | None  # the probability that a text in question looks more like a seen one than a control text does
    auroc_interval: Interval | None
    tells_apart: bool | None
    tpr: float | None  # share of the texts in question above a threshold that the allowed share of control texts passes
    tpr_interval: Interval | None
    missing: int


@dataclass(frozen=True, repr=False)
class Membership(Shown):
    """Scores of texts that tend to differ between what a model has seen in training and what it has not.

    Attributes:
        model, reference: names of the models; None without a reference.
        k: the share of events that Min-K% looks at.
        false_alarms: the rate of false alarms at which `tpr` stands.
        texts, control_texts: how many were scored; None without control texts.
        scores: each score of the model.
        blind: each score that looks at the text alone: what tells the sets apart without any model.
        curves: by score the ROC curve, false alarms and hits.
        independence: what the intervals take as independent, in words.
        fingerprints: of the models, the vocabulary and the texts.
        signature: one line with every choice that moves the figures.
        notes: what a reader must know.
        rows: a row for each text, as columns: set ("text" or "control"), id, segment, bytes, events, document, and scores.

    Example:
        >>> import lmgauge
        >>> seen = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"])
        >>> unseen = lmgauge.Corpus.from_strings(["the cat ran", "a cat sat", "the dog ran"])
        >>> result = lmgauge.membership(lmgauge.train("witten-bell", seen, order=3), seen, unseen)
        >>> result.score("loss").auroc
        1.0
    """

    model: str
    reference: str | None
    k: float
    false_alarms: float
    texts: int
    control_texts: int | None
    scores: tuple[ScoreOfSets, ...]
    blind: tuple[ScoreOfSets, ...]
    curves: dict[str, tuple[tuple[float, ...], tuple[float, ...]]]
    independence: str
    fingerprints: dict[str, str]
    signature: str
    notes: tuple[str, ...]
    rows: dict[str, list[Any]]

    def score(self, name: str) -> ScoreOfSets:
        """Return what is known of a score.

        Args:
            name: one of `scores` or `blind`.

        Raises:
            UsageError: there is no such score.
        """
        known = {score.name: score for score in (*self.scores, *self.blind)}
        if name not in known:
            raise UsageError(f"score {name!r} is not known; choose from {', '.join(known)}")
        return known[name]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows and the curves as plain values, full precision; infinities stay floats."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("rows", "curves")}
        scores = {name: [asdict(score) for score in own[name]] for name in ("scores", "blind")}
        return own | scores

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        import pyarrow as pa

        return pa.table(self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return pandas_module().DataFrame(self.rows)

    def write_rows(self, path: str | os.PathLike[str]) -> None:
        """Write a row for each text.

        Args:
            path: a file ending in .parquet, .csv, .tsv or .jsonl; "-" is standard output, as TSV.

        Raises:
            OutputError: it cannot be written; nothing is left behind.
            UsageError: another ending.
        """
        write_table(os.fspath(path), self.rows)

    def _in_brief(self) -> str:
        if self.control_texts is None:
            return f"{self.model}: {self.texts:,} texts, no control texts"
        areas = ", ".join(f"{score.name} {score.auroc:.3f}" for score in self.scores if score.auroc is not None)
        return f"{self.model}: {self.texts:,} texts, {self.control_texts:,} control texts; AUROC {areas}"
