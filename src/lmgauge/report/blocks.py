"""What a report is made of: blocks of data (floats, strings), in the order of reading. A document is a tuple of them."""

# One builder for each result makes the blocks (`report.evaluations.blocks`, ...); how they look is in the renderers only
# (`report.terminal`). Every string may come from a file, a model or a server: renderers escape all of them.

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from lmgauge.base.result_list import Form as Form
from lmgauge.base.result_list import ResultColumn, columns_of

if TYPE_CHECKING:
    from lmgauge.evaluation.passages import Passage
    from lmgauge.numerics.intervals import Interval
    from lmgauge.tasks.alignment import Alignment
    from lmgauge.tasks.segment_examples import ShownSegment

_FEW_DIGITS = 3
Level = Literal["good", "bad", "unknown", "fact"]
"""Of a verdict; `fact` is none: a statement that is neither good nor bad."""


@dataclass(frozen=True)
class Number:
    """A number and the rule by which it is written."""

    # None where there is none; a fraction for `percent`, a ratio for `change`; a `LowerBound` is written as one
    value: float | None
    digits: int = 4
    form: Form = "number"
    significant: bool = False  # the number is a p-value below the level of the test


@dataclass(frozen=True)
class Range:
    """An interval, its ends written by the rule of a `Number`."""

    low: float
    high: float
    digits: int = 4
    form: Form = "number"


@dataclass(frozen=True)
class Mark:
    """A word that is a verdict, such as PASS."""

    text: str
    level: Level


@dataclass(frozen=True)
class Bar:
    """A bar that fills `share` (0 to 1) of its column."""

    share: float


@dataclass(frozen=True)
class Tokens:
    """A piece of text, and the token that is meant in it."""

    parts: tuple[str, ...]  # tokens (or longer pieces) that join to the text
    meant: int | None = None  # index of the token that is meant; None: the whole text


Cell = str | Number | Range | Mark | Bar | Tokens


@dataclass(frozen=True)
class Column:
    """A column of a table; its numbers are in one form, with at least three digits that count."""

    title: str
    cells: Sequence[Cell]
    drop: int = 0  # the priority to go where there is no room: 1 goes first, 0 never
    unit: str = ""  # of its numbers, where the title does not say it
    align: Literal["left", "right"] = "right"  # to which side; numbers are right-aligned
    wraps: bool = False  # long text continues on the next line instead of being cut (columns to the left)
    note: str = ""  # what a reader must know of it

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", in_one_form(self.cells))


def in_one_form(cells: Sequence[Cell]) -> Sequence[Cell]:
    """Return cells whose numbers have three digits that count where fewer than two would be shown (with few digits none).

    What decides is the smallest number, and of differences, or with few digits, the largest, as some are about zero.
    """
    sizes: dict[tuple[Form, int], list[float]] = {}
    for cell in cells:
        if isinstance(cell, Number | Range) and cell.form in ("number", "signed"):
            values = (cell.value,) if isinstance(cell, Number) else (cell.low, cell.high)
            known = [abs(float(value)) for value in values if value and math.isfinite(value)]
            sizes.setdefault((cell.form, cell.digits), []).extend(known)
    raised: dict[tuple[Form, int], int] = {}
    for kind, known in sizes.items():
        few = kind[1] < _FEW_DIGITS
        needed = 2 - math.floor(math.log10((max if few or kind[0] == "signed" else min)(known, default=100.0)))
        raised[kind] = needed if needed > kind[1] + 1 + few else kind[1]
    return [
        replace(cell, digits=raised.get((cell.form, cell.digits), cell.digits)) if isinstance(cell, Number | Range) else cell
        for cell in cells
    ]


@dataclass(frozen=True)
class Table:
    """Columns of equal length."""

    # A table without rows is not shown.

    columns: tuple[Column, ...]
    title: str = ""
    bold: tuple[int, ...] = ()
    footnotes: tuple[str, ...] = ()
    cut: str = ""  # the way to cut the text that the rows are slices of, labeled by the first column: rows lead to examples
    anchors: tuple[int, ...] = ()

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        """Return the cells, row by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))


@dataclass(frozen=True)
class Heading:
    """What the blocks below it are about."""

    text: str
    folded: bool = False  # a page hides what is below it, up to the next heading, until a reader opens it


@dataclass(frozen=True)
class Verdict:
    """The answer, in a sentence."""

    level: Level
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph, or a note: what a reader must know beside the numbers."""

    # `indent` is in characters.

    text: str
    note: bool = False
    indent: int = 0


