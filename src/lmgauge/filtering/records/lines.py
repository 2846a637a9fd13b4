"""Lines of text as records: read as they are, written as they were."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.filtering.documents import Documents
from lmgauge.filtering.records.packing import PackedLines
from lmgauge.filtering.records.records import BLOCK_BYTES, RawBlock, RecordFields, Records, ScoredRecords
from lmgauge.text.cleaning import Place, strip_file_start
from lmgauge.text.readers import line_blocks
from lmgauge.text.segments import TextReport
from lmgauge.text.streams import Source


class LineReader:
    """Reads the lines of a text file as documents."""

    def __init__(self, source: Source, fields: RecordFields) -> None:
        if fields.others:
            raise InputError(f"{source.name}: lines of text have no field {fields.others[0]!r}; use JSONL or Parquet")
        self.source = source

    def blocks(self) -> Iterator[RawBlock]:
        """Yield blocks of whole lines; see `RecordReader`."""
        return whole_lines(self.source)

    def parse(self, block: RawBlock) -> Records:
        """Return the lines of a block, whose content is their bytes; see `RecordReader`."""
        lines = block.content.split(b"\n")[:-1]
        numbers = np.arange(block.first, block.first + len(lines), dtype=np.int64)
        texts = [line.rstrip(b"\r") for line in lines] if b"\r" in block.content else lines
        return Records(Documents.of(texts, self.source.name), numbers, {}, lines, self.source.name, is_text=True)

    def raw_record(self, records: Records, row: int) -> bytes | None:
        """Return the bytes of a line; see `RecordReader`."""
        line: bytes = records.raw[row]
        return line


class LineWriter(PackedLines):
    """Writes the lines of documents as they were; columns have no place there."""

    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> int:
        """Write lines, and return their bytes before packing; see `RecordWriter`."""
        lines = scored.records.raw
        return self.put(lines[row] + b"\n" for row in rows.tolist())


def whole_lines(source: Source) -> Iterator[RawBlock]:
    """Yield a file in blocks of whole lines, a byte order mark at its start left out."""
    first, place, before = 1, Place(source.name), 0
    positions = [0]
    for block, newline_supplied in line_blocks(source, BLOCK_BYTES, consumed=positions.append):
        content = strip_file_start(block, place, TextReport()) if first == 1 else block
        if newline_supplied and content == b"\n":
            return
        yield RawBlock(content, first, positions[-1] - before)
        before, positions = positions[-1], positions[-1:]
        first += content.count(b"\n")
