"""A file that a program wrote: recognized by its first bytes, read as lines, cells, JSON values or rows of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, starmap, tee
from pathlib import Path
from typing import Any

from lmgauge.base.choices import Format
from lmgauge.base.errors import InputError
from lmgauge.base.json_text import from_json
from lmgauge.records.compression import read_chunks
from lmgauge.records.formats import reader_of
from lmgauge.records.lines import UTF8_BOM, cut_lines, line_blocks
from lmgauge.records.records import Fields, RecordReader, Row
from lmgauge.records.separated import Reader as SeparatedReader
from lmgauge.records.sources import Source, find_sources

HEAD_BYTES = 1 << 20
_LARGEST_VALUE = 1 << 28
"""Bytes of a JSON value that is held at a time."""
_LONGEST_CELL = 1 << 22
_CHUNK = 1 << 20


@dataclass(frozen=True)
class LogFile:
    """A file that a program wrote."""

    path: Path
    frame: Any = None  # a data frame in place of it, as an Arrow table
    shared: Iterator[Row] | None = None  # its rows, where others read them too

    @cached_property
    def source(self) -> Source:
        """Return the file as records are read from it."""
        return find_sources(self.path)[0]

    @cached_property
    def head(self) -> bytes:
        """Return the first bytes, by which the program is recognized; of a data frame none."""
        if self.frame is not None:
            return b""
        head = next(read_chunks(self.source, HEAD_BYTES), b"")[:HEAD_BYTES]
        if not head.strip():
            raise InputError(f"{self.path}: is empty")
        return head.removeprefix(UTF8_BOM)

    def columns(self) -> list[str]:
        """Return the names of the columns, if it is a table; the fields of its first record, if it has some."""
        if self.frame is not None:
            return [str(name) for name in self.frame.column_names]
        reader = self._reader()
        if isinstance(reader, SeparatedReader):
            return reader.names(self.head)
        try:
            return list(next(reader.rows()).fields)
        except (InputError, StopIteration):
            return []

    def rows(self) -> Iterator[Row]:
        """Yield the rows of a table."""
        if self.shared is not None:
            return self.shared
        if self.frame is not None:
            rows = chain.from_iterable(part.to_pylist() for part in self.frame.to_batches(1 << 13))
            return starmap(Row, enumerate(rows, 1))
        return self._reader().rows()

    def for_each(self, readers: int) -> list[LogFile]:
        """Return a file for each reader of its table; while they keep in step it is read once."""
        return [replace(self, shared=rows) for rows in tee(self.rows(), readers)]

    def _reader(self) -> RecordReader:
        source = self.source
        if source.format == "text":  # its format is told by its beginning, as its name does not
            first = self.head.partition(b"\n")[0]
            form: Format = "jsonl" if self.head.lstrip()[:1] == b"{" else "tsv" if b"\t" in first else "csv"
            source = replace(source, format="parquet" if self.head.startswith(b"PAR1") else form)
        return reader_of(source, Fields(quotes=True))

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield lines with their numbers, counted from 1, without their ends; bytes that are not UTF-8 as surrogates."""
        for block in line_blocks(self.source, _CHUNK):
            for count, line in enumerate(cut_lines(block.content), block.first):
                yield count, line.rstrip(b"\r").decode("utf-8", "surrogateescape")

    def cells(self) -> Iterator[tuple[int, str, bool]]:
        """Yield what stands between tabs and ends of lines."""
        # The line's number, the cell, and whether it is the line's last.
        # A line may be as long as the file; it is never held whole.
        line, rest = 1, b""
        for chunk in read_chunks(self.source, _CHUNK):
            *parts, rest = re.split(rb"([\t\n])", rest + chunk)
            for cell, end in zip(parts[::2], parts[1::2], strict=True):
                yield line, cell.decode("utf-8", "surrogateescape"), end == b"\n"
                line += end == b"\n"
            if len(rest) > _LONGEST_CELL:
                raise InputError(f"{self.path}, line {line}: has {len(rest):,} bytes without a tab; is it a log?")
        if rest:
            yield line, rest.decode("utf-8", "surrogateescape"), True

    def values(self) -> Iterator[tuple[str, Any]]:
        """Yield JSON values and where they are: those of JSON lines, the items of one array, or one value."""
        whole = self._one_value()
        if whole is None:
            for number, line in self.lines():
                if line.strip():
                    where = f"{self.path}, line {number}"
                    yield where, _parsed(line, where)
        elif isinstance(whole, list):
            for number, item in enumerate(whole, 1):
                yield f"{self.path}, item {number}", item
        else:
            yield str(self.path), whole

    def _one_value(self) -> Any:
        # File's only JSON value; None if it is JSON lines: its first line is a value, and another follows.
        first, _, more = self.head.partition(b"\n")
        if more.strip() or len(self.head) == HEAD_BYTES:
            try:
                if not isinstance(from_json(first), list) or more.lstrip()[:1] in (b"[", b"{"):
                    return None
            except ValueError:
                pass  # a value goes on over the end of the line
        content = bytearray()
        for chunk in read_chunks(self.source, _CHUNK):
            content += chunk
            if len(content) > _LARGEST_VALUE:
                raise InputError(
                    f"{self.path}: is one JSON value of more than {_LARGEST_VALUE:,} bytes; write it as JSON lines"
                )
        return _parsed(content.decode("utf-8-sig", "surrogateescape"), str(self.path))


def _parsed(text: str | bytes, where: str) -> Any:
    try:
        return from_json(text)
    except ValueError as error:
        raise InputError(f"{where}: is not JSON: {error}") from error
