"""What the fields of a result say of themselves: a title, how they are written, and when a narrow screen drops them."""

# Plain values, the rows of data frames and the tables of `report` follow from it. A field says it where it is declared:
# `bits: float = field(metadata=column("bits in all", 0, drop=2))`. One that is too long to be listed, such as all rows of a
# text, has `repr=False`; properties that plain values have as well are named in `STATED` of the class.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from os import PathLike, fspath
from typing import Any, Literal, NamedTuple, cast

Form = Literal[
    "number", "signed", "fixed", "percent", "change", "count", "p", "times", "deviation", "probability", "rank", "places"
]
"""How a number is written: see `report.formats.FORMS`."""


class ResultColumn(NamedTuple):
    """A column of the tables that show rows of one kind."""

    title: str
    digits: int = 4
    form: Form = "number"  # of numbers and of the ends of intervals; strings stand as they are
    drop: int = 0  # when it goes where the terminal is too narrow: 1 goes first, 0 stays
    unit: str = ""  # where the title does not say it
    scale: float = 1.0  # what numbers are shown times, such as 100 for per cent
    optional: bool = False  # it is there only where a row has a value other than 0 and None


def column(title: str, digits: int = 4, form: Form = "number", **more: Any) -> dict[str, ResultColumn]:
    """Return the metadata of a field of a dataclass that is a column of tables; `more` are parts of a `ResultColumn`."""
    return {"column": ResultColumn(title, digits, form, **more)}


def columns_of(kind: Any) -> dict[str, ResultColumn]:
    """Return the columns of a kind of rows, in order, by the names of their fields."""
    return {one.name: one.metadata["column"] for one in fields(kind) if "column" in one.metadata}


def plain_values(value: Any) -> Any:
    """Return a result as dicts, tuples and lists of plain values, full precision; infinities stay floats."""
    if is_dataclass(value):
        names = [one.name for one in fields(value) if one.repr]
        return {name: plain_values(getattr(value, name)) for name in (*names, *getattr(value, "STATED", ()))}
    if isinstance(value, tuple):
        return tuple(map(plain_values, value))
    if isinstance(value, list):
        return list(map(plain_values, value))
    if isinstance(value, Mapping):
        return {key: plain_values(item) for key, item in value.items()}
    if isinstance(value, PathLike):
        return fspath(value)
    return float(value) if isinstance(value, float) else value  # a `LowerBound` becomes a bare number


def flat_row(value: Any) -> dict[str, Any]:
    """Return a row of a data frame: the plain fields, and of `interval` its ends and its unit, each a column."""
    row = plain_values(value)
    if "interval" in row:
        del row["interval"]
        row |= interval_columns(value.interval)
    return cast("dict[str, Any]", row)


def interval_columns(interval: Any) -> dict[str, float | str | None]:
    """Return an `Interval`, or None, as columns of a data frame: its ends, and what it takes as independent."""
    return {f"interval_{part}": getattr(interval, part, None) for part in ("low", "high", "unit")}
