"""Results that have rows, and become data frames and files of rows; several in order. pandas is imported here only."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, cast, overload

from lmgauge.base.display import Displayable
from lmgauge.base.errors import UsageError, needing
from lmgauge.base.escaping import for_output
from lmgauge.base.files import writing_or_printing
from lmgauge.base.json_text import plain

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# -----------------------------------------------------------------------------------------------------------------------
# What the fields of a result say of themselves: a title, how they are written, and when a narrow screen drops them.
# Plain values, the rows of data frames and the tables of `report` follow from it. A field says it where it is declared:
# `bits: float = field(metadata=column("bits in all", 0, drop=2))`. One that is too long to be listed, such as all rows of a
# text, has `repr=False`; properties that plain values have as well are named in `STATED` of the class.


Form = Literal[
    "number", "signed", "fixed", "percent", "change", "count", "p", "times", "deviation", "probability",
    "rank", "places", "figures",
]  # fmt: skip
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
    """Return a row of a data frame: the plain fields, and of each interval its ends and its unit, each a column."""
    row = plain_values(value)
    for name in [name for name in row if name.endswith("interval")]:
        del row[name]
        row |= interval_columns(getattr(value, name), name)
    return cast("dict[str, Any]", row)


def interval_columns(interval: Any, name: str = "interval") -> dict[str, float | str | None]:
    """Return an `Interval`, or None, as columns of a data frame: its ends, and what it takes as independent."""
    return {f"{name}_{part}": getattr(interval, part, None) for part in ("low", "high", "unit")}


T = TypeVar("T")


class Result(Displayable):
    """A result that is a dataclass: its fields, and what they say of themselves, are its plain values."""

    __slots__ = ()

    def to_dict(self) -> Any:
        """Return everything as plain values, full precision; infinities stay floats."""
        return plain_values(self)


class Tabled(Result):
    """A result that has rows, and becomes a data frame."""

    __slots__ = ()

    @abstractmethod
    def to_rows(self) -> list[dict[str, Any]]:
        """Return flat dicts, the rows of the data frame."""

    def to_pandas(self) -> pd.DataFrame:
        """Return `to_rows` as a data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return data_frame(self.to_rows())

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        import pyarrow as pa

        columns = self._columns()
        return columns if isinstance(columns, pa.Table) else pa.table(dict(columns))

    def write_rows(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a file.

        Args:
            path: a file ending in .parquet, .csv, .tsv or .jsonl; "-" is standard output, as TSV.

        Raises:
            OutputError: it cannot be written; nothing is left behind.
            UsageError: another ending.
        """
        write_table(os.fspath(path), self._columns())

    def _columns(self) -> Mapping[str, Sequence[Any]] | pa.Table:
        # What `to_arrow` gives and `write_rows` writes.
        rows = self.to_rows()
        return {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}


@dataclass(frozen=True, repr=False)
class ResultList(Tabled, Sequence[T], Generic[T]):
    """Results in order."""

    items: tuple[T, ...]

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def to_dict(self) -> Any:
        return [cast("Any", item).to_dict() for item in self.items]

    def _in_brief(self) -> str:
        return f"{len(self):,} item{'s' * (len(self) != 1)}"


def data_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows as a pandas data frame."""
    return cast("pd.DataFrame", pandas_module().DataFrame(list(rows)))


def pandas_module() -> Any:
    """Return the pandas library."""
    with needing("pandas", extra="pandas"):
        import pandas
    return pandas


ROW_FILES = (".parquet", ".csv", ".tsv", ".jsonl")
"""Endings of files for the rows of a result."""

_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})


Write = Callable[[Mapping[str, Sequence[Any]]], None]
"""Writes rows: of each column, by its name, the values [rows]; there may be more columns than the file has."""


@contextmanager
def writing_rows(path: str, columns: Sequence[str]) -> Iterator[Write]:
    """Open a TSV or JSON lines file for rows with fixed columns; `-` is standard output, as TSV."""
    ending = Path(path).suffix
    if path != "-" and ending not in (".tsv", ".txt", ".jsonl", ".ndjson"):
        raise UsageError(f"{path}: rows are written as .tsv or .jsonl (or - for TSV on standard output); -o writes Parquet")
    with writing_or_printing(path) as file:
        as_json = ending in (".jsonl", ".ndjson")
        if not as_json:
            file.write(("\t".join(columns) + "\n").encode())

        def write(values: Mapping[str, Sequence[Any]]) -> None:
            rows = zip(*(values[name] for name in columns), strict=True)
            if as_json:
                lines = [json.dumps(plain(dict(zip(columns, row, strict=True))), ensure_ascii=False) for row in rows]
            else:
                lines = ["\t".join(map(_cell, row)) for row in rows]
            text = "".join(f"{line}\n" for line in lines)
            file.write((for_output(text) if path == "-" else text).encode())

        yield write


@contextmanager
def writing_table(path: str, columns: Sequence[str]) -> Iterator[Callable[[pa.Table], None]]:
    """Open a file ending in .parquet, .csv, .tsv or .jsonl for Arrow tables of one kind; `-` is standard output, as TSV."""
    check_row_file(path)
    if not path.endswith((".parquet", ".csv")):
        with writing_rows(path, columns) as write_rows:
            yield lambda table: write_rows(table.to_pydict())
        return
    with ExitStack() as stack:
        file = stack.enter_context(writing_or_printing(path))
        writers: list[Any] = []

        def write(table: pa.Table) -> None:
            if not writers:  # the first table says what the columns hold
                from pyarrow import csv, parquet

                kind = parquet.ParquetWriter if path.endswith(".parquet") else csv.CSVWriter
                writers.append(stack.enter_context(kind(file, table.schema)))
            writers[0].write_table(table)

        yield write


def write_table(path: str, columns: Mapping[str, Sequence[Any]] | pa.Table) -> None:
    """Write rows that are all at hand."""
    # columns: name -> values [rows], or an Arrow table.
    # Raises OutputError: it cannot be written; nothing is left behind.
    import pyarrow as pa

    if not isinstance(columns, pa.Table):
        if path.endswith(".csv"):  # which has no lists
            columns = {name: [_in_csv(value) for value in values] for name, values in columns.items()}
        columns = pa.table(dict(columns))
    with writing_table(path, columns.column_names) as write:
        write(columns)


def check_row_file(path: str) -> None:
    """Refuse a file for rows that is of no kind known here."""
    if path != "-" and not path.endswith(ROW_FILES):
        raise UsageError(f"{path}: rows are written as {', '.join(ROW_FILES)} (or - for TSV on standard output)")


def _in_csv(value: Any) -> Any:
    return json.dumps(plain(value), ensure_ascii=False) if isinstance(value, list) else value


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return _cell(json.dumps(plain(value), ensure_ascii=False))
    if value is None:
        return ""
    return value.translate(_ESCAPES) if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)
