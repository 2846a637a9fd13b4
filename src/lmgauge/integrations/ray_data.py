"""Steps for Ray Data: classes for `Dataset.map_batches`, one object of which each actor makes."""

# Nothing here imports Ray. The actors of a machine map the same files, so that they share the memory of the model's tables.

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from lmgauge.base.errors import ModelFileError
from lmgauge.filtering.options import FilterRules
from lmgauge.integrations.steps import DocumentFilter, ModelOrScorer, PercentilesOrPath, checked_table, sendable_scorer

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Filter", "Scorer"]


_TABLES = "the step takes Arrow tables", "give map_batches the argument batch_format='pyarrow'"


class Scorer:
    """Appends the columns of `lmgauge.Scorer.score_batch` to each batch; rows and their order stay as they are.

    Args:
        model: path of a model, a mapping from names to paths, or a `lmgauge.Scorer` with its options. The path has to be the
            same on all machines; threads are one for each actor, unless the `lmgauge.Scorer` says otherwise.

    Raises:
        ModelFileError: a model cannot be loaded on the machine of the actor.
        UsageError: a model is in memory.

    Example:
        With Ray: `ds.map_batches(Scorer, fn_constructor_args=["/models/kn5"], batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=4))`. Each actor does this:

        >>> import tempfile, lmgauge, pyarrow as pa
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        ...     path = model.save(f"{folder}/lap2")
        ...     step = Scorer(f"{folder}/lap2")
        ...     step(pa.table({"text": ["a b", None]})).select(["lap2_tokens", "score_problem"]).to_pylist()
        [{'lap2_tokens': 3, 'score_problem': None}, {'lap2_tokens': None, 'score_problem': 'no text: null'}]
    """

    def __init__(self, model: ModelOrScorer) -> None:
        self._scorer = sendable_scorer(model)
        try:
            _ = self._scorer.models
        except ModelFileError as error:
            raise _on_this_machine(error) from error

    def __call__(self, batch: pa.Table) -> pa.Table:
        return self._scorer.score_batch(checked_table(batch, *_TABLES))


class Filter:
    """Scores each batch, and drops rows as `lmgauge filter` does; the rows that stay have the columns of their scores.

    Args:
        model: path of a model, a mapping from names to paths, or a `lmgauge.Scorer` with its options.
        percentiles: what `lmgauge percentiles` wrote, or its path, where rules refer to it. Documents are judged by the
            percentiles of their group, the column that the percentiles are grouped by.
        rules: which documents stay, see `FilterRules`; all that can be scored without any.

    Raises:
        InputError: the file of percentiles cannot be read.
        ModelFileError: a model cannot be loaded on the machine of the actor.
        UsageError: a model is in memory, or models, rules and percentiles do not fit together.

    Example:
        With Ray: `ds.map_batches(Filter, fn_constructor_args=["/models/kn5"], fn_constructor_kwargs={"max_perplexity": 500},
        batch_format="pyarrow", compute=ray.data.ActorPoolStrategy(size=4))`. Each actor does this:

        >>> import tempfile, lmgauge, pyarrow as pa
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=2)
        ...     path = model.save(f"{folder}/lap2")
        ...     step = Filter(f"{folder}/lap2", max_perplexity=3)
        ...     step(pa.table({"text": ["a b", "b b b", None]}))["text"].to_pylist()
        ['a b']
    """

    def __init__(
        self,
        model: ModelOrScorer,
        percentiles: PercentilesOrPath | None = None,
        **rules: Any,
    ) -> None:
        self._filter = DocumentFilter(model, FilterRules(**rules), percentiles)
        try:
            _ = self._filter.plan
        except ModelFileError as error:
            raise _on_this_machine(error) from error

    def __call__(self, batch: pa.Table) -> pa.Table:
        import pyarrow as pa

        scored, reasons = self._filter.judge_table(checked_table(batch, *_TABLES))
        return scored.filter(pa.array([reason is None for reason in reasons], pa.bool_()))


def _on_this_machine(error: ModelFileError) -> ModelFileError:
    where = f"on the machine {socket.gethostname()}, in the folder {os.getcwd()}"
    return ModelFileError(f"{error} This is {where}: give a path that all machines of the cluster have")
