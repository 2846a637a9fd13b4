"""Functions for `map` and `filter` of the datasets library, which know the model well enough for its cache."""

# Nothing here imports the library. It calls a function once for each batch, with a dictionary of lists, or with an Arrow
# table where the dataset has that format; and it takes a result out of its cache where what the function pickles to is the
# same. So the state of these functions has the fingerprints of the models, besides their paths.

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.filtering.documents import Documents, DocumentScores, label_of
from lmgauge.filtering.options import FilterRules
from lmgauge.filtering.scorer import PROBLEM_COLUMN, Scorer
from lmgauge.integrations.steps import DocumentFilter, ModelOrScorer, PercentilesOrPath, sendable_scorer

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["filter", "scorer"]

Batch = Mapping[str, Sequence[Any]]


def scorer(model: ModelOrScorer) -> DatasetScorer:
    """Return a function for `dataset.map(..., batched=True)` that adds the columns of scores: bits, bits per byte and so on.

    Args:
        model: path of a model, a mapping from names to paths, or a `lmgauge.Scorer` with its options.

    Raises:
        ModelFileError: a model cannot be loaded.
        UsageError: a model is in memory.

    Example:
        With the library: `dataset.map(scorer("kn5/"), batched=True)`, which calls it with batches:

        >>> import tempfile, lmgauge
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        ...     path = model.save(f"{folder}/lap2")
        ...     columns = scorer(f"{folder}/lap2")({"text": ["a b", None]})
        >>> columns["lap2_tokens"], columns["score_problem"]
        ([3, 0], ['', 'no text: null'])
    """
    return DatasetScorer(sendable_scorer(model))


def filter(model: ModelOrScorer, percentiles: PercentilesOrPath | None = None, **rules: Any) -> DatasetFilter:
    """Return a function for `dataset.filter(..., batched=True)` that drops documents as `lmgauge filter` does.

    Args:
        model: path of a model, a mapping from names to paths, or a `lmgauge.Scorer` with its options.
        percentiles: what `lmgauge percentiles` wrote, or its path, where rules refer to it. Documents are judged by the
            percentiles of their group, the column that the percentiles are grouped by.
        rules: which documents stay, see `FilterRules`; all that can be scored without any.

    Raises:
        InputError: the file of percentiles cannot be read.
        ModelFileError: a model cannot be loaded.
        UsageError: a model is in memory, or models, rules and percentiles do not fit together.

    Example:
        With the library: `dataset.filter(filter("kn5/", max_perplexity=500), batched=True)`, which calls it with batches:

        >>> import tempfile, lmgauge
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        ...     path = model.save(f"{folder}/lap2")
        ...     stays = filter(f"{folder}/lap2", max_perplexity=3)
        ...     stays({"text": ["a b", "b b b", None]})
        [True, False, False]
    """
    return DatasetFilter(DocumentFilter(model, FilterRules(**rules), percentiles))


class _OfKnownModels:
    """A function whose pickled state changes when a model at its path does."""

    def __init__(self, scorer: Scorer) -> None:
        self.identity = _identity(scorer)
        self._is_checked = True

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_is_checked"}

    def _check(self, scorer: Scorer) -> None:
        if "_is_checked" not in vars(self):
            for name, identity in _identity(scorer).items():
                if self.identity.get(name) != identity:
                    raise ModelFileError(f"the model {name!r} has changed since this step was made: make the step again")
            self._is_checked = True


class DatasetScorer(_OfKnownModels):
    """Adds the columns of scores to batches; `scorer` makes it."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        super().__init__(scorer)

    def __call__(self, batch: Batch | pa.Table) -> dict[str, list[Any]] | pa.Table:
        # -> the new columns, as lists without None, as the library types a column by its first values: where there is no
        # figure NaN, 0 tokens, and "" where there is no problem. For a table: the table of `lmgauge.Scorer.score_batch`.
        self._check(self._scorer)
        if not isinstance(batch, Mapping):
            return self._scorer.score_batch(batch)
        return _lists(_scored(self._scorer, batch))


class DatasetFilter(_OfKnownModels):
    """Says which documents of batches stay; `filter` makes it."""

    def __init__(self, documents: DocumentFilter) -> None:
        self._filter = documents
        _ = documents.plan
        super().__init__(documents.scorer)

    def __call__(self, batch: Batch | pa.Table) -> list[bool]:
        self._check(self._filter.scorer)
        if isinstance(batch, Mapping):
            group = self._filter.group_field
            labels = None if group is None else list(map(label_of, _column(batch, group)))
            return [reason is None for reason in self._filter.judge(_scored(self._filter.scorer, batch), labels).reasons]
        return [reason is None for reason in self._filter.judge_table(batch)[1]]


def _identity(scorer: Scorer) -> dict[str, str]:
    signatures = scorer.signatures
    return {name: f"{signatures[name]} {model.fingerprint}" for name, model in scorer.models.items()}


def _column(batch: Batch, name: str) -> Sequence[Any]:
    if name not in batch:
        names = ", ".join(map(repr, list(batch)[:8])) or "none"
        raise InputError(f"the batch has no column {name!r}; the columns are {names}: name one of them")
    return batch[name]


def _scored(scorer: Scorer, batch: Batch) -> DocumentScores:
    scorer.refuse_taken(batch)
    texts = _column(batch, scorer.settings.field)
    if texts is None or isinstance(texts, str):
        raise UsageError("the step takes batches, and was called with one document: give map or filter batched=True")
    for text in texts:
        if text is not None and not isinstance(text, str):
            kind = type(text).__name__
            raise InputError(f"the column {scorer.settings.field!r} holds {kind}, not strings: name another field")
    by = scorer.settings.by
    values = None if by is None else [label_of(value) for value in _column(batch, by)]
    return scorer.score_documents(Documents.of(texts, "<dataset>"), values)


def _lists(scores: DocumentScores) -> dict[str, list[Any]]:
    columns = {name: values.tolist() for name, values in scores.columns().items()}
    for name, values in columns.items():
        nothing: float = 0 if name.endswith("_tokens") else math.nan
        for row in scores.problems:
            values[row] = nothing
    return {**columns, PROBLEM_COLUMN: [problem or "" for problem in scores.problem_texts()]}
