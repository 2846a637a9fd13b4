"""The forms of files with records, a row each: what reads them, what writes them."""

from __future__ import annotations

import os
from collections.abc import Callable

from lmgauge.choices import Format
from lmgauge.errors import UsageError
from lmgauge.filtering.records.jsonl import JsonlReader, JsonlWriter
from lmgauge.filtering.records.lines import LineReader, LineWriter, TsvReader, TsvWriter
from lmgauge.filtering.records.parquet import ParquetReader, ParquetWriter
from lmgauge.filtering.records.records import RecordFields, RecordReader, RecordWriter
from lmgauge.text.formats import BY_SUFFIX
from lmgauge.text.streams import Source, split_compression

FORMS: dict[Format, tuple[Callable[[Source, RecordFields], RecordReader], Callable[[str], RecordWriter]]] = {
    "text": (LineReader, LineWriter),
    "jsonl": (JsonlReader, JsonlWriter),
    "tsv": (TsvReader, TsvWriter),
    "parquet": (ParquetReader, ParquetWriter),
}
"""For each form what reads it, and what writes it."""


def reader_of(source: Source, fields: RecordFields) -> RecordReader:
    """Return what reads a file of records."""
    return FORMS[source.format][0](source, fields)


def form_of(path: str | os.PathLike[str], default: Format) -> Format:
    """Return the form that the ending of a name stands for."""
    bare = split_compression(os.fspath(path))[0]
    return BY_SUFFIX.get(os.path.splitext(bare)[1].lower(), default)


def writer_of(path: str, form: Format, source: Source) -> RecordWriter:
    """Return what writes the records of a file: in the form that they have, and lines of text also as JSONL."""
    forms = ("text", "jsonl") if source.format == "text" else (source.format,)
    if form not in forms:
        names = " or ".join(forms)
        raise UsageError(f"{path}: what is in {source.name} is written as {names}, not as {form}: give it such a name")
    return FORMS[form][1](path)
