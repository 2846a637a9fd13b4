"""Files that an evaluation writes while a text is scored: run folders, rows of segments, rows of tokens."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from lmgauge.api.outputs import Outputs
from lmgauge.context_policy import policy_of
from lmgauge.evaluation.evaluate import Watch, evaluate
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.results import Evaluations
from lmgauge.evaluation.row_files import (
    ID_COLUMN,
    SEGMENT_COLUMNS,
    TOKEN_COLUMNS,
    RowWriter,
    segment_rows,
    token_rows,
    with_kept,
)
from lmgauge.evaluation.run_folder import RunFolders, run_settings
from lmgauge.evaluation.tally import Tally
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.progress import say_progress
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.api.words import WordFile

_LOG = logging.getLogger(__name__)


class OutputFiles:
    """The files of an evaluation, open while its text is scored."""

    def __init__(self, outputs: Outputs, models: Sequence[LanguageModel], names: Sequence[str], corpus: Corpus) -> None:
        self._outputs, self._models, self._names, self._corpus = outputs, models, names, corpus
        self.scored_models, self._words = _filling(outputs, models, names, corpus.kept)
        self._policies = [policy_of(model) for model in models]
        self._segments: RowWriter | None = None
        self._tokens: RowWriter | None = None
        self._runs: RunFolders | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        outputs = self._outputs
        with ExitStack() as stack:
            if outputs.per_segment is not None:
                segment_columns = with_kept(SEGMENT_COLUMNS, self._corpus.kept)
                self._segments = stack.enter_context(RowWriter(os.fspath(outputs.per_segment), segment_columns))
            if outputs.per_token is not None:
                columns = with_kept((*TOKEN_COLUMNS, *_column_names(outputs.columns), ID_COLUMN), self._corpus.kept)
                self._tokens = stack.enter_context(RowWriter(os.fspath(outputs.per_token), columns))
            if self._words is not None:
                stack.enter_context(self._words)
            if outputs.output is not None:
                self._runs = stack.enter_context(RunFolders(os.fspath(outputs.output), self._names))
                if not outputs.columns and self._words is None:  # a journal has log-probabilities only
                    self._runs.keep_journal(self._models)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        if isinstance(error[1], (KeyboardInterrupt, SystemExit)) and self._runs is not None and self._runs.kept:
            _LOG.warning("%s events are scored; the same command resumes there", f"{self._runs.kept:,}")
        return self._stack.__exit__(*error)

    def write(self, index: int, block: Segments, batch: ScoreBatch, tally: Tally) -> None:
        """Write the rows of a block of segments.

        Args:
            index: number of the model.
            block: the segments.
            batch: their rows of the score table.
            tally: sums of these rows.
        """
        if self._segments is not None:
            groups = self._corpus.group_names  # a list of its own each pass
            sums = tally.per_segment()
            self._segments.write(segment_rows(self._names[index], batch, sums, block, groups, self._policies[index]))
        if self._tokens is not None:
            self._tokens.write(token_rows(self._names[index], batch, block))
        if self._words is not None:
            self._words.write(index, block, batch)
        if self._runs is not None:
            self._runs.write(index, batch, block.ids)

    def finish(self, results: Evaluations, *, by_group: bool, scoring: ScoringOptions) -> Evaluations:
        """Write the numbers, and how they came about, beside the rows; return them with what must be known of the rows.

        Args:
            results: of all models, each with its groups behind it.
            by_group: True if groups were asked for.
            scoring: how models without options of their own were loaded.

        Raises:
            InputError: a region names a text that was not there.
        """
        if self._words is not None:
            results = self._with_notes(results, self._words)
        if self._runs is None:
            return results
        chosen: dict[str, Any] = {"by_group": by_group, "columns": self._outputs.columns, "scoring": scoring}
        settings = [run_settings(model, self._corpus.settings, **chosen) for model in self._models]
        self._runs.finish(results, settings)
        if self._runs.resumed:
            _LOG.warning("%s events had been scored before the last run was interrupted", f"{self._runs.resumed:,}")
        return results

    @staticmethod
    def _with_notes(results: Evaluations, words: WordFile) -> Evaluations:
        """Return the results with notes about words at the whole text of each model."""
        items, index = [], 0
        for item in results:
            if item.group is None:
                item = replace(item, notes=[*item.notes, *words.notes(index)])
                index += 1
            items.append(item)
        return Evaluations(tuple(items))


def evaluated(
    models: Sequence[LanguageModel],
    names: Sequence[str],
    corpus: Corpus,
    outputs: Outputs,
    *,
    by_group: bool = False,
    threads: int | None = None,
    scoring: ScoringOptions = ScoringOptions(),
    watch: Watch | None = None,
) -> Evaluations:
    """Return the evaluations of loaded models, and write the files asked for."""
    # corpus: the text, as their protocol scores it; watch: called with the model's index, a block, its rows and their sums.
    with OutputFiles(outputs, models, names, corpus) as files:
        watches = [*([files.write] if outputs.wanted else []), *([watch] if watch is not None else [])]

        def watched(index: int, block: Segments, batch: ScoreBatch, tally: Tally) -> None:
            for one in watches:
                one(index, block, batch, tally)

        results = evaluate(
            files.scored_models,
            corpus,
            origins=[Origin.of_model(one, name) for one, name in zip(models, names, strict=True)],
            by_group=by_group,
            threads=threads,
            spans=outputs.wanted,
            watch=watched if watches else None,
            progress=lambda done: say_progress(f"scored {done / 1e6:,.0f} MB"),
        )
        return files.finish(results, by_group=by_group, scoring=scoring)


def _filling(
    outputs: Outputs, models: Sequence[LanguageModel], names: Sequence[str], kept: tuple[str, ...]
) -> tuple[list[LanguageModel], WordFile | None]:
    """Return the models that fill the columns of the outputs, and the file of words if there is one."""
    if outputs.per_word is None:
        return [_with_columns(model, outputs.columns) for model in models], None
    from lmgauge.api.words import WordFile, with_word_columns, word_rows, word_settings

    settings = word_settings(outputs.words, outputs.regions, outputs.train or None, kept)
    filling = [with_word_columns(model, outputs.columns) for model in models]
    rows = [word_rows(model, name, settings, why) for (model, why), name in zip(filling, names, strict=True)]
    return [model for model, _ in filling], WordFile(outputs.per_word, settings, rows)


def _with_columns(model: LanguageModel, columns: Sequence[str]) -> LanguageModel:
    if not columns:
        return model
    from lmgauge.distributions.columns import WithColumns

    return WithColumns(model, columns)


def _column_names(asked: Sequence[str]) -> list[str]:
    """Return the names that the columns asked for have in rows."""
    return [name for column in dict.fromkeys(asked) for name in _IN_ROWS.get(column.rstrip("0123456789"), (column,))]


_IN_ROWS = {"top": ("top_tokens", "top_logprobs"), "moments": ("mean_logprob", "logprob_deviation")}
