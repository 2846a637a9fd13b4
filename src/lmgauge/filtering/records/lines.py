"""Lines of text, and of cells with tabs between, as records: read as they are, written as they were."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.filtering.document_scores import name_taken
from lmgauge.filtering.documents import BAD_RECORD, Documents
from lmgauge.filtering.records.packing import PackedLines
from lmgauge.filtering.records.records import BLOCK_BYTES, RawBlock, RecordFields, Records, ScoredRecords
from lmgauge.text.cleaning import Place, strip_file_start
from lmgauge.text.readers import line_blocks
from lmgauge.text.segments import TextReport
from lmgauge.text.streams import Source
from lmgauge.text.tsv import cell_at, column_number, place_of


class ReaderOfLines:
    """What readers share whose records are lines: `raw` of their records is a list of the bytes of each."""

    def __init__(self, source: Source, fields: RecordFields) -> None:
        self.source, self._fields = source, fields

    def blocks(self) -> Iterator[RawBlock]:
        """Yield blocks of whole lines; see `RecordReader`."""
        return whole_lines(self.source)

    def raw_record(self, records: Records, row: int) -> bytes | None:
        """Return the bytes of a line; see `RecordReader`."""
        line: bytes = records.raw[row]
        return line


class LineReader(ReaderOfLines):
    """Reads the lines of a text file as documents; they have no fields, so none may be asked for."""

    def __init__(self, source: Source, fields: RecordFields) -> None:
        if fields.others:
            raise InputError(f"{source.name}: lines of text have no field {fields.others[0]!r}; use JSONL, TSV or Parquet")
        super().__init__(source, fields)

    def parse(self, block: RawBlock) -> Records:
        """Return the lines of a block, whose content is their bytes; see `RecordReader`."""
        lines = block.content.split(b"\n")[:-1]
        numbers = np.arange(block.first, block.first + len(lines), dtype=np.int64)
        texts = [line.rstrip(b"\r") for line in lines] if b"\r" in block.content else lines
        return Records(Documents.of(texts, self.source.name), numbers, {}, lines, self.source.name, is_text=True)


class LineWriter(PackedLines):
    """Writes the lines of documents as they were; columns have no place there."""

    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> int:
        """Write lines, and return their bytes before packing; see `RecordWriter`."""
        lines = scored.records.raw
        return self.put(lines[row] + b"\n" for row in rows.tolist())


class TsvReader(ReaderOfLines):
    """Reads the lines of a TSV file, columns by their numbers or by the names in its first line, as `text.tsv` does."""

    def blocks(self) -> Iterator[RawBlock]:
        for block in super().blocks():
            yield self._behind_names(block) if block.first == 1 else block

    def _behind_names(self, block: RawBlock) -> RawBlock:
        first, _, rest = block.content.partition(b"\n")
        first = first.rstrip(b"\r")
        cells, names = first.split(b"\t"), first.decode("utf-8", "backslashreplace").split("\t")
        wanted = [(name, column_number(name)) for name in (self._fields.text, *self._fields.others)]
        self._places = [place_of(names, "", name, self.source) if at is None else at for name, at in wanted]
        cell_at(cells, max(self._places), self.source, 1)
        self._width, self._names = len(cells), first if any(at is None for _, at in wanted) else None
        if self._names is None:
            return block
        if taken := self._fields.taken.intersection(names):
            raise name_taken(f"{self.source.name}:1", min(taken))
        return RawBlock(rest, 2, block.size)

    def parse(self, block: RawBlock) -> Records:
        """Return the lines of a block, with the names of their columns; see `RecordReader`."""
        lines = [line.rstrip(b"\r") for line in block.content.split(b"\n")[:-1]]
        cells = [line.split(b"\t") for line in lines]
        # With more or fewer cells than the first line, what is put behind a line would stand in another column.
        problems = {
            row: (BAD_RECORD, f"{len(own)} columns, where the first line has {self._width}")
            for row, own in enumerate(cells)
            if len(own) != self._width
        }
        text, *labels = ([None if row in problems else own[at] for row, own in enumerate(cells)] for at in self._places)
        values = {
            name: [None if value is None else value.decode("utf-8", "backslashreplace") for value in column]
            for name, column in zip(self._fields.others, labels, strict=True)
        }
        numbers = np.arange(block.first, block.first + len(lines), dtype=np.int64)
        documents = Documents.of(text, self.source.name, problems)
        return Records(documents, numbers, values, lines, self.source.name, names=self._names)


class TsvWriter(PackedLines):
    """Writes lines of cells as they were, with those of their scores behind their own; names where there were names."""

    _is_empty = True

    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> int:
        """Write lines, and return their bytes before packing; see `RecordWriter`."""
        names, lines = scored.records.names, scored.records.raw
        parts = []
        if self._is_empty and names is not None:
            parts = [names, *(f"\t{name}".encode() for name in (*scored.scores.columns(), *scored.labels)), b"\n"]
        self._is_empty = False
        for row, figures in zip(rows.tolist(), scored.scores.cells(rows), strict=True):
            cells = "\t".join([figures, *(values[row] or "" for values in scored.labels.values())])
            parts += lines[row], b"\t", cells.encode(), b"\n"
        return self.put(parts)


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
