"""Blocks in a terminal or as a string (`NO_COLOR` is respected)."""

# Where standard output is a pipe or a file, `show` writes rows for programs (`report.pipe`); `FORCE_COLOR` asks for what a
# terminal shows.

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, assert_never

from lmgauge.base.escaping import readable
from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted, in_column
from lmgauge.report.tsv_renderer import as_rows, marks

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text as Line

_GAP = 3
# A column of text gives way to the others down to the first width, and, where nothing else can go, to the second.
_TEXT_WIDTH, _NARROWEST = 24, 6
_TITLE_WIDTH, _LONGEST_TITLE = 16, 48
_BAR_WIDTH = 16
_EIGHTHS = " ▏▎▍▌▋▊▉"
_INDENT = 4
_MOST_NOTES = 2
_AROUND = 36
_COLORS = {"good": "green", "bad": "bold red", "unknown": "yellow", "fact": "bold"}


def show(document: Iterable[doc.Block], *, whole: bool = True, signatures: bool = True) -> None:
    """Print a document on standard output; what a narrow terminal has no room for is named."""
    # A pipe gets rows with a tab between cells, and all columns: see `report.pipe`.
    # document: blocks, in the order of reading; whole: all notes and examples.
    out = _terminal()
    notes, examples = (sys.maxsize, sys.maxsize) if whole else (_MOST_NOTES, 1)
    document = brief(document, notes=notes, signatures=whole or signatures, examples=examples)
    parts = _Renderer(out).rendered(document) if out is not None else [as_rows(document)]
    for text in parts:
        sys.stdout.write(text)


def brief(document: Iterable[doc.Block], *, notes: int, signatures: bool, examples: int = 1) -> Iterator[doc.Block]:
    """Yield what is printed: the first notes, each once, the first examples of each kind, signatures or none."""
    # Builders put first what changes how a number may be read.
    shown: dict[str, None] = {}
    for block in document:
        match block:
            case doc.Signature() if not signatures:
                pass
            case doc.Text(text, note=True, indent=0):
                if text not in shown and len(shown) < notes:
                    yield block
                shown[text] = None
            case doc.Gallery(parts):
                yield doc.Gallery(tuple(replace(quotes, items=quotes.items[:examples]) for quotes in parts))
            case _:
                yield block
    if len(shown) > notes:
        yield doc.Text(f"{counted(len(shown) - notes, 'more note')}: -v", note=True)


def _terminal() -> Console | None:
    # Standard output as a terminal; None where it is a pipe or a file, mostly known without the cost of rich.
    if not (sys.stdout.isatty() or {"FORCE_COLOR", "TTY_COMPATIBLE"} & set(os.environ)):
        return None
    from rich.console import Console

    out = Console()
    return out if out.is_terminal else None


def as_text(document: Iterable[doc.Block], width: int = 100) -> str:
    """Return a document as plain text without colors, as `str(result)` shows it; no line end at its end."""
    # document: blocks, in the order of reading.
    from rich.console import Console

    out = Console(width=width, color_system=None)
    document = brief(document, notes=sys.maxsize, signatures=True)
    return "".join(_Renderer(out).rendered(document)).rstrip("\n")


