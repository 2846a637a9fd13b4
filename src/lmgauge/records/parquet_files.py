"""Parquet files opened where they are: of a remote one, only the columns that are read are sent."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, TypeGuard

from lmgauge.base.errors import InputError
from lmgauge.base.files import regular
from lmgauge.base.remote.addresses import FileState, is_remote
from lmgauge.base.remote.reading import Parts
from lmgauge.base.remote.stores import opened

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

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
