"""A step for datatrove: a filter, for its pipelines on this machine, Slurm or Ray."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lmgauge.base.errors import MissingExtraError
from lmgauge.base.option_numbers import check_whole
from lmgauge.filtering.documents import Documents, DocumentScores, label_of
from lmgauge.filtering.options import FilterRules
from lmgauge.filtering.scorer import PROBLEM_COLUMN, Scorer
from lmgauge.integrations.steps import DocumentFilter, ModelOrScorer, PercentilesOrPath

try:
    from datatrove.data import Document
    from datatrove.pipeline.filters.base_filter import BaseFilter
    from datatrove.pipeline.writers.disk_base import DiskWriter
except ImportError as error:
    raise MissingExtraError("datatrove", extra="datatrove") from error

__all__ = ["PerplexityFilter"]

BATCH = 256
"""Documents scored at a time."""


class PerplexityFilter(BaseFilter):  # type: ignore[misc]
    """Drops documents as `lmgauge filter` does, and writes their figures into the metadata of all.

    `metadata` gets `NAME_bits`, `NAME_bits_per_byte`, `NAME_perplexity`, `NAME_tokens` and `NAME_unseen` of each model, None
    where there is no figure; `score_problem`, None or why there is none; and `NAME_bucket`, where rules make buckets. The
    reasons are those of `lmgauge filter` with underscores (`perplexity_above`): datatrove counts them as `dropped_...`, and
    `filter_reason` has them where documents are excluded. The statistics of the step have the bits, bytes and tokens scored,
    and how many documents were judged by the percentiles of all, as their group has none of its own. Without rules it drops
    what cannot be scored, and nothing else: a step of statistics behind it finds the figures in the metadata.

    Example:
        >>> import tempfile, lmgauge
        >>> from datatrove.data import Document
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        ...     path = model.save(f"{folder}/lap2")
        ...     step = PerplexityFilter(f"{folder}/lap2", max_perplexity=3)
        ...     stay = list(step([Document("a b", id="1"), Document("b b b", id="2")]))
        >>> [(document.id, document.metadata["lap2_tokens"]) for document in stay]
        [('1', 3)]
    """

    name = "📏 lmgauge perplexity"

    def __init__(
        self,
        model: ModelOrScorer,
        percentiles: PercentilesOrPath | None = None,
        *,
        exclusion_writer: DiskWriter | None = None,
        batch_size: int = BATCH,
        **rules: Any,
    ) -> None:
        """Take the decisions; the workers load the models.

        Args:
            model: path of a model, a mapping from names to paths, or a `lmgauge.Scorer` with its options. Each worker loads
                it on first use and maps its tables into memory, which the workers of a machine share.
            percentiles: what `lmgauge percentiles` wrote, or its path, where rules refer to it. Documents are judged by the
                percentiles of their group, which is looked for in the metadata.
            exclusion_writer: what saves the documents that are dropped.
            batch_size: documents scored at a time; no figure depends on it.
            rules: which documents stay, see `FilterRules`; all that can be scored without any.

        Raises:
            InputError: the file of percentiles cannot be read.
            ModelFileError: a model cannot be loaded; raised by a worker.
            UsageError: a model is in memory; or models, rules and percentiles do not fit together, raised by a worker.
        """
        check_whole("batch_size", batch_size, 1)
        super().__init__(exclusion_writer, batch_size)
        self.documents = DocumentFilter(model, FilterRules(**rules), percentiles)

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        """Score a document, and say whether it stays.

        Args:
            doc: its metadata gets the figures (bits, bits per byte, perplexity, tokens, share of unseen words).

        Returns:
            True, or False with the reason.

        Raises:
            InputError: its metadata has a figure of the same name; or it cannot be scored, and errors are to "fail".
        """
        return self.filter_batch([doc])[0]

    def filter_batch(self, batch: list[Document]) -> list[bool | tuple[bool, str]]:
        """Score documents, and say which ones stay.

        Args:
            batch: their metadata gets the figures (bits, bits per byte and so on), as in `filter`.

        Returns:
            For each True, or False with the reason.

        Raises:
            InputError: as in `filter`.
        """
        group = self.documents.group_field
        scores = _scored(self.documents.scorer, batch)
        labels = None if group is None else [label_of(doc.metadata.get(group)) for doc in batch]
        verdicts = self.documents.judge(scores, labels)
        for doc, figures, problem in zip(batch, _figures(scores), scores.problem_texts(), strict=True):
            doc.metadata |= {**figures, PROBLEM_COLUMN: problem}
        if verdicts.buckets is not None:
            for doc, bucket in zip(batch, verdicts.buckets, strict=True):
                doc.metadata[self.documents.plan.bucket_column] = bucket
        self._count(scores)
        if verdicts.stand_in:
            self.stat_update("judged_by_percentiles_of_all", value=verdicts.stand_in, unit="batch")
        return [True if reason is None else (False, reason.replace(" ", "_")) for reason in verdicts.reasons]

    def _count(self, scores: DocumentScores) -> None:
        self.stat_update("scored_bytes", value=int(scores.bytes.sum()), unit="batch")
        for name, sums in scores.sums.items():
            self.stat_update(f"{name}_bits", value=float(sums.bits().sum()), unit="batch")
            self.stat_update(f"{name}_tokens", value=int(sums.events.sum()), unit="batch")


def _scored(scorer: Scorer, batch: list[Document]) -> DocumentScores:
    by = scorer.settings.by
    values = None if by is None else [label_of(doc.metadata.get(by)) for doc in batch]
    return scorer.score_documents(Documents.of([doc.text for doc in batch], "<datatrove>"), values)


def _figures(scores: DocumentScores) -> Iterator[dict[str, Any]]:
    # Figures of each document by name; None where there is none.
    columns = scores.columns()
    for row, values in enumerate(zip(*(column.tolist() for column in columns.values()), strict=True)):
        scored = row not in scores.problems
        yield {name: value if scored and value == value else None for name, value in zip(columns, values, strict=True)}
