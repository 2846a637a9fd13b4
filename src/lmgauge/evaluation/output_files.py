"""Files that an evaluation writes while a text is scored, and the rows in them: of segments, of tokens and of words."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lmgauge.base.result_list import writing_rows, writing_table
from lmgauge.evaluation.denominators import segment_bytes
from lmgauge.evaluation.evaluate import Watch, evaluate
from lmgauge.evaluation.event_sums import EventSums, SegmentSums
from lmgauge.evaluation.options import Outputs, with_kept
from lmgauge.evaluation.origin import Origin
from lmgauge.evaluation.results import Evaluations
from lmgauge.evaluation.runs import Run, RunFolders, lockstep, run_settings
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import KINDS, ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    import pyarrow as pa

    from lmgauge.evaluation.words.merging import Units
    from lmgauge.evaluation.words.rows import WordRows, WordSettings
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus
    from lmgauge.text.segments import Segments

TOKEN_COLUMNS = ("model", "segment", "start", "end", "token", "logprob", "kind", "context")
SEGMENT_COLUMNS = (
    *("model", "segment", "group", "events", "logprob", "perplexity", "zero_probability_events"),
    *("id", "document", "tokens", "oov", "bytes"),
)
ID_COLUMN = "id"


def token_rows(model: str, batch: ScoreBatch, block: Segments) -> dict[str, Sequence[Any]]:
    """Return a row for each event of a batch, as columns."""
    # batch: the scores of the segments of a block, nats.
    tokens = batch.strings.tokens
    count = len(batch)
    segments = batch.row_segments()
    ids = block.identifiers()
    return {
        "model": [model] * count,
        "segment": segments.tolist(),
        "start": batch.starts().tolist(),
        "end": batch.ends.tolist(),
        "token": [tokens[i] for i in batch.token_ids.tolist()],
        "logprob": batch.logprob.tolist(),
        "kind": [KINDS[k] for k in batch.kind.tolist()],
        "context": [""] * count,
        ID_COLUMN: [ids[i] for i in (segments - block.first).tolist()],
        **dict(_more_columns(batch)),
        **block.kept(segments - block.first),
    }


def _more_columns(batch: ScoreBatch) -> Iterator[tuple[str, list[Any]]]:
    tokens = batch.strings.tokens
    for name, values in batch.extra.items():
        if name == "top_ids":
            yield "top_tokens", [[tokens[i] for i in row] for row in values.tolist()]
        else:
            yield name, values.tolist()


def segment_rows(
    model: str,
    batch: ScoreBatch,
    sums: SegmentSums,
    block: Segments | None,
    group_names: Sequence[str],
    context_policy: ContextPolicy,
) -> dict[str, Sequence[Any]]:
    """Return a row for each segment of a batch, as columns; those that only the text tells are null without it."""
    import numpy as np

    count = len(sums.segments)
    of_row = np.repeat(np.arange(count), batch.segment_events)
    with np.errstate(over="ignore"):
        perplexity = np.exp(-sums.nats / sums.events)
    columns: dict[str, Sequence[Any]] = {
        "model": [model] * count,
        "segment": sums.segments.tolist(),
        "events": sums.events.tolist(),
        "logprob": sums.nats.tolist(),
        "perplexity": perplexity.tolist(),
        "zero_probability_events": sums.zeros.tolist(),
        "tokens": np.bincount(of_row[~batch.of_no_text()], minlength=count).tolist(),
        "oov": np.bincount(of_row[batch.unseen()], minlength=count).tolist(),
    }
    if block is None:
        return columns | dict.fromkeys(("group", ID_COLUMN, "document", "bytes"), [None] * count)
    of_block, ids = sums.segments - block.first, block.identifiers()
    return columns | {
        "group": [""] * count if block.groups is None else [group_names[g] for g in block.groups[of_block].tolist()],
        ID_COLUMN: [ids[i] for i in of_block.tolist()],
        "document": [""] * count if block.documents is None else block.documents[of_block].tolist(),
        "bytes": segment_bytes(block, batch, context_policy).tolist(),
        **block.kept(of_block),
    }


Rows = Literal["segment", "token"]


def rows_of_run(run: Run, text: Corpus | None, rows: Rows) -> pa.Table:
    """Return the rows of a run; what only the text tells is null without it."""
    import pyarrow as pa

    columns_of = _segments if rows == "segment" else _tokens
    blocks = lockstep([run.batches()], text, [run.name])
    parts = [pa.table(columns_of(run, text, block, batch)) for block, (batch,) in blocks if len(batch)]
    return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


def _segments(run: Run, text: Corpus | None, block: Segments | None, batch: ScoreBatch) -> dict[str, Any]:
    if block is None:  # what has no rows is not known
        some = batch.segment_events > 0
        events, lossy = batch.segment_events[some], np.zeros(0, bool)
        batch = replace(batch, segments=batch.segments[some], segment_events=events, lossy=lossy)
    groups, policy = [] if text is None else text.group_names, ContextPolicy.parse(run.origin.context)
    columns = segment_rows(run.name, batch, EventSums.of(batch).per_segment(), block, groups, policy)
    return _in_order(SEGMENT_COLUMNS, columns, text)


def _tokens(run: Run, text: Corpus | None, block: Segments | None, batch: ScoreBatch) -> dict[str, Any]:
    import pyarrow as pa

    place = batch.row_segments() - (0 if block is None else block.first)
    ids = pa.nulls(len(batch), pa.string()) if block is None else pa.array(block.identifiers()).take(pa.array(place))
    columns = {"model": pa.repeat(run.name, len(batch)), ID_COLUMN: ids}
    stored = batch.to_arrow()
    for name, values in zip(stored.schema.names, stored.columns, strict=True):
        columns[name] = values.cast(pa.string()) if name in ("token", "kind") else values
    return _in_order(columns, columns if block is None else columns | block.kept(place), text)


def _in_order(own: Iterable[str], columns: Mapping[str, Any], text: Corpus | None) -> dict[str, Any]:
    # Columns with bits behind the log-probabilities, and the fields that are carried along last.
    names = list(with_kept(tuple(own), () if text is None else text.kept))
    names.insert(names.index("logprob") + 1, "bits")
    bits = nats_to_bits(-np.asarray(columns["logprob"], np.float64))
    return {name: bits if name == "bits" else columns[name] for name in names}


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
        from lmgauge.scores.distributions.reduce import WithColumns

        scored = [WithColumns(model, outputs.columns) for model in models]
    with ExitStack() as stack:
        watches = [*_row_files(stack, outputs, origins, corpus, words, rows), *([] if watch is None else [watch])]
        if outputs.output is not None:
            runs = stack.enter_context(RunFolders(os.fspath(outputs.output), names))
            if not outputs.columns and words is None:  # a journal has log-probabilities only
                runs.keep_journal(models)

        def watched(index: int, block: Segments, batch: ScoreBatch, tally: EventSums) -> None:
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

        def write_segments(i: int, block: Segments, batch: ScoreBatch, tally: EventSums) -> None:
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

        def write_words(i: int, block: Segments, batch: ScoreBatch, _: EventSums) -> None:
            if i == 0:
                units[:] = [words.units(block)]
            write_word_rows(rows[i].table(block, batch, *units))

        yield write_words