@dataclass(frozen=True)
class Lines:
    """Names and values; a value of several lines is a tuple."""

    pairs: tuple[tuple[str, str | tuple[str, ...]], ...]


@dataclass(frozen=True)
class Series:
    """A line of a chart, or what one model (or system) has in it."""

    name: str
    x: tuple[float | str, ...]  # numbers, or the names of classes (or rows) in their order
    y: tuple[float | None, ...]  # one for each x; None where it is not known
    low: tuple[float | None, ...] = ()  # low, high: ends of the 95 % interval around y; empty where there is none
    high: tuple[float | None, ...] = ()
    names: tuple[str, ...] = ()  # of the points, where x does not name them


MOST_CHART_ROWS = 40
"""Rows of a chart; the table beside it has all."""
ChartKind = Literal["line", "intervals", "bars", "histogram", "scatter"]
"""How a chart is drawn.

`line`: y over x, with a band; `intervals`: a row for each x (a name), y and its interval along it; `bars`: the same with a
bar from 0; `histogram`: y things in the bin that begins at x (the last x ends the last bin, its y is None); `scatter`:
points.
"""


@dataclass(frozen=True)
class ChartData:
    """What a page draws; its numbers are in a table beside it, so that a terminal shows nothing more."""

    name: str  # a short one, for links, files and `result.chart(name)`: lower case, words joined by hyphens
    title: str
    x_title: str  # x_title, y_title: of what is along x and y of its series; with their units, if any
    y_title: str
    y_unit: str
    series: tuple[Series, ...]
    x_unit: str = ""
    kind: ChartKind = "line"
    better: Literal["", "lower", "higher"] = ""  # whether low or high values are good; empty where neither is
    # a value of y that a line is drawn at, such as that of the whole text; `rule_name` says what it is
    rule: float | None = None
    rule_name: str = ""
    diagonal: bool = False  # draw the line y = x
    log_x: bool = False
    log_y: bool = False
    cut: str = ""  # the way to cut the text that the x are slices of: each leads to its examples (see `Passages.cuts`)
    note: str = ""  # what a reader must know of it
    beside: int = 0  # series of the chart that it stands beside: rows are as high as there


@dataclass(frozen=True)
class Rung:
    """A step of a ladder: its name, the verdict on it, and why."""

    name: str
    mark: Mark
    text: str


@dataclass(frozen=True)
class Ladder:
    """Checks that stand on each other, the lowest first; for pages, as a table beside it has them all."""

    rungs: tuple[Rung, ...]


@dataclass(frozen=True)
class Passages:
    """Segments of the text with what their events cost, for pages: colored, with a legend and filters."""

    items: tuple[Passage, ...]  # the segments, in the order to be shown
    names: tuple[str, ...]  # of the runs; one, or two whose difference is shown
    cuts: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Aligned:
    """A transcript under its reference, unit by unit."""

    alignment: Alignment


@dataclass(frozen=True)
class Outputs:
    """Segments with what systems made of them, for pages: colored by what differs from the reference, with filters.

    Attributes:
        items: the segments, in the order to be shown.
        metric: name of the metric of their scores.
        aligned: show each output under the reference, unit by unit; else the reference once, and the outputs below it.
        percent: scores are ratios that people read as per cent.
    """

    items: tuple[ShownSegment, ...]
    metric: str
    aligned: bool
    percent: bool


@dataclass(frozen=True)
class Quotes:
    """Texts, each with a line on what it is; a terminal shows how each begins."""

    title: str
    items: tuple[tuple[str, str], ...]  # of each what it is, and the text


@dataclass(frozen=True)
class Gallery:
    """Quotes beside each other, as far as there is room."""

    parts: tuple[Quotes, ...]


@dataclass(frozen=True)
class Signature:
    """The line that names every choice that moves the numbers; never broken, so that it can be copied."""

    text: str


