"""Files that an evaluation writes while a text is scored: run folders, rows of segments, of tokens and of words."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmgauge.evaluation.evaluate import Watch, evaluate
from lmgauge.evaluation.options import Outputs
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.results import Evaluations
from lmgauge.evaluation.row_files import (
    ID_COLUMN,
    SEGMENT_COLUMNS,
    TOKEN_COLUMNS,
    segment_rows,
    token_rows,
    with_kept,
)
from lmgauge.evaluation.run_folder import RunFolders, run_settings
from lmgauge.evaluation.tally import Tally
from lmgauge.result_list import writing_rows, writing_table
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.evaluation.words.rows import WordRows, WordSettings
    from lmgauge.evaluation.words.units import Units
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus

_IN_ROWS = {"top": ("top_tokens", "top_logprobs"), "moments": ("mean_logprob", "logprob_deviation")}
"""The names that columns asked for have in rows, where they are others."""


def evaluated(
    models: Sequence[LanguageModel],
    names: Sequence[str],
    corpus: Corpus,
    outputs: Outputs,
    words: WordSettings | None = None,
    *,
    scoring: Any,
    by_group: bool = False,
    threads: int | None = None,
    watch: Watch | None = None,
) -> Evaluations:
    """Return the evaluations of loaded models, and write the files asked for."""
    # corpus: the text, as their protocol scores it; scoring: how models without options of their own were loaded; watch:
    # called with the model's index, a block, its rows and their sums.
    origins = [Origin.of_model(one, name) for one, name in zip(models, names, strict=True)]
    scored, runs = list(models), None
    rows: list[WordRows] = []
    if words is not None:
        from lmgauge.evaluation.words.rows import WordRows

        for i, (model, origin) in enumerate(zip(models, origins, strict=True)):
            scored[i], own = WordRows.of_model(model, words, origin, outputs.columns)
            rows.append(own)
    elif outputs.columns:
        from lmgauge.distributions.columns import WithColumns

        scored = [WithColumns(model, outputs.columns) for model in models]
    with ExitStack() as stack:
        watches = [*_row_files(stack, outputs, origins, corpus, words, rows), *([] if watch is None else [watch])]
        if outputs.output is not None:
            runs = stack.enter_context(RunFolders(os.fspath(outputs.output), names))
            if not outputs.columns and words is None:  # a journal has log-probabilities only
                runs.keep_journal(models)

        def watched(index: int, block: Segments, batch: ScoreBatch, tally: Tally) -> None:
            for one in watches:
                one(index, block, batch, tally)
            if runs is not None:
                runs.write(index, batch, block.ids)

        results = evaluate(
            scored,
            corpus,
            origins=origins,
            by_group=by_group,
            threads=threads,
            spans=outputs.wanted,
            watch=watched if watches or runs is not None else None,
        )
        if rows:
            notes = [own.notes() for own in reversed(rows)]  # what must be known of the words of each model's whole text
            items = (one if one.group is not None else replace(one, notes=one.notes + notes.pop()) for one in results)
            results = Evaluations(tuple(items))
        if runs is not None:
            chosen: dict[str, Any] = {"by_group": by_group, "columns": outputs.columns, "scoring": scoring}
            runs.finish(results, [run_settings(model, corpus.settings, **chosen) for model in models])
        return results


def _row_files(
    stack: ExitStack,
    outputs: Outputs,
    origins: Sequence[Origin],
    corpus: Corpus,
    words: WordSettings | None,
    rows: Sequence[WordRows],
) -> Iterator[Watch]:
    # Open the files of rows on the stack, and yield what writes the rows of a block to each.
    kept, policies = corpus.kept, [origin.policy for origin in origins]
    if outputs.per_segment is not None:
        write_segment_rows = stack.enter_context(
            writing_rows(os.fspath(outputs.per_segment), with_kept(SEGMENT_COLUMNS, kept))
        )

        def write_segments(i: int, block: Segments, batch: ScoreBatch, tally: Tally) -> None:
            groups = corpus.group_names  # a list of its own each pass
            sums = tally.per_segment()
            write_segment_rows(segment_rows(origins[i].model, batch, sums, block, groups, policies[i]))

        yield write_segments
    if outputs.per_token is not None:
        asked = dict.fromkeys(outputs.columns)
        more = [name for column in asked for name in _IN_ROWS.get(column.rstrip("0123456789"), (column,))]
        columns = with_kept((*TOKEN_COLUMNS, *more, ID_COLUMN), kept)
        write_token_rows = stack.enter_context(writing_rows(os.fspath(outputs.per_token), columns))
        yield lambda i, block, batch, _: write_token_rows(token_rows(origins[i].model, batch, block))
    if words is not None:
        write_word_rows = stack.enter_context(writing_table(os.fspath(outputs.per_word or "-"), words.columns))
        units: list[Units] = []  # of the block, for all models

        def write_words(i: int, block: Segments, batch: ScoreBatch, _: Tally) -> None:
            if i == 0:
                units[:] = [words.units(block)]
            write_word_rows(rows[i].table(block, batch, *units))

        yield write_words