class _Renderer:
    """Turns blocks into text for a console."""

    # All strings of a document become lines in `_line`, which escapes them.

    def __init__(self, out: Console) -> None:
        self._out, self._width = out, out.width

    def rendered(self, document: Iterable[doc.Block]) -> Iterator[str]:
        before: doc.Block | None = None
        for block in document:
            if lines := [self._written(line) for line in self._lines(block)]:
                if before is not None and _apart(before, block):
                    lines.insert(0, "")
                yield "\n".join(lines) + "\n"
                before = block

    def _written(self, line: Line) -> str:
        # Line as the terminal gets it. rich is slow: only lines with a style take the way through it.
        if self._out.color_system is None or not (line.style or line.spans):
            return line.plain
        with self._out.capture() as capture:
            self._out.print(line, soft_wrap=True, end="")
        return capture.get()

    def _lines(self, block: doc.Block) -> Iterator[Line]:
        # Lines of a block as they are to be printed; charts, ladders and passages are for pages and have none.
        match block:
            case doc.Heading(text):
                yield from self._broken(text, "bold")
            case doc.Verdict(level, text):
                yield from self._broken(text, f"bold {_COLORS[level]}")
            case doc.Text(text, note, indent):
                for part in self._broken(text, "dim" if note else "", self._width - indent):
                    yield _line(" " * indent).append_text(part)
            case doc.Signature(text):
                yield _line(text, "cyan")  # never broken: it is to be copied
            case doc.Lines(pairs):
                yield from self._pairs(pairs)
            case doc.Tokens():
                yield _tokens(block, self._width, marks([block]))
            case doc.Aligned(alignment):
                for row in alignment.lines(self._width):
                    yield from map(_line, row)
            case doc.Table():
                if block.rows:
                    yield from self._table(block)
            case doc.Gallery(parts):
                for quotes in parts:
                    yield from self._quotes(quotes)
            case doc.ChartData() | doc.Ladder() | doc.Passages() | doc.Outputs():
                pass
            case _:
                assert_never(block)

    def _broken(self, text: str, style: str = "", width: int | None = None) -> Sequence[Line]:
        line = _line(text, style)
        width = max(_NARROWEST, width or self._width)
        if _size(line.plain) <= width:
            return [line]
        return [_padded(part, 0) for part in line.wrap(self._out, width, overflow="fold")]

    def _pairs(self, pairs: Iterable[tuple[str, str | tuple[str, ...]]]) -> Iterator[Line]:
        shown = [(readable(name), (value,) if isinstance(value, str) else value) for name, value in pairs]
        widest = min(max((_size(name) for name, _ in shown), default=0), self._width // 2)
        for name, values in shown:
            lead = _cut(name, widest)
            for part in (part for value in values for part in self._broken(value, "", self._width - widest - 2)):
                yield _padded(_line("").append_text(_line(lead, "bold")), widest + 2).append_text(part)
                lead = ""

    def _quotes(self, quotes: doc.Quotes) -> Iterator[Line]:
        yield from self._broken(quotes.title, "bold")
        for about, text in quotes.items:
            yield _line(_cut(readable(about), self._width), "dim")
            yield _line(" " * _INDENT).append(_cut(readable(text), self._width - _INDENT, "end"))

    # --- tables -----------------------------------------------------------------------------------------------

    def _table(self, table: doc.Table) -> Iterator[Line]:
        if table.title:
            yield from self._broken(table.title, "bold")
        shown = _Layout(table.columns, self._width)
        if any(column.title for column in table.columns):
            yield from self._row(shown, [_line(_title(column), "bold") for column in shown.columns], titles=True)
            yield _line("─" * (sum(shown.widths) + _GAP * (len(shown.widths) - 1)))
        signs = marks([cell for column in shown.columns for cell in column.cells])
        for i in range(len(table.rows)):
            style = "bold" if i in table.bold else ""
            cells = zip(shown.columns, shown.widths, strict=True)
            yield from self._row(shown, [_cell(column.cells[i], width, signs, style) for column, width in cells])
        for column in table.columns:
            if column.note:
                yield from self._broken(f"{column.title}: {column.note}", "dim")
        for note in table.footnotes:
            yield from self._broken(note, "dim")
        if shown.dropped:
            dropped = "; ".join(_cut(title, _LONGEST_TITLE) for title in shown.dropped)
            yield from self._broken(f"not shown at this width: {dropped}; see --json or a wider terminal", "dim")

    def _row(self, shown: _Layout, cells: Sequence[Line], *, titles: bool = False) -> Iterator[Line]:
        # Lines of a row: titles, and cells that wrap, have several.
        broken: list[Sequence[Line]] = []
        for column, width, cell in zip(shown.columns, shown.widths, cells, strict=True):
            if _size(cell.plain) <= width:
                broken.append([cell])
            elif titles or column.wraps:
                broken.append(list(cell.wrap(self._out, width, overflow="fold")))
            else:
                broken.append([_line(_cut(cell.plain, width), cell.style)])
        for parts in zip_longest(*broken, fillvalue=_line("")):
            line = _line("")
            for column, width, part in zip(shown.columns, shown.widths, parts, strict=True):
                line.append_text(_padded(part, width, column.align)).append(" " * _GAP)
            line.rstrip()
            yield line


class _Layout:
    """Which columns of a table there is room for, and how wide each is."""

    # Where there is too little, titles are broken first, then columns go by their priority, then text is cut or broken.

    def __init__(self, columns: Sequence[doc.Column], width: int) -> None:
        self.columns = list(columns)
        self._cells = {id(column): max(map(_natural, column.cells)) for column in columns}
        self._title_width = max(_size(_title(column)) for column in columns)
        if self._needed() > width:
            self._title_width = _TITLE_WIDTH
        for column in sorted((column for column in columns if column.drop), key=lambda column: column.drop):
            if self._needed() <= width:
                break
            self.columns = [other for other in self.columns if other is not column]
        left = [id(column) for column in self.columns]
        self.dropped = [readable(column.title) for column in columns if column.title and id(column) not in left]
        self.widths = self._fitted(width)

    def _wide(self, column: doc.Column) -> int:
        cells = self._cells[id(column)]
        return max(cells, min(_size(_title(column)), self._title_width))

    def _needed(self) -> int:
        widths = [min(self._wide(c), _TEXT_WIDTH) if _gives_way(c) else self._wide(c) for c in self.columns]
        return sum(widths) + _GAP * (len(widths) - 1)

    def _fitted(self, width: int) -> list[int]:
        # Width of each column; text gives way, the widest first, what can be broken before what is cut.
        widths = [self._wide(column) for column in self.columns]
        for _ in range(sum(widths) + _GAP * (len(widths) - 1) - width):
            wide = [i for i, column in enumerate(self.columns) if _gives_way(column) and widths[i] > _NARROWEST]
            if not wide:
                break
            widths[max(wide, key=lambda i: (widths[i] > _TEXT_WIDTH, self.columns[i].wraps, widths[i]))] -= 1
        return widths


def _gives_way(column: doc.Column) -> bool:
    return column.align == "left" and isinstance(column.cells[0], str | doc.Tokens)


def _apart(before: doc.Block, block: doc.Block) -> bool:
    if isinstance(before, doc.Heading):
        return False
    return isinstance(before, doc.Table | doc.Lines | doc.Aligned) or isinstance(block, doc.Heading | doc.Table)


def _line(text: str, style: Any = "") -> Line:
    # Text as a line: the one place where strings of a document are escaped.
    from rich.text import Text as Line

    return Line(readable(text), style)


def _padded(line: Line, width: int, align: Literal["left", "right"] = "left") -> Line:
    line = line.copy()
    line.rstrip()
    space = " " * (width - _size(line.plain))
    return line.append(space) if align == "left" else _line(space).append_text(line)


def _title(column: doc.Column) -> str:
    return _cut(readable(column.title), _LONGEST_TITLE) + (f", {readable(column.unit)}" if column.unit else "")


def _natural(cell: doc.Cell) -> int:
    if isinstance(cell, doc.Bar):
        return _BAR_WIDTH
    if isinstance(cell, doc.Tokens):
        return _size(readable("".join(cell.parts))) + 4
    return _size(_cell(cell, 0, ("", ""), "").plain)


def _cell(cell: doc.Cell, width: int, signs: tuple[str, str], style: str) -> Line:
    match cell:
        case str():
            return _line(cell, style)
        case doc.Mark(text, level):
            return _line(text, _COLORS[level])
        case doc.Bar(share):
            eighths = round(8 * _BAR_WIDTH * min(1.0, max(0.0, share)))
            return _line("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip())
        case doc.Tokens():
            return _tokens(cell, width, signs)
    return _line(in_column(cell), style)


def _tokens(cell: doc.Tokens, width: int, signs: tuple[str, str]) -> Line:
    # Token that is meant between marks, and as much of what stands around it as there is room for.
    if cell.meant is None:
        return _line(_cut("".join(cell.parts), width, "end"))
    before, meant = "".join(cell.parts[: cell.meant]), cell.parts[cell.meant]
    # The span of a word takes the white space before it, which is not what is meant.
    text = meant.lstrip(" ") or meant
    before = readable(before + meant[: len(meant) - len(text)])
    after = readable("".join(cell.parts[cell.meant + 1 :]))
    room = width - sum(map(len, signs))
    text = _cut(readable(text), max(_NARROWEST, room), "end")
    free = max(0, room - _size(text))
    after = _cut(after, min(_AROUND, max(free // 2, free - _size(before))), "end")
    before = _cut(before, min(_AROUND, free - _size(after)), "start")
    return _line("").append(before, "dim").append(signs[0] + text + signs[1], "bold red").append(after, "dim")


def _size(text: str) -> int:
    # Columns of a terminal that a text takes: two for each wide character.
    from rich.cells import cell_len

    return cell_len(text)


def _cut(text: str, room: int, where: Literal["start", "middle", "end"] = "middle") -> str:
    if _size(text) <= room:
        return text
    sign = readable("…")
    keep = room - len(sign)
    head = {"start": 0, "middle": (keep + 1) // 2, "end": keep}[where]
    first, last = 0, len(text)
    while first < len(text) and _size(text[: first + 1]) <= head:
        first += 1
    while last > first and _size(text[last - 1 :]) <= keep - head:
        last -= 1
    return text[:first] + sign + text[last:] if keep > 0 else ""