Block = (
    Heading
    | Verdict
    | Table
    | ChartData
    | Ladder
    | Passages
    | Lines
    | Text
    | Tokens
    | Aligned
    | Outputs
    | Gallery
    | Signature
)
Document = tuple[Block, ...]


def labels(title: str, cells: Sequence[str], *, wraps: bool = False, drop: int = 0) -> Column:
    """Return a column of text, to the left."""
    return Column(title, tuple(cells), drop=drop, align="left", wraps=wraps)


def numbers(
    title: str, values: Sequence[float | None], digits: int = 4, form: Form = "number", *, drop: int = 0, unit: str = ""
) -> Column:
    """Return a column of numbers that are all written alike."""
    return Column(title, tuple(Number(value, digits, form) for value in values), drop=drop, unit=unit)


def columns(rows: Sequence[Any], *names: str) -> tuple[Column, ...]:
    """Return the columns that rows, results of one kind (or None), say they have: all, or those of the fields named."""
    known = next((columns_of(row) for row in rows if row is not None), {})
    made: list[Column] = []
    for name in (names or known) if known else ():
        own, values = known[name], [getattr(row, name, None) for row in rows]
        if any(values) or not own.optional:
            cells = [_cell(value, own) for value in values]
            align: Literal["left", "right"] = "left" if isinstance(cells[0], str) else "right"
            made.append(Column(own.title, cells, own.drop, own.unit, align))
    return tuple(made)


def _cell(value: Any, own: ResultColumn) -> Cell:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, int | float):
        return Number(value, own.digits, own.form)
    return between(value, own.digits, own.form)


def between(
    ends: Interval | tuple[float, float] | None, digits: int = 4, form: Form = "number", scale: float = 1.0
) -> Number | Range:
    """Return an interval, its ends times `scale`, as a cell; a dash where there is none, or where all of it is infinite."""
    low, high = ends if isinstance(ends, tuple) else (math.nan, math.nan) if ends is None else (ends.low, ends.high)
    return Range(scale * low, scale * high, digits, form) if math.isfinite(low) else Number(None)


def series(
    name: str,
    x: Sequence[float | str],
    y: Sequence[float | None],
    ends: Sequence[Interval | tuple[float, float] | None] = (),
) -> Series:
    """Return a series of a chart, with intervals where there are any."""
    pairs = [between if isinstance(between, tuple) else between and (between.low, between.high) for between in ends]
    if not any(pairs):
        return Series(name, tuple(x), tuple(y))
    low, high = zip(*(pair or (None, None) for pair in pairs), strict=True)
    return Series(name, tuple(x), tuple(y), low, high)


def notes(texts: Iterable[str]) -> Document:
    """Return a note for each text."""
    return tuple(Text(text, note=True) for text in texts)


def signatures(lines: Iterable[str]) -> Document:
    """Return the signature of several results: the parts that all share, with * for others, then those of each.

    >>> [line.text for line in signatures(["ppl|n:3|model:a", "ppl|n:3|model:b"])]
    ['ppl|n:3|model:*', 'model:a', 'model:b']
    """
    each = [line.split("|") for line in dict.fromkeys(lines)]
    shared = [part for part in (each or [[]])[0] if all(part in parts for parts in each)]
    if len(each) > 1:
        form = [part if part in shared else f"{part.partition(':')[0]}:*" for part in each[0]]
        each = [form, *([part for part in parts if part not in shared] for parts in each)]
    return tuple(Signature("|".join(parts)) for parts in each)


def named(charts: Iterable[ChartData]) -> Iterator[tuple[str, ChartData]]:
    """Yield charts with names that are safe for files and links, each once."""
    taken: set[str] = set()
    for chart in charts:
        stem = re.sub(r"[^a-z0-9]+", "-", chart.name.lower()).strip("-")[:80] or "chart"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        yield name, chart


def differences(
    name: str, title: str, x_title: str, y_title: str, y_unit: str, series: Iterable[Series], **more: Any
) -> ChartData:
    """Return a chart of differences with their intervals; `more` are other fields of a `ChartData`."""
    usual: dict[str, Any] = {"kind": "intervals", "better": "lower", "rule": 0.0, "rule_name": "no difference"}
    return ChartData(name, title, x_title, y_title, y_unit, tuple(series), **(usual | more))
