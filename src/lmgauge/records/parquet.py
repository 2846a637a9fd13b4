"""Parquet: files opened where they are, of remote ones only the columns that are read; as records, scores appended."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import Format
from lmgauge.base.errors import InputError
from lmgauge.base.files import naming, regular, writing_or_printing
from lmgauge.base.remote.addresses import FileState, is_remote
from lmgauge.base.remote.reading import Parts
from lmgauge.base.remote.stores import opened
from lmgauge.records.compression import file_errors
from lmgauge.records.records import (
    BLOCK_BYTES,
    MAX_RECORD_BYTES,
    NO_TEXT,
    Column,
    RawBlock,
    RecordReader,
    Records,
    RecordWriter,
    Row,
    ScoredRecords,
    Strings,
    is_text,
    name_taken,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


_MOST_ROWS = 1 << 14
_TOGETHER = 1 << 26
"""Bytes of rows that are written as one row group."""


class Reader(RecordReader):
    """Reads the rows of a Parquet file, a part of a row group at a time; only the columns that are asked for, or all."""

    def blocks(self, block_bytes: int, *, to_nul: bool = False, keep_bom: bool = False) -> Iterator[RawBlock]:
        wanted = {self.fields.text, *self.fields.others} - {None}
        return self._tables(block_bytes, None if self.fields.whole else sorted(map(str, wanted)))

    def _tables(self, block_bytes: int, columns: list[str] | None, *, rows: bool = False) -> Iterator[RawBlock]:
        import pyarrow as pa

        try:
            with file_errors(self.source), open_parquet(self.source.path, self.source.state, columns) as file:
                names = file.schema_arrow.names
                odd = next((name for name in self.fields.columns(names) if names.count(name) != 1), None)
                if odd is not None and not rows:
                    raise InputError(f"{self.source.name}: {self.fields.missing(odd, names, what='column')}")
                yield from self._batches(file, block_bytes, columns)
        except (pa.ArrowException, UnicodeDecodeError) as error:  # the latter: a name in other bytes
            reason = str(error).splitlines()[0]
            raise InputError(f"{self.source.name}: not a readable Parquet file: {reason}") from error

    def _batches(self, file: pq.ParquetFile, block_bytes: int, columns: list[str] | None) -> Iterator[RawBlock]:
        import pyarrow as pa

        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        state = self.source.state
        packed = os.path.getsize(self.source.path) if state is None else state.size or 0
        # By the size that the file declares of its groups. That of columns would be nearer, but Arrow ends the process where
        # what a file says of a column is damaged (`RowGroupMetaData.column`, a C++ exception that nothing catches).
        size, rows, first = sum(group.total_byte_size for group in groups), max(file.metadata.num_rows, 1), 1
        for batch in batches_of(file, max(1, min(_MOST_ROWS, block_bytes * rows // max(size, 1))), columns):
            table = pa.Table.from_batches([batch], file.schema_arrow if columns is None else None)
            yield RawBlock(table, first, len(table) * packed // rows)
            first += len(table)
        refuse_missing_rows(file, first - 1, self.source.name)
        if first == 1 and columns is None:  # the columns of a file without rows are written, too
            yield RawBlock(file.schema_arrow.empty_table(), first, 0)

    def parse(self, block: RawBlock) -> Records:
        table: pa.Table = block.content
        if taken := self.fields.taken.intersection(table.column_names):
            raise name_taken(self.source.name, min(taken))
        name, numbers = self.fields.text, np.arange(block.first, block.first + len(table))
        values = {other: _present(self._values(table, other)) for other in self.fields.others if other in table.column_names}
        if name is None:
            return Records(self.source.name, numbers, Strings.of([]), values, {}, table)
        texts = Strings.of_column(one_array(table[name]), lists=self.fields.lists)
        if texts is None:
            advice = self.fields.options.get(name)
            other = f"choose another with {advice}" if advice else "name another field"
            raise InputError(f"{self.source.name}: column {name!r} holds {table[name].type}, not strings: {other}")
        longest = int(np.argmax(texts.ends - texts.starts)) if len(texts) else 0
        if len(texts) and (size := int(texts.ends[longest] - texts.starts[longest])) > MAX_RECORD_BYTES:
            raise InputError(
                f"{self.source.name}, row {numbers[texts.rows[longest]]}: column {name!r} holds {size:,} bytes in one cell; "
                f"at most {MAX_RECORD_BYTES:,} are read: cut the text into more rows"
            )
        absent = np.setdiff1d(np.arange(len(table)), texts.rows).tolist()
        problems = dict.fromkeys(absent, (NO_TEXT, f"field {name!r} holds null, not a string"))
        return Records(self.source.name, numbers, texts, values, problems, table)

    def rows(self) -> Iterator[Row]:
        for block in self._tables(BLOCK_BYTES, None, rows=True):
            columns = {name: self._values(block.content, name) for name in block.content.column_names}
            for row in range(len(block.content)):
                yield Row(block.first + row, {name: values[row] for name, values in columns.items()})

    def _values(self, table: pa.Table, name: str) -> list[Any]:
        try:
            return values_of(table[name])
        except UnicodeDecodeError as error:
            raise InputError(f"{self.source.name}: column {name!r} holds a string inside that is not valid UTF-8") from error

    def raw_record(self, records: Records, row: int) -> bytes | None:
        import pyarrow as pa

        value = records.raw[self.fields.text][row].cast(pa.large_string()).as_buffer()
        return None if value is None else bytes(value.to_pybytes())


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; bytes of strings that are not UTF-8 as lone surrogates."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_floating(kind) and kind != pa.float64():  # the shortest decimals, not what follows in binary
        return [None if value is None else float(value) for value in column.cast(kind).cast(pa.string()).to_pylist()]
    if not is_text(kind):
        return list(column.to_pylist())
    encoded = column.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
    return [None if value is None else value.decode("utf-8", "surrogateescape") for value in encoded]


def _present(value: Any) -> Any:
    # Without members of structs that are null: a column has all members that any of its rows has.
    if isinstance(value, dict):
        return {name: _present(member) for name, member in value.items() if member is not None}
    return [_present(item) for item in value] if isinstance(value, list) else value


class Writer(RecordWriter):
    """Writes rows of tables with the columns of their scores; row groups are of about 64 MB."""

    def __init__(self, path: str, form: Format) -> None:
        super().__init__(path, form)
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

    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> None:
        """Write rows; see `RecordWriter`."""
        table: pa.Table = scored.records.raw
        for name, array in arrow_columns(scored.columns, scored.missing).items():
            table = table.append_column(name, array)
        self._waiting.append(_chosen(table, rows))
        if sum(part.nbytes for part in self._waiting) >= _TOGETHER or self._writer is None:
            self._flush()

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


def arrow_columns(columns: Mapping[str, Column], missing: NDArray[np.bool_]) -> dict[str, pa.Array]:
    """Return columns for Arrow, null where there is no figure or the record has none."""
    import pyarrow as pa

    nulls = {name: missing | np.isnan(values) for name, values in columns.items() if isinstance(values, np.ndarray)}
    kinds = {name: None if name in nulls else pa.string() for name in columns}
    return {name: pa.array(values, kinds[name], mask=nulls.get(name)) for name, values in columns.items()}


def _chosen(table: pa.Table, rows: NDArray[np.intp]) -> pa.Table:
    import pyarrow as pa

    if len(rows) == len(table):
        return table
    try:
        return table.take(pa.array(rows))
    except pa.ArrowNotImplementedError:  # of some types rows are not taken, but every table can be cut
        runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
        return pa.concat_tables(table.slice(run[0], len(run)) for run in runs) if len(rows) else table.slice(0, 0)


_BUFFER = 1 << 20


@contextmanager
def open_parquet(
    place: str | os.PathLike[str] | IO[bytes],
    known: FileState | None = None,
    columns: Sequence[str] | None = None,
    *,
    dictionary: str = "",
) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file, or one that is open, to read it in batches, in constant memory."""
    # columns: those that will be read, so that their bytes alone are sent; None for all; dictionary: the column of a local
    # file whose strings are left as they lie in it, each once, with an id a row.
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if not isinstance(place, str | os.PathLike) or not is_remote(place):
            as_stored = [dictionary] if dictionary and dictionary in pq.read_schema(place).names else None
            with pq.ParquetFile(place, buffer_size=_BUFFER, read_dictionary=as_stored) as file:
                yield file
            return
        parts = Parts(opened(os.fspath(place), known))
        with io.BufferedReader(parts, 1) as remote, pq.ParquetFile(remote, buffer_size=_BUFFER) as file:
            parts.expect(_parts_of(file.metadata, columns))
            yield file
            parts.store.check_unchanged()
    except UnicodeDecodeError as error:  # of a column's name
        raise pa.ArrowInvalid(f"a name in it is not valid UTF-8: {error}") from error


