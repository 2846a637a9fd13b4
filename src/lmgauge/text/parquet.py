"""Parquet columns of strings as segments, one record per row, without a Python object per row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.text.cleaning import find_problem
from lmgauge.text.labels import DOCUMENT, GIVEN, GROUP, Names
from lmgauge.text.parquet_files import batches_of, open_parquet, refuse_missing_rows
from lmgauge.text.readers import MAX_LINE_BYTES, ReadingPass, gaps, name_one, read_records
from lmgauge.text.segments import KEEP, Segments
from lmgauge.text.streams import Source, file_errors

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_MOST_ROWS = 1 << 14


def read_parquet(source: Source, reading: ReadingPass) -> Iterator[Segments]:
    """Yield the rows of a Parquet file in batches of about `reading.options.block_bytes` of text."""
    import pyarrow as pa

    columns = [reading.options.field, *reading.label_fields.values()]
    try:
        with file_errors(source), open_parquet(source.path, source.version, columns) as file:
            yield from _read_file(file, source, reading)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{source.name}: not a readable Parquet file: {reason}") from error


def _read_file(file: pq.ParquetFile, source: Source, reading: ReadingPass) -> Iterator[Segments]:
    columns = [reading.options.field, *reading.label_fields.values()]
    for label, column in (("field", reading.options.field), *reading.label_fields.items()):
        if column not in file.schema_arrow.names:
            names = ", ".join(map(repr, file.schema_arrow.names[:8])) or "none"
            raise InputError(f"{source.name}: no column {column!r}; the columns are {names}: {name_one(label)}")
        if file.schema_arrow.names.count(column) > 1:
            raise InputError(f"{source.name}: several columns are called {column!r}: give each a name of its own")
    row = 1
    for batch in batches_of(file, _rows_per_batch(file, reading), sorted(set(columns))):
        numbers = np.arange(row, row + len(batch), dtype=np.int64)
        row += len(batch)
        needed = [name for label, name in reading.label_fields.items() if not label.startswith(KEEP)]
        batch, numbers = _without_nulls(batch, [reading.options.field, *needed], numbers, source, reading)
        texts = _strings(batch.column(reading.options.field), reading.options.field, source)
        fields = reading.label_fields.items()
        labels = {label: _strings(batch.column(field), field, source, label) for label, field in fields}
        if len(texts):
            yield from _segments(texts, labels, numbers, source, reading)
    refuse_missing_rows(file, row - 1, source.name)


def _without_nulls(
    batch: pa.RecordBatch, columns: list[str], numbers: NDArray[np.int64], source: Source, reading: ReadingPass
) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
    import pyarrow as pa

    null = np.zeros(len(batch), dtype=bool)
    for name in columns:
        if batch.column(name).null_count:
            missing = batch.column(name).is_null().to_numpy(zero_copy_only=False)
            place = f"{source.name}, row {numbers[np.flatnonzero(missing)[0]]}"
            new = int(np.count_nonzero(missing & ~null))
            reading.leave_out(InputError(f"{place}: column {name!r} holds null, not a string"), new)
            null |= missing
    if not null.any():
        return batch, numbers
    # Arrow cannot filter views of strings.
    whole = [one.cast(pa.large_string()) if pa.types.is_string_view(one.type) else one for one in batch.columns]
    return pa.RecordBatch.from_arrays(whole, batch.schema.names).filter(pa.array(~null)), numbers[~null]


def _rows_per_batch(file: pq.ParquetFile, reading: ReadingPass) -> int:
    # How many rows hold at most about `block_bytes`, by the uncompressed size that the file declares of its groups.
    # That of the column alone would be nearer, but Arrow ends the process where what a file says of a column is damaged
    # (`RowGroupMetaData.column`, a C++ exception that nothing catches).
    size: int = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
    rows: int = max(file.metadata.num_rows, 1)
    return max(1, min(_MOST_ROWS, reading.options.block_bytes * rows // max(size, 1)))


def _strings(column: pa.Array, name: str, source: Source, label: str = "field") -> pa.LargeStringArray:
    # Column without nulls as strings; labels other than text may also be integers.
    import pyarrow as pa
    import pyarrow.compute as pc

    integers, kept = label not in ("field", GIVEN), label.startswith(KEEP)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if kept and (pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        column, kind = column.cast(kind).cast(pa.string()), pa.string()
    if integers and pa.types.is_integer(kind):
        column, kind = column.cast(kind).cast(pa.string()), pa.string()
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        wanted = "strings or integers" if integers else f"strings: choose another with --{label}"
        raise InputError(f"{source.name}: column {name!r} holds {kind}, not {wanted}")
    return pc.fill_null(column.cast(pa.large_string()), "")


def _listed(labels: pa.Array, source: Source) -> list[str]:
    try:
        values: list[str] = labels.to_pylist()
    except UnicodeDecodeError as error:
        raise InputError(f"{source.name}: a group, document, id or given text is not valid UTF-8") from error
    return values


def _codes(labels: pa.LargeStringArray | None, names: Names, source: Source) -> NDArray[np.int64] | None:
    # Number of each name; every different one is looked up once.
    if labels is None:
        return None
    encoded = labels.dictionary_encode()
    codes: NDArray[np.int64] = names.numbers(_listed(encoded.dictionary, source))[encoded.indices.to_numpy()]
    return codes


def _segments(
    texts: pa.LargeStringArray,
    labels: dict[str, pa.LargeStringArray],
    numbers: NDArray[np.int64],
    source: Source,
    reading: ReadingPass,
) -> Iterator[Segments]:
    # Batch as segments over Arrow's own buffer if all of it is clean, else record by record.
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(offsets)
    longest = int(np.argmax(lengths))
    if lengths[longest] > MAX_LINE_BYTES:
        raise InputError(
            f"{source.name}, row {numbers[longest]}: column {reading.options.field!r} holds {lengths[longest]:,} bytes in "
            f"one cell; at most {MAX_LINE_BYTES:,} are read: cut the text into more rows"
        )
    buffer = texts.buffers()[2]
    data = np.frombuffer(buffer if buffer is not None else b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    whole = data.tobytes()  # a copy of its own: checked as bytes, and kept after Arrow frees the batch
    problem, characters = find_problem(whole)
    data, offsets = np.frombuffer(whole, dtype=np.uint8), offsets - offsets[0]
    begins = offsets[:-1][offsets[1:] > offsets[:-1]]
    # Two ill-formed records can join to well-formed text: then one of them begins with a continuation byte.
    torn = bool(np.any((data[begins] & 0xC0) == 0x80))
    if problem < 0 and not torn and b"\r\n" not in whole and GIVEN not in labels:
        reading.report.characters += characters
        codes = _codes(labels.get(GROUP), reading.groups, source)
        groups = None if codes is None else codes.astype(np.int32)
        documents = _codes(labels.get(DOCUMENT), reading.documents, source)
        own = {label: _listed(values, source) for label, values in labels.items() if label not in (GROUP, DOCUMENT)}
        yield Segments(data, offsets[:-1], offsets[1:], source.name, int(numbers[0]), gaps(numbers), groups, documents, own)
        return
    bounds = offsets.tolist()
    records = [whole[start:end] for start, end in pairwise(bounds)]
    listed = {label: _listed(values, source) for label, values in labels.items()}
    yield from read_records(records, numbers.tolist(), listed, source.name, reading)
