"""The forms of files with records, a row each: what reads them, what writes them."""

from __future__ import annotations

import os
from collections.abc import Callable

from lmgauge.choices import Format
from lmgauge.errors import UsageError
from lmgauge.filtering.records.jsonl import JsonlReader, JsonlWriter
from lmgauge.filtering.records.lines import LineReader, LineWriter
from lmgauge.filtering.records.parquet import ParquetReader, ParquetWriter
from lmgauge.filtering.records.records import RecordFields, RecordReader, RecordWriter
from lmgauge.text.formats import BY_SUFFIX
from lmgauge.text.streams import Source, split_compression

READERS: dict[Format, Callable[[Source, RecordFields], RecordReader]] = {
    "text": LineReader,
    "jsonl": JsonlReader,
    "parquet": ParquetReader,
}
WRITERS: dict[Format, Callable[[str], RecordWriter]] = {"text": LineWriter, "jsonl": JsonlWriter, "parquet": ParquetWriter}
CONVERTED: dict[Format, tuple[Format, ...]] = {"text": ("text", "jsonl"), "jsonl": ("jsonl",), "parquet": ("parquet",)}
"""What files of a form can be written as."""


def reader_of(source: Source, fields: RecordFields) -> RecordReader:
    """Return what reads a file of records."""
    if source.format not in READERS:
        known = ", ".join(READERS)
        raise UsageError(
            f"{source.name}: files of {source.format} are not filtered, only those of {known}; convert it first"
        )
    return READERS[source.format](source, fields)


def form_of(path: str | os.PathLike[str], default: Format) -> Format:
    """Return the form that the ending of a name stands for."""
    bare = split_compression(os.fspath(path))[0]
    return BY_SUFFIX.get(os.path.splitext(bare)[1].lower(), default)


def writer_of(path: str, form: Format, source: Source) -> RecordWriter:
    """Return what writes the records of a file."""
    if form not in CONVERTED[source.format]:
        forms = " or ".join(CONVERTED[source.format])
        raise UsageError(f"{path}: what is in {source.name} is written as {forms}, not as {form}: give it such a name")
    return WRITERS[form](path)