def is_parquet(path: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return True for the path of a file that begins with the bytes of Parquet, as no model does."""
    try:
        with open(path, "rb", opener=regular) as file:  # type: ignore[call-overload]
            return bool(file.read(4) == b"PAR1")
    except (OSError, ValueError, TypeError):
        return False


def batches_of(file: pq.ParquetFile, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file, some at a time."""
    # Arrow holds the bytes of all row groups that it is told to read, so these are a few at a time.
    groups, count = [], 0
    for group in range(file.num_row_groups):
        groups.append(group)
        count += file.metadata.row_group(group).num_rows
        if count >= rows or group == file.num_row_groups - 1:
            yield from file.iter_batches(rows, row_groups=groups, columns=columns)
            groups, count = [], 0


def refuse_missing_rows(file: pq.ParquetFile, rows: int, name: str) -> None:
    """Refuse a file of which fewer rows were read than it says it has."""
    # Of a damaged one Arrow can leave some out in silence.
    if rows != file.metadata.num_rows:
        raise InputError(f"{name}: damaged: it says that it has {file.metadata.num_rows:,} rows, and {rows:,} can be read")


def _parts_of(metadata: pq.FileMetaData, columns: Sequence[str] | None) -> Iterator[tuple[int, int]]:
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    for column in (group.column(number) for group in groups for number in range(group.num_columns)):
        if columns is None or column.path_in_schema.partition(".")[0] in columns:
            start = min(at for at in (column.data_page_offset, column.dictionary_page_offset) if at is not None)
            yield start, start + column.total_compressed_size
