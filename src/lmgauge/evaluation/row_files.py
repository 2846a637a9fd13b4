"""Rows of an evaluation for other programs: one line per token or per segment; TSV, JSON lines or Parquet by suffix."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.context_policy import ContextPolicy
from lmgauge.errors import UsageError
from lmgauge.evaluation.denominators import segment_bytes
from lmgauge.evaluation.tally import SegmentSums
from lmgauge.files import writing_or_printing
from lmgauge.json_text import plain
from lmgauge.readable import for_output
from lmgauge.scores import EOS_KIND, KINDS, ScoreBatch

if TYPE_CHECKING:
    import pyarrow as pa

    from lmgauge.text.segments import Segments

ROW_FILES = (".parquet", ".csv", ".tsv", ".jsonl")
"""Endings of files for the rows of a result."""

_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})


Write = Callable[[Mapping[str, Sequence[Any]]], None]
"""Writes rows: of each column, by its name, the values [rows]; there may be more columns than the file has."""


@contextmanager
def writing_rows(path: str, columns: Sequence[str]) -> Iterator[Write]:
    """Open a TSV or JSON lines file for rows with fixed columns; `-` is standard output, as TSV."""
    ending = Path(path).suffix
    if path != "-" and ending not in (".tsv", ".txt", ".jsonl", ".ndjson"):
        raise UsageError(f"{path}: rows are written as .tsv or .jsonl (or - for TSV on standard output); -o writes Parquet")
    with writing_or_printing(path) as file:
        as_json = ending in (".jsonl", ".ndjson")
        if not as_json:
            file.write(("\t".join(columns) + "\n").encode())

        def write(values: Mapping[str, Sequence[Any]]) -> None:
            rows = zip(*(values[name] for name in columns), strict=True)
            if as_json:
                lines = [json.dumps(plain(dict(zip(columns, row, strict=True))), ensure_ascii=False) for row in rows]
            else:
                lines = ["\t".join(map(_cell, row)) for row in rows]
            text = "".join(f"{line}\n" for line in lines)
            file.write((for_output(text) if path == "-" else text).encode())

        yield write


@contextmanager
def writing_table(path: str, columns: Sequence[str]) -> Iterator[Callable[[pa.Table], None]]:
    """Open a file ending in .parquet, .csv, .tsv or .jsonl for Arrow tables of one kind; `-` is standard output, as TSV."""
    check_row_file(path)
    if not path.endswith((".parquet", ".csv")):
        with writing_rows(path, columns) as write_rows:
            yield lambda table: write_rows(table.to_pydict())
        return
    with ExitStack() as stack:
        file = stack.enter_context(writing_or_printing(path))
        writers: list[Any] = []

        def write(table: pa.Table) -> None:
            if not writers:  # the first table says what the columns hold
                from pyarrow import csv, parquet

                kind = parquet.ParquetWriter if path.endswith(".parquet") else csv.CSVWriter
                writers.append(stack.enter_context(kind(file, table.schema)))
            writers[0].write_table(table)

        yield write


def write_table(path: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write rows that are all at hand."""
    # columns: name -> values [rows].
    # Raises OutputError: it cannot be written; nothing is left behind.
    import pyarrow as pa

    if path.endswith(".csv"):  # which has no lists
        columns = {name: [_in_csv(value) for value in values] for name, values in columns.items()}
    with writing_table(path, list(columns)) as write:
        write(pa.table(dict(columns)))


def check_row_file(path: str) -> None:
    """Refuse a file for rows that is of no kind known here."""
    if path != "-" and not path.endswith(ROW_FILES):
        raise UsageError(f"{path}: rows are written as {', '.join(ROW_FILES)} (or - for TSV on standard output)")


def _in_csv(value: Any) -> Any:
    return json.dumps(plain(value), ensure_ascii=False) if isinstance(value, list) else value


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return _cell(json.dumps(plain(value), ensure_ascii=False))
    if value is None:
        return ""
    return value.translate(_ESCAPES) if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)


TOKEN_COLUMNS = ("model", "segment", "start", "end", "token", "logprob", "kind", "context")
SEGMENT_COLUMNS = (
    *("model", "segment", "group", "events", "logprob", "perplexity", "zero_probability_events"),
    *("id", "document", "tokens", "oov", "bytes"),
)
ID_COLUMN = "id"


def with_kept(columns: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of rows, and behind them those of the fields that are carried along."""
    taken = next((name for name in kept if name in columns), None)
    if taken is not None:
        raise UsageError(f"keep: rows have a column {taken!r} of their own; give the field of the text another name")
    return (*columns, *kept)


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
        "tokens": np.bincount(of_row[batch.kind != EOS_KIND], minlength=count).tolist(),
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
