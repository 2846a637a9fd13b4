"""Rows of an evaluation for other programs: one line per token or per segment; TSV, JSON lines or Parquet by suffix."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

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


class RowWriter:
    """Writes rows with fixed columns to a TSV or JSON lines file; `-` is standard output, as TSV."""

    def __init__(self, path: str, columns: Sequence[str]) -> None:
        if path != "-" and Path(path).suffix not in (".tsv", ".txt", ".jsonl", ".ndjson"):
            raise UsageError(
                f"{path}: rows are written as .tsv or .jsonl (or - for TSV on standard output); -o writes Parquet"
            )
        self._path, self._columns = path, list(columns)
        self._json = Path(path).suffix in (".jsonl", ".ndjson")
        self._stack = ExitStack()

    def __enter__(self) -> RowWriter:
        self._file = self._stack.enter_context(writing_or_printing(self._path))
        if not self._json:
            self._file.write(("\t".join(self._columns) + "\n").encode())
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def write(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Write rows."""
        # columns: name -> values [rows], at least the columns of the file.
        rows = zip(*(columns[name] for name in self._columns), strict=True)
        if self._json:
            lines = [json.dumps(plain(dict(zip(self._columns, row, strict=True))), ensure_ascii=False) for row in rows]
        else:
            lines = ["\t".join(_cell(value) for value in row) for row in rows]
        if lines:
            text = "\n".join(lines) + "\n"
            self._file.write((for_output(text) if self._path == "-" else text).encode())


def write_table(path: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write rows that are all at hand."""
    # columns: name -> values [rows].
    # Raises OutputError: it cannot be written; nothing is left behind.
    import pyarrow as pa

    if path.endswith(".csv"):  # which has no lists
        columns = {name: [_in_csv(value) for value in values] for name, values in columns.items()}
    with TableWriter(path, list(columns)) as rows:
        rows.write(pa.table(dict(columns)))


class TableWriter:
    """Writes Arrow tables of one kind to a file ending in .parquet, .csv, .tsv or .jsonl; `-` is standard output, as TSV."""

    def __init__(self, path: str, columns: Sequence[str]) -> None:
        check_row_file(path)
        self._path, self._columns = path, columns
        self._stack = ExitStack()
        self._arrow: Any = None

    def __enter__(self) -> Self:
        self._file: IO[bytes] | None = None
        if self._path.endswith((".parquet", ".csv")):
            self._file = self._stack.enter_context(writing_or_printing(self._path))
        else:
            self._rows = self._stack.enter_context(RowWriter(self._path, self._columns))
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def write(self, table: pa.Table) -> None:
        """Write the rows of a table; the first one says what the columns hold."""
        if self._file is None:
            self._rows.write(table.to_pydict())
            return
        if self._arrow is None:
            from pyarrow import csv, parquet

            writer = parquet.ParquetWriter if self._path.endswith(".parquet") else csv.CSVWriter
            self._arrow = self._stack.enter_context(writer(self._file, table.schema))
        self._arrow.write_table(table)


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
