"""Columns of tab-separated files as segments: one record per line, columns by number or by the names in the first line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lmgauge.errors import InputError
from lmgauge.text.readers import ReadingPass, clean_blocks, name_one, parse_lines
from lmgauge.text.segments import Segments
from lmgauge.text.streams import Source


def read_tsv(source: Source, reading: ReadingPass) -> Iterator[Segments]:
    """Yield one column of a TSV file; nothing is quoted or escaped in it, a blank line is an empty first column."""
    # A column that is named as a number counts from 1, and the first line is a record like the others; any other name is
    # looked up in the first line, which is a header then.
    wanted = [("field", reading.options.field), *reading.label_fields.items()]
    columns = [column_number(name) for _, name in wanted]
    header = None in columns
    for lines, _ in clean_blocks(source, reading):
        first = 0
        if header:
            names = lines.text(0).decode().split("\t")
            columns = [place_of(names, *one, source) if at is None else at for one, at in zip(wanted, columns, strict=True)]
            header, first = False, 1
        yield from parse_lines(lines, partial(_cells, columns, source), reading, first)


def _cells(columns: list[int | None], source: Source, line: bytes, number: int) -> tuple[list[bytes], list[str]]:
    cells = line.split(b"\t")
    text, *labels = [cell_at(cells, at or 0, source, number) for at in columns]
    return [text], [label.decode() for label in labels]


def column_number(name: str) -> int | None:
    """Return the place, from 0, of a column that is named by its number; None for another name."""
    return int(name) - 1 if name.isascii() and name.isdigit() and len(name) < 10 and int(name) > 0 else None


def place_of(names: list[str], label: str, wanted: str, source: Source) -> int:
    """Return the place of a column among the names in the first line; the label is that of the option that names it."""
    if wanted in names:
        return names.index(wanted)
    header = ", ".join(repr(name[:40]) for name in names[:8])
    raise InputError(
        f"{source.name}: no column {wanted!r} in its first line, which has {header}: {name_one(label)} or, "
        f"in a file without header, the number of a column (1 to {len(names)})"
    )


def cell_at(columns: list[bytes], at: int, source: Source, line: int) -> bytes:
    """Return a cell of a line."""
    if at < len(columns):
        return columns[at]
    raise InputError(f"{source.name}:{line}: has {len(columns)} column{'s' * (len(columns) > 1)}, so no column {at + 1}")
