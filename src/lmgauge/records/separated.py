"""CSV and TSV as records, columns by number or by the names in the first line; written with further cells behind their own.

In TSV nothing is quoted: a line is a record, and a blank one has an empty first cell. In CSV a cell that begins with a
quotation mark may hold commas and newlines, and blank lines are not records.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import Format
from lmgauge.base.errors import InputError
from lmgauge.records.jsonl import json_values
from lmgauge.records.lines import PackedLines, ReaderOfLines, last_newline, line_blocks
from lmgauge.records.records import (
    BAD_RECORD,
    BLOCK_BYTES,
    MAX_RECORD_BYTES,
    Fields,
    Ints,
    Problem,
    RawBlock,
    Records,
    Row,
    ScoredRecords,
    Strings,
    find_problem,
    name_taken,
    what_is_wrong,
)
from lmgauge.records.sources import Source


def _record_pattern(separator: bytes) -> re.Pattern[bytes]:
    # Cells, of which one that begins with a quotation mark may hold newlines. Possessive: there is no way back.
    cell = rb'(?:"[^"]*+(?:""[^"]*+)*+"[^%s\n]*+|(?!")[^%s\n]*+)' % (separator, separator)
    return re.compile(cell + rb"(?:%s%s)*+\n" % (separator, cell))


_DIALECTS: dict[Format, tuple[str, bool]] = {"csv": (",", True), "tsv": ("\t", False)}
"""What stands between cells, and whether they may be quoted."""
_PATTERNS = {separator: _record_pattern(re.escape(separator.encode())) for separator, _ in _DIALECTS.values()}
csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD_BYTES))


class Reader(ReaderOfLines):
    """Reads the records of a CSV or TSV file."""

    _columns: list[str]
    _places: list[int]
    _width: int
    _names: bytes | None

    def __init__(self, source: Source, fields: Fields) -> None:
        super().__init__(source, fields)
        self._separator, quoted = _DIALECTS[source.format]
        self._quotes = quoted or fields.quotes

    def blocks(self, block_bytes: int, *, to_nul: bool = False, keep_bom: bool = False) -> Iterator[RawBlock]:
        end_of = self._last_record if self._quotes else last_newline
        for block in line_blocks(self.source, block_bytes, to_nul=to_nul, keep_bom=keep_bom, end_of=end_of):
            if block.first == 1:
                self._begin(block)
            yield block

    def split(self, content: bytes) -> list[bytes]:
        if not self._quotes or b'"' not in content:
            return super().split(content)
        bounds = list(self._bounds(content))
        end = bounds[-1][1] if bounds else 0
        rest = [content[end:-1]] if end < len(content) else []  # a quotation mark without its other at the end of the file
        return [content[start : stop - 1] for start, stop in bounds] + rest

    def _bounds(self, content: bytes) -> Iterator[tuple[int, int]]:
        # Start and end of each whole record, one behind the other.
        pattern, at = _PATTERNS[self._separator], 0
        while match := pattern.match(content, at):
            yield match.span()
            at = match.end()

    def _last_record(self, content: bytes) -> int:
        return max((end for _, end in self._bounds(content)), default=0) if b'"' in content else last_newline(content)

    def numbered(self, block: RawBlock) -> tuple[list[bytes], Ints]:
        if block.numbers is not None or not self._quotes or b'"' not in block.content:
            return super().numbered(block)
        records = self.split(block.content)
        lines = np.fromiter((1 + one.count(b"\n") for one in records), np.int64, len(records))
        return records, block.first + np.cumsum(lines) - lines

    def _begin(self, block: RawBlock) -> None:
        lines, _ = self.numbered(block)
        first = lines[0].rstrip(b"\r")
        cells = next(self._cells([first]), [])
        if isinstance(cells, str):
            raise self.bad(1, cells)
        self._columns = self.fields.columns(cells)
        wanted = [(name, column_number(name)) for name in self._columns]
        self._places = [self._place(cells, name) if at is None else at for name, at in wanted]
        self._width, self._names = len(cells), first if any(at is None for _, at in wanted) else None
        if max(self._places) >= len(cells):
            raise self.bad(1, _no_cell(cells, max(self._places)))
        if self._names is not None and (taken := self.fields.taken.intersection(cells)):
            raise name_taken(f"{self.source.name}:1", min(taken))

    def _place(self, names: Sequence[str], wanted: str) -> int:
        if names.count(wanted) == 1:
            return names.index(wanted)
        header = ", ".join(repr(name[:40]) for name in names[:8])
        option = self.fields.options.get(wanted)
        what = "several columns" if wanted in names else "no column"
        raise InputError(
            f"{self.source.name}: {what} {wanted!r} in its first line, which has {header}: name one of them "
            f"{f'({option}) ' if option else ''}or, in a file without header, the number of a column (1 to {len(names)})"
        )

    def names(self, head: bytes) -> list[str]:
        """Return the names of the columns, by the first bytes of a file; none where its first line is not of the format."""
        cells = next(self._cells([head.partition(b"\n")[0].rstrip(b"\r")]), [])
        return [] if isinstance(cells, str) else [cell.strip() for cell in cells]

    def _cells(self, records: Sequence[bytes]) -> Iterator[list[str] | str]:
        # The cells of each record, or what is wrong with it.
        texts = (record.decode("utf-8", "surrogateescape") for record in records)
        if not self._quotes:
            yield from (text.split(self._separator) for text in texts)
            return
        reader = csv.reader(texts, delimiter=self._separator, strict=True)
        while True:
            try:
                yield next(reader)
            except csv.Error as error:
                # "new-line character seen in unquoted field - do you need to open the file in universal-newline mode?"
                wrong = "a line ends within a cell that is not quoted" if "new-line" in str(error) else error
                yield f"not a record of {self.source.format.upper()}: {wrong}"
            except StopIteration:
                return

    def _numbered_cells(self, block: RawBlock) -> Iterator[tuple[int, bytes, list[str] | str]]:
        lines, numbers = self.numbered(block)
        stripped = [line.rstrip(b"\r") for line in lines] if b"\r" in block.content else lines
        for number, line, cells in zip(numbers.tolist(), stripped, self._cells(stripped), strict=True):
            if cells and (number > 1 or self._names is None):
                yield number, line, cells

    def parse(self, block: RawBlock) -> Records:
        own = list(self._numbered_cells(block))
        problems: dict[int, Problem] = {}
        columns: list[list[str | None]] = [[] for _ in self._places]
        least = max(self._places)
        for row, (_, _, cells) in enumerate(own):
            # With more or fewer cells than the first line, what is put behind a line would stand in another column.
            if isinstance(cells, str):
                problems[row] = BAD_RECORD, cells
            elif self.fields.whole and len(cells) != self._width:
                problems[row] = BAD_RECORD, _counted(cells, self._width)
            elif len(cells) <= least:
                problems[row] = BAD_RECORD, _no_cell(cells, least)
            for column, at in zip(columns, self._places, strict=True):
                column.append(None if row in problems else cells[at])
        values = dict(zip(self._columns, columns, strict=True))
        strings = [] if self.fields.text is None else values[self.fields.text]
        texts = [None if text is None else text.encode("utf-8", "surrogateescape") for text in strings]
        numbers, lines = np.array([one[0] for one in own], np.int64), [one[1] for one in own]
        return Records(self.source.name, numbers, Strings.of(texts), values, problems, lines, names=self._names)

    def rows(self) -> Iterator[Row]:
        names: list[str] = []
        for block in line_blocks(self.source, BLOCK_BYTES, end_of=self._last_record if self._quotes else last_newline):
            self._names = None
            for number, line, cells in self._numbered_cells(block):
                if (at := find_problem(line)[0]) >= 0:
                    raise self.bad(number, f"{what_is_wrong(line, at)}: convert the file")
                if isinstance(cells, str):
                    raise self.bad(number, cells)
                if not any(cells):
                    continue
                if not names:
                    names = self._header([cell.strip() for cell in cells], number)
                elif len(cells) != len(names):
                    raise self.bad(number, _counted(cells, len(names)))
                else:
                    yield Row(number, dict(zip(names, cells, strict=True)))

    def _header(self, names: list[str], number: int) -> list[str]:
        odd = next((name for i, name in enumerate(names) if not name or name in names[:i]), None)
        if odd is not None:
            what = f"the column {odd!r} occurs twice" if odd else "a column has no name"
            raise self.bad(number, f"{what}; the first line names the columns, each once")
        return names


def _counted(cells: Sequence[str], wanted: int) -> str:
    return f"{len(cells)} column{'s' * (len(cells) != 1)}, where the first line has {wanted}"


def _no_cell(cells: Sequence[str], at: int) -> str:
    return f"has {len(cells)} column{'s' * (len(cells) > 1)}, so no column {at + 1}"


def column_number(name: str) -> int | None:
    """Return the place, from 0, of a column that is named by its number; None for another name."""
    return int(name) - 1 if name.isascii() and name.isdigit() and len(name) < 10 and int(name) > 0 else None


class Writer(PackedLines):
    """Writes records as they were, with the cells of their scores behind their own; names where there were names."""

    def __init__(self, path: str, form: Format) -> None:
        super().__init__(path, form)
        (self._separator, self._quotes), self._is_empty = _DIALECTS[form], True

    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> None:
        """Write lines; see `RecordWriter`."""
        records = scored.records
        parts = []
        if self._is_empty and records.names is not None:
            parts = [records.names, self._joined([*scored.columns])]
        self._is_empty = False
        texts = (json_values(values, rows) for values in scored.columns.values())
        for row, *values in zip(rows.tolist(), *texts, strict=True):
            cells = [text.strip('"').replace("null", "") for text in values]  # of names, which have no quotes either
            parts += records.raw[row], self._joined(cells)
        self.put(parts)

    def _joined(self, cells: Sequence[str]) -> bytes:
        # What stands behind a record: cells, and the end of the line.
        odd = f'{self._separator}"\r\n' if self._quotes else ""
        quoted = ('"' + cell.replace('"', '""') + '"' if any(sign in cell for sign in odd) else cell for cell in cells)
        return "".join(self._separator + cell for cell in quoted).encode() + b"\n"
