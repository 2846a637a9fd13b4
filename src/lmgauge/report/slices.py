"""Slices of one or two models, and stretches of text that stand out, as people read them: shared by commands."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal, NamedTuple

from lmgauge.evaluation.diagnosis.results import finite_perplexity, share_of_bits, slice_perplexity
from lmgauge.evaluation.slicing.examples import Example
from lmgauge.evaluation.slicing.sums import Slice, Slices
from lmgauge.report.terminal import console, number, p_value, readable, sign, signed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


class Column(NamedTuple):
    """A column of a table: its heading and cells, how soon it goes where there is no room (0: never), to which side."""

    heading: str
    cells: Sequence[str]
    goes: int = 0
    justify: Literal["left", "right"] = "right"


_LONGEST_NAME = 16
_PLURAL = {"byte": "bytes", "event": "events"}
_AROUND = 36
_NARROWEST = 6


def print_slices(slices: Slices, names: Sequence[str]) -> None:
    """A row a slice.

    For one model events, bytes, share of the bits, bits per byte and perplexity; for two bytes, bits per byte of each,
    their difference with its 95 % interval and p-value.

    Args:
        slices: of as many models as there are names.
        names: of the models.
    """
    if not slices.rows:
        return
    columns = _of_one(slices) if len(names) == 1 else _of_two(slices, names)
    title = f"by {slices.name}" if len(names) == 1 else f"by {slices.name}, bits per {slices.unit}"
    print_table(title, [readable(row.label) for row in slices.rows], columns)


def _of_one(slices: Slices) -> list[Column]:
    rows = slices.rows
    shares = share_of_bits(slices)
    columns = [Column("events", [f"{row.ranges:,}" for row in rows], 1)]
    if slices.unit == "byte":
        columns.append(Column("bytes", [f"{row.size:,}" for row in rows], 2))
    if None not in shares:
        columns.append(Column("share of bits", [f"{100 * (share or 0):.1f} %" for share in shares]))
    if slices.unit == "byte":
        columns.append(Column("bits/byte", [number(row.bits_per_unit[0], 3) for row in rows]))
    columns.append(Column("perplexity", [number(slice_perplexity(row), 1) for row in rows], 3))
    if any(row.zeros[0] for row in rows):
        columns.append(Column("p = 0", [f"{row.zeros[0]:,}" for row in rows]))
        columns.append(Column("ppl without", [number(finite_perplexity(row), 1) for row in rows]))
    return columns


def _of_two(slices: Slices, names: Sequence[str]) -> list[Column]:
    rows = slices.rows
    unit = slices.unit
    shown = [_shortened(name) for name in names]
    return [
        Column(_PLURAL.get(unit, unit), [f"{row.size:,}" for row in rows], 1),
        Column(shown[0], [number(row.bits_per_unit[0], 3) for row in rows]),
        Column(shown[1], [number(row.bits_per_unit[1], 3) for row in rows]),
        Column("difference", [signed(row.difference, 3) for row in rows]),
        Column("95 % interval", [_interval(row) for row in rows], 2),
        Column("p", [p_value(row.p_value) for row in rows], 3),
    ]


def _interval(row: Slice) -> str:
    if row.interval is None:
        return number(None)
    return f"{signed(row.interval[0], 3)} .. {signed(row.interval[1], 3)}"


def _shortened(name: str) -> str:
    """A name as a heading: its end, which tells runs of one folder apart."""
    name = readable(name)
    return name if len(name) <= _LONGEST_NAME else sign("…", "..") + name[1 - _LONGEST_NAME :]


def print_table(
    title: str,
    labels: Sequence[str],
    columns: Sequence[Column],
    *,
    heading: str = "",
    bold: Collection[int] = (),
) -> None:
    """A row a label; where it is too wide, columns go, the least telling first.

    Args:
        title: above the table.
        labels: the first column, to the left; long ones are cut where there is no other way.
        columns: the others.
        heading: of the first column.
        bold: numbers of the rows to set off.
    """
    from rich.text import Text

    out = console()
    out.print(Text(title, style="bold"))
    table, gone = _fitting_table(labels, columns, out.width, heading, bold)
    out.print(table)
    if gone:
        out.print(Text(f"no room for: {', '.join(column.heading for column in gone)}; --json has all", style="dim"))
    out.print()


def _fitting_table(
    labels: Sequence[str], columns: Sequence[Column], width: int, heading: str, bold: Collection[int]
) -> tuple[Table, list[Column]]:
    """The table, and the columns there was no room for."""
    kept = list(columns)
    table = _table(heading, labels, kept, bold)
    for column in sorted((c for c in columns if c.goes), key=lambda c: c.goes):
        if _width(table) <= width:
            break
        kept.remove(column)
        table = _table(heading, labels, kept, bold)
    missing = _width(table) - width
    if missing > 0:
        longest = max(map(_cells, [heading, *labels]))
        table.columns[0].max_width = max(_NARROWEST, longest - missing)
    return table, [column for column in columns if column not in kept]


def _table(heading: str, labels: Sequence[str], columns: Sequence[Column], bold: Collection[int]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(heading, no_wrap=True, overflow="ellipsis")
    for column in columns:
        table.add_column(Text(column.heading), justify=column.justify, no_wrap=True)
    for i, label in enumerate(labels):
        table.add_row(Text(label), *(Text(column.cells[i]) for column in columns), style="bold" if i in bold else None)
    return table


def _width(table: Table) -> int:
    from rich.console import Console
    from rich.measure import Measurement

    wide = Console(width=10_000)
    return Measurement.get(wide, wide.options, table).maximum


def print_examples(title: str, examples: Sequence[Example], names: Sequence[str]) -> None:
    """A line a stretch of text: where it is, what it costs, and the stretch in what stands around it.

    Args:
        title: above the list.
        examples: in the order to be shown; nothing is printed if there are none.
        names: of the models; for two, the bits of each and the difference are shown; for one its bits, and in brackets
            what the stretch stands out by, if that is something else.
    """
    if not examples:
        return
    from rich.text import Text

    out = console()
    out.print(Text(title, style="bold"))
    places = [f"{readable(PurePath(e.source).name or e.source)}:{e.line}" for e in examples]
    costs = [_cost(e, len(names)) for e in examples]
    left, middle = max(map(len, places)), max(map(len, costs))
    left = min(left, 24)
    for example, place, cost in zip(examples, places, costs, strict=True):
        line = Text(f"  {cost:>{middle}}  ")
        shown = place if len(place) <= left else sign("…", "..") + place[1 - left :]
        line.append(f"{shown:<{left}}  ", style="dim")
        line.append_text(_in_context(example, out, out.width - len(line)))
        out.print(line, no_wrap=True, crop=False, overflow="ignore")
    out.print()


def _cost(example: Example, models: int) -> str:
    if models == 1:
        bits = number(example.bits[0], 1)
        plain = example.value == example.bits[0] or math.isinf(example.bits[0])
        return bits if plain else f"{bits} ({signed(example.value, 1)})"
    return f"{number(example.bits[0], 1):>7}  {number(example.bits[1], 1):>7}  {signed(example.value, 1):>7}"


def _in_context(example: Example, out: Console, room: int) -> Text:
    """The stretch, in marks or in colour, and as much of its surroundings as there is room for."""
    from rich.text import Text

    marks = ("", "") if out.is_terminal and not out.no_color else (sign("»", "["), sign("«", "]"))
    # The span of a word takes the white space before it, which is not what stands out.
    text = example.text.lstrip(" ") or example.text
    surroundings = example.before + example.text[: len(example.text) - len(text)]
    alone = not example.before and not example.after
    if alone:
        marks = ("", "")
    stretch = _cut(readable(text), max(_NARROWEST, room - sum(map(len, marks))), keep_end=False)
    free = max(0, room - _cells(stretch) - sum(map(len, marks)))
    after = _cut(
        readable(example.after), min(_AROUND, max(free // 2, free - _cells(readable(surroundings)))), keep_end=False
    )
    before = _cut(readable(surroundings), min(_AROUND, free - _cells(after)), keep_end=True)
    line = Text()
    line.append(before, style="dim")
    line.append(marks[0] + stretch + marks[1], style="" if alone else "bold red")
    line.append(after, style="dim")
    return line


def _cells(text: str) -> int:
    """Columns of a terminal that a text takes: two for each wide character."""
    from rich.cells import cell_len

    return cell_len(text)


def _cut(text: str, room: int, *, keep_end: bool) -> str:
    """As much of a text as fits, with a sign where something is missing."""
    if _cells(text) <= room:
        return text
    mark = sign("…", "..")
    kept = text
    while kept and _cells(kept) + len(mark) > room:
        kept = kept[1:] if keep_end else kept[:-1]
    if not kept:
        return ""
    return mark + kept if keep_end else kept + mark
