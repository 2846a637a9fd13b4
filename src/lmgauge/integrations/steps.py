"""What the steps of all pipelines share: documents in batches are scored and judged as `lmgauge filter` does it."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lmgauge.api.inputs import PATHS
from lmgauge.base.errors import InputError, UsageError
from lmgauge.filtering.documents import DocumentScores, Groups, labels_of
from lmgauge.filtering.filter_file import FilterPlan
from lmgauge.filtering.options import FilterRules, RecordOptions
from lmgauge.filtering.percentiles import Percentiles
from lmgauge.filtering.rules import REASONS, judge
from lmgauge.filtering.scorer import Model, Scorer

if TYPE_CHECKING:
    import pyarrow as pa

ModelOrScorer = Model | Mapping[str, Model] | Scorer
PercentilesOrPath = Percentiles | str | os.PathLike[str]


def sendable_scorer(model: ModelOrScorer) -> Scorer:
    """Return a scorer that can be sent to the processes of a pipeline, with one thread in each."""
    # model: path of a model, a mapping from names to paths, or a `lmgauge.Scorer`, whose number of threads stays.
    scorer = copy.copy(model) if isinstance(model, Scorer) else Scorer(model)
    if not scorer.loads_by_path:
        raise UsageError("a step of a pipeline is sent to other processes, each of which loads the model: give its path")
    scorer.threads = scorer.threads or 1
    return scorer


class Verdicts(NamedTuple):
    """What happened to the documents of a batch."""

    scores: DocumentScores  # what the models make of them
    reasons: list[str | None]  # why a document is dropped, by document; None for one that stays
    buckets: Sequence[str | None] | None  # "head", "middle" or "tail", by document; None without buckets
    stand_in: int  # how many were judged by the percentiles of all documents, as their group has none of its own


class DocumentFilter:
    """Scores documents and says which ones stay; it can be sent to other processes.

    Args:
        model: path of a model, a mapping from names to paths, or a `lmgauge.Scorer` with its options. Threads are one,
            unless the `lmgauge.Scorer` says otherwise.
        rules: which documents stay.
        percentiles: what `lmgauge percentiles` wrote, or its path, where rules refer to it. Documents are judged by the
            percentiles of their group, the column that the percentiles are grouped by.

    Raises:
        InputError: the file of percentiles cannot be read.
        UsageError: a model is in memory.

    Example:
        >>> import tempfile, lmgauge, pyarrow as pa
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        ...     path = model.save(f"{folder}/lap2")
        ...     step = DocumentFilter(f"{folder}/lap2", lmgauge.settings.FilterRules(max_perplexity=3))
        ...     step(pa.table({"text": ["a b", "b b b", None]}))["text"].to_pylist()
        ['a b']
    """

    def __init__(self, model: ModelOrScorer, rules: FilterRules, percentiles: PercentilesOrPath | None = None) -> None:
        self.scorer = sendable_scorer(model)
        self.rules = rules
        self.percentiles = Percentiles.load(percentiles) if isinstance(percentiles, PATHS) else percentiles

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_plan"}

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return the rows of a table that stay, with the columns of their scores."""
        import pyarrow as pa

        scored, reasons = self.judge_table(table)
        return scored.filter(pa.array([reason is None for reason in reasons], pa.bool_()))

    @property
    def group_field(self) -> str | None:
        """Return the field that the percentiles are grouped by."""
        return None if self.percentiles is None else self.percentiles.group

    @property
    def plan(self) -> FilterPlan:
        """Return all decisions, checked when the models are loaded on first use."""
        if "_plan" not in vars(self):
            settings = self.scorer.settings
            # A pipeline names the field of the text as it likes; what is in it counts.
            field = settings.field if self.percentiles is None else self.percentiles.settings.get("field", settings.field)
            options = RecordOptions(field, settings.lines, settings.by, self.group_field)
            plan = FilterPlan(self.scorer, options, self.rules, self.percentiles)
            plan.check()
            self._plan = plan
        return self._plan

    def judge(self, scores: DocumentScores, labels: Sequence[str | None] | None = None) -> Verdicts:
        """Return which documents stay.

        Args:
            scores: of the documents: bytes and, under each model, nats and tokens.
            labels: the group of each, where percentiles are by group.

        Returns:
            Why each is dropped, or None, with the scores and the buckets.
        """
        plan = self.plan
        groups = None if labels is None else Groups.of(labels)
        judgement = judge(plan.rules, scores, groups, plan.percentiles)
        reasons = [REASONS[code] if code else None for code in judgement.reasons.tolist()]
        for row, (reason, _) in scores.problems.items():
            reasons[row] = reason
        stand_in = int((judgement.stand_in & ~scores.missing()).sum())
        return Verdicts(scores, reasons, None if plan.bucket_column is None else judgement.bucket_names(), stand_in)

    def judge_table(self, table: pa.Table) -> tuple[pa.Table, list[str | None]]:
        """Return a table with columns of bits, bits per byte and so on, and why each row is dropped (None if it stays)."""
        import pyarrow as pa

        bucket_column, group = self.plan.bucket_column, self.group_field
        if group is not None and group not in getattr(table, "column_names", [group]):
            raise InputError(f"the table has no column {group!r}, which the percentiles are grouped by")
        scores = self.scorer.score_table(table)
        verdicts = self.judge(scores, None if group is None else labels_of(table[group]))
        scored = self.scorer.with_columns(table, scores)
        if bucket_column is not None:
            scored = scored.append_column(bucket_column, pa.array(verdicts.buckets, pa.string()))
        return scored, verdicts.reasons
