"""The formats of records, a row each: the endings of file names, and the module that reads and writes such files."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from lmgauge.base.choices import Format
from lmgauge.base.errors import InputError, UsageError

if TYPE_CHECKING:
    from lmgauge.records.records import Fields, RecordReader, RecordWriter
    from lmgauge.records.sources import Source

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")


class FormatRow(NamedTuple):
    """How files of one format are recognized, and what reads and writes them."""

    suffixes: tuple[str, ...]  # endings of file names, lower case, in front of that of a compression
    module: str  # has a `Reader` and a `Writer`
    streams: bool = True  # whether it can be read from its beginning on: from a pipe, or packed

    def load(self, what: str) -> Any:
        """Return the class that reads such files (`Reader`), or writes them (`Writer`)."""
        return getattr(import_module(self.module), what)


FORMATS_OF_RECORDS: dict[Format, FormatRow] = {
    "text": FormatRow((".txt", ".text"), "lmgauge.records.lines"),
    "jsonl": FormatRow((".jsonl", ".ndjson"), "lmgauge.records.jsonl"),
    "csv": FormatRow((".csv",), "lmgauge.records.separated"),
    "tsv": FormatRow((".tsv",), "lmgauge.records.separated"),
    "parquet": FormatRow((".parquet",), "lmgauge.records.parquet", streams=False),
}
BY_SUFFIX: dict[str, Format] = {suffix: name for name, known in FORMATS_OF_RECORDS.items() for suffix in known.suffixes}
RECORD_ENDINGS = ", ".join(suffix for suffix, name in BY_SUFFIX.items() if name != "text")
"""Of files whose records have fields, for messages."""


def split_compression(path: str) -> tuple[str, str]:
    """Return a path without the ending of a compression, and that ending in lower case, empty where there is none."""
    bare, suffix = os.path.splitext(path)
    return (bare, suffix.lower()) if suffix.lower() in COMPRESSIONS else (path, "")


def format_of(path: str | os.PathLike[str], default: Format = "text") -> Format:
    """Return the format that the ending of a name stands for."""
    bare = split_compression(os.fspath(path))[0]
    return BY_SUFFIX.get(os.path.splitext(bare)[1].lower(), default)


def reader_of(source: Source, fields: Fields) -> RecordReader:
    """Return what reads the records of a file."""
    if source.format == "text" and fields.others:
        raise InputError(f"{source.name}: lines of text have no field {fields.others[0]!r}; use {RECORD_ENDINGS}")
    reader: RecordReader = FORMATS_OF_RECORDS[source.format].load("Reader")(source, fields)
    return reader


def writer_of(path: str, form: Format, source: Source) -> RecordWriter:
    """Return what writes the records of a file: in the form that they have, and lines of text also as JSONL."""
    forms = ("text", "jsonl") if source.format == "text" else (source.format,)
    if form not in forms:
        names = " or ".join(forms)
        raise UsageError(f"{path}: what is in {source.name} is written as {names}, not as {form}: give it such a name")
    writer: RecordWriter = FORMATS_OF_RECORDS[form].load("Writer")(path, form)
    return writer
