"""What a report is made of: blocks that hold data (floats, strings), in the order of reading. A document is a tuple of them.

One builder for each result makes the blocks (`report.evaluations.blocks`, ...); how they look is in the renderers only
(`report.terminal`). Every string may come from a file, a model or a server: renderers escape all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from lmgauge.numerics.intervals import Interval
    from lmgauge.tasks.alignment import Alignment

Level = Literal["good", "bad", "unknown"]
Form = Literal[
    "number", "signed", "fixed", "percent", "change", "count", "p", "times", "deviation", "probability", "rank", "places"
]
"""How a number is written: see `report.formats.FORMS`."""


@dataclass(frozen=True)
class Number:
    """A number and the rule by which it is written.

    Attributes:
        value: None where there is none; a fraction for `percent`, a ratio for `change`.
        digits: after the point.
        form: the rule.
        bound: the number is a lower bound.
        significant: the number is a p-value below the level of the test.
    """

    value: float | None
    digits: int = 4
    form: Form = "number"
    bound: bool = False
    significant: bool = False


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
    """A piece of text, the token that is meant in it, and what each token weighs.

    Attributes:
        parts: tokens (or longer pieces) that join to the text.
        meant: index of the token that is meant; None: the whole text.
        weights: one for each part, such as its bits; empty where they are not known.
    """

    parts: tuple[str, ...]
    meant: int | None = None
    weights: tuple[float, ...] = ()


Cell = str | Number | Range | Mark | Bar | Tokens


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: its head.
        cells: one for each row.
        drop: the priority to go where there is no room: 1 goes first, 0 never.
        unit: of its numbers, where the title does not say it.
        align: to which side; numbers are right-aligned.
        wraps: long text continues on the next line instead of being cut (columns to the left).
        note: what a reader must know of it.
    """

    title: str
    cells: Sequence[Cell]
    drop: int = 0
    unit: str = ""
    align: Literal["left", "right"] = "right"
    wraps: bool = False
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Columns of equal length; `bold` are the rows to set off. A table without rows is not shown."""

    columns: tuple[Column, ...]
    title: str = ""
    bold: tuple[int, ...] = ()
    footnotes: tuple[str, ...] = ()

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        """The cells, row by row."""
        return list(zip(*(column.cells for column in self.columns), strict=True))


@dataclass(frozen=True)
class Heading:
    """What the blocks below it are about."""

    text: str


@dataclass(frozen=True)
class Verdict:
    """The answer, in a sentence."""

    level: Level
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph, or a note: what a reader must know beside the numbers. `indent` is in characters."""

    text: str
    note: bool = False
    indent: int = 0


@dataclass(frozen=True)
class Lines:
    """Names and values; a value of several lines is a tuple."""

    pairs: tuple[tuple[str, str | tuple[str, ...]], ...]


@dataclass(frozen=True)
class Series:
    """A line of a chart.

    Attributes:
        name: in the legend.
        x: numbers, or the names of classes in their order.
        y: one for each x; None where it is not known.
        low, high: ends of the band around y; empty where there is none.
    """

    name: str
    x: tuple[float | str, ...]
    y: tuple[float | None, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class ChartData:
    """What a page draws; its numbers are in a table beside it, so that a terminal shows nothing more."""

    title: str
    x_title: str
    y_title: str
    y_unit: str
    series: tuple[Series, ...]
    x_unit: str = ""


@dataclass(frozen=True)
class Aligned:
    """A transcript under its reference, unit by unit."""

    alignment: Alignment


@dataclass(frozen=True)
class Signature:
    """The line that names every choice that moves the numbers; never broken, so that it can be copied."""

    text: str


Block = Heading | Verdict | Table | ChartData | Lines | Text | Tokens | Aligned | Signature
Document = tuple[Block, ...]


def labels(title: str, cells: Sequence[str], *, wraps: bool = False, drop: int = 0) -> Column:
    """Return a column of text, to the left.

    >>> labels("model", ["kn5"]).align
    'left'
    """
    return Column(title, tuple(cells), drop=drop, align="left", wraps=wraps)


def numbers(
    title: str, values: Sequence[float | None], digits: int = 4, form: Form = "number", *, drop: int = 0, unit: str = ""
) -> Column:
    """Return a column of numbers that are all written alike.

    >>> numbers("events", [9, 10], form="count").cells[1].value
    10
    """
    return Column(title, tuple(Number(value, digits, form) for value in values), drop=drop, unit=unit)


def between(
    ends: Interval | tuple[float, float] | None, digits: int = 4, form: Form = "number", scale: float = 1.0
) -> Number | Range:
    """Return an interval, its ends times `scale`, as a cell; a dash where there is none, or where all of it is infinite.

    >>> between((0.5, 1.5), 1, scale=100).high
    150.0
    """
    low, high = ends if isinstance(ends, tuple) else (math.nan, math.nan) if ends is None else (ends.low, ends.high)
    return Range(scale * low, scale * high, digits, form) if math.isfinite(low) else Number(None)


def notes(texts: Iterable[str]) -> Document:
    """Return a note for each text."""
    return tuple(Text(text, note=True) for text in texts)
