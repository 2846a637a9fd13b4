"""Parquet as records: rows of all columns, those of the scores appended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.files import naming, writing_or_printing
from lmgauge.filtering.document_scores import name_taken
from lmgauge.filtering.documents import Documents, labels_of
from lmgauge.filtering.records.records import BLOCK_BYTES, RawBlock, RecordFields, Records, ScoredRecords
from lmgauge.text.parquet_files import batches_of, open_parquet, refuse_missing_rows
from lmgauge.text.streams import Source, file_errors

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_MOST_ROWS = 1 << 14
_TOGETHER = 1 << 26
"""Bytes of rows that are written as one row group."""


class ParquetReader:
    """Reads the rows of a Parquet file, a part of a row group at a time."""

    def __init__(self, source: Source, fields: RecordFields) -> None:
        self.source, self._fields = source, fields

    def blocks(self) -> Iterator[RawBlock]:
        """Yield tables of some rows; see `RecordReader`."""
        import pyarrow as pa

        try:
            with file_errors(self.source), open_parquet(self.source.path, self.source.version) as file:
                yield from self._tables(file)
        except (pa.ArrowException, UnicodeDecodeError) as error:  # the latter: a name in other bytes
            reason = str(error).splitlines()[0]
            raise InputError(f"{self.source.name}: not a readable Parquet file: {reason}") from error

    def _tables(self, file: pq.ParquetFile) -> Iterator[RawBlock]:
        import pyarrow as pa

        columns = file.schema_arrow.names
        for name in (self._fields.text, *self._fields.others):
            if columns.count(name) != 1:
                there = ", ".join(map(repr, columns[:8])) or "none"
                what = "no column" if name not in columns else "several columns"
                raise InputError(f"{self.source.name}: {what} {name!r}; the columns are {there}: name one of them")
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        # Not the sum over columns: of a damaged file, asking for one of them ends the process (see text/parquet.py).
        state = self.source.state
        packed = os.path.getsize(self.source.path) if state is None else state.size or 0
        size, rows, first = sum(group.total_byte_size for group in groups), max(file.metadata.num_rows, 1), 1
        at_a_time = max(1, min(_MOST_ROWS, BLOCK_BYTES * rows // max(size, 1)))
        for batch in batches_of(file, at_a_time):
            table = pa.Table.from_batches([batch], file.schema_arrow)
            yield RawBlock(table, first, len(table) * packed // rows)
            first += len(table)
        refuse_missing_rows(file, first - 1, self.source.name)
        if first == 1:  # the columns of a file without rows are written, too
            yield RawBlock(file.schema_arrow.empty_table(), first, 0)

    def parse(self, block: RawBlock) -> Records:
        """Return the rows of a table; see `RecordReader`."""
        table: pa.Table = block.content
        documents = Documents.of_column(table[self._fields.text], self.source.name)
        numbers = np.arange(block.first, block.first + len(table), dtype=np.int64)
        values = {name: labels_of(table[name]) for name in self._fields.others}
        return Records(documents, numbers, values, table, self.source.name)

    def raw_record(self, records: Records, row: int) -> bytes | None:
        """Return the bytes of the text of a row; see `RecordReader`."""
        import pyarrow as pa

        value = records.raw[self._fields.text][row].cast(pa.large_string()).as_buffer()
        return None if value is None else bytes(value.to_pybytes())


class ParquetWriter:
    """Writes rows of tables with the columns of their scores; row groups are of about 64 MB."""

    def __init__(self, path: str) -> None:
        self._path, self._stack = path, ExitStack()
        self._waiting: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        self._file = self._stack.enter_context(writing_or_printing(self._path))
        return self

    def __exit__(self, *error: Any) -> bool | None:
        try:
            if error[0] is None:
                self._flush()
            if self._writer is not None:
                self._writer.close()
        except BaseException:
            import sys

            self._stack.__exit__(*sys.exc_info())
            raise
        return self._stack.__exit__(*error)

    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> int:
        """Write rows, and return their bytes in memory; see `RecordWriter`."""
        import pyarrow as pa

        table: pa.Table = scored.records.raw
        columns = scored.scores.arrow_columns() | {
            name: pa.array(list(values), pa.string()) for name, values in scored.labels.items()
        }
        for name, array in columns.items():
            if name in table.column_names:
                raise name_taken(scored.records.source, name)
            table = table.append_column(name, array)
        chosen = _chosen(table, rows)
        self._waiting.append(chosen)
        if sum(part.nbytes for part in self._waiting) >= _TOGETHER or self._writer is None:
            self._flush()
        return int(chosen.nbytes)

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, table.schema, compression="zstd")
            if len(self._waiting) == 1 and table.nbytes < _TOGETHER:
                return  # only the schema is needed now
        self._waiting = []
        if len(table):
            with naming(self._path):
                self._writer.write_table(table, row_group_size=len(table))


def _chosen(table: pa.Table, rows: NDArray[np.intp]) -> pa.Table:
    import pyarrow as pa

    if len(rows) == len(table):
        return table
    try:
        return table.take(pa.array(rows))
    except pa.ArrowNotImplementedError:  # of some types rows are not taken, but every table can be cut
        runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
        return pa.concat_tables(table.slice(run[0], len(run)) for run in runs) if len(rows) else table.slice(0, 0)
