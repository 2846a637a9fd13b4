"""Do better language models make better systems? Task scores held against perplexities, system by system."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lmgauge.choices import DEFAULT_SEED
from lmgauge.errors import InputError, UsageError
from lmgauge.numerics.correlation import (
    average_ranks,
    kendall_interval,
    kendall_tau_b,
    pearson_r,
    rank_permutation_p_value,
    spearman_interval,
    spearman_rho,
)

__all__ = ["Correlation", "correlate", "paired_columns", "read_table"]

Row = dict[str, Any]

PERMUTATIONS = 100_000
# Named in a note, of the systems that only one table has; of more it tells the number.
NAMED = 5


@dataclass(frozen=True)
class Correlation:
    """How two numbers of several systems go together.

    Attributes:
        x_name, y_name: what the numbers are, such as "perplexity" and "score".
        systems: names, in the order of the input.
        x, y: the numbers of each system.
        spearman: rho, from -1 to 1; None where it does not exist (a note says why).
        spearman_interval: 95 % interval of rho; None where there is none.
        p_value: two-sided, of rho, by permutation: how likely one so far from zero would be if x said nothing about y.
        exact: whether all permutations were counted; otherwise 100,000 random ones.
        kendall: tau-b.
        kendall_interval: its 95 % interval.
        pearson: r of y and x, or the logarithm of x.
        log_x: whether it is the logarithm.
        seed: of the random permutations.
        notes: what is missing or to be kept in mind.
    """

    x_name: str
    y_name: str
    systems: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    spearman: float | None
    spearman_interval: tuple[float, float] | None
    p_value: float | None
    exact: bool
    kendall: float | None
    kendall_interval: tuple[float, float] | None
    pearson: float | None
    log_x: bool
    seed: int
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """Return one line: the coefficients with what is known of each, and the notes."""
        return "; ".join(
            (f"{self.y_name} against {self.x_name}, {len(self.systems)} systems: {self._figures()}", *self._told())
        )

    @property
    def independence(self) -> str:
        """What intervals and the p-value take as independent, as a sentence without its full stop; empty without them."""
        if self.p_value is None and self.spearman_interval is None:
            return ""
        return (
            f"{len(self.systems)} systems are taken as independent, which variants of one system are not; how sure each "
            "score is does not enter"
        )

    def _told(self) -> tuple[str, ...]:
        return (self.independence, *self.notes) if self.independence else self.notes

    def _figures(self) -> str:
        if self.spearman is None:
            return "no correlation"
        parts = [f"Spearman's rho {self.spearman:.3f}{_bounds(self.spearman_interval)}"]
        if self.p_value is not None:
            parts.append(f"p = {self.p_value:.3g} ({'exact' if self.exact else f'{PERMUTATIONS:,} permutations'})")
        if self.kendall is not None:
            parts.append(f"Kendall's tau-b {self.kendall:.3f}{_bounds(self.kendall_interval)}")
        if self.pearson is not None:
            parts.append(f"Pearson's r {self.pearson:.3f} (against {'log ' if self.log_x else ''}{self.x_name})")
        return ", ".join(parts)

    def rows(self) -> list[Row]:
        """A row for each system, to plot: system, x, y, rank_x, rank_y, rank_difference.

        Ranks are from 1, the smallest first. The difference is the rank in y less the one x alone would give: the rank in
        x, counted from the other end if rho is negative. Positive: the system's y is higher than its x lets expect.
        """
        rank_x, rank_y = (average_ranks(np.array(values)) for values in (self.x, self.y))
        expected = len(self.x) + 1 - rank_x if (self.spearman or 0) < 0 else rank_x
        columns = ("system", "x", "y", "rank_x", "rank_y", "rank_difference")
        parts = (self.systems, self.x, self.y, rank_x.tolist(), rank_y.tolist(), (rank_y - expected).tolist())
        return [dict(zip(columns, row, strict=True)) for row in zip(*parts, strict=True)]

    def to_dict(self) -> Row:
        """Everything, with the rows under "systems"."""
        low, high = self.spearman_interval or (None, None)
        tau_low, tau_high = self.kendall_interval or (None, None)
        return {
            "x": self.x_name,
            "y": self.y_name,
            "n": len(self.systems),
            "spearman": self.spearman,
            "spearman_low": low,
            "spearman_high": high,
            "p_value": self.p_value,
            "p_value_exact": self.exact,
            "kendall": self.kendall,
            "kendall_low": tau_low,
            "kendall_high": tau_high,
            "pearson": self.pearson,
            "log_x": self.log_x,
            "seed": self.seed,
            "independence": self.independence,
            "notes": list(self.notes),
            "systems": self.rows(),
        }


def correlate(
    systems: Sequence[str],
    x: Sequence[float],
    y: Sequence[float],
    *,
    x_name: str = "perplexity",
    y_name: str = "score",
    log_x: bool | None = None,
    seed: int = DEFAULT_SEED,
) -> Correlation:
    """Rank correlations of two numbers of several systems, and Pearson's r.

    Args:
        systems: their names.
        x: a number of each, usually the perplexity of its language model, or of its output under one.
        y: another, usually its score in a task.
        x_name: what x is.
        y_name: what y is.
        log_x: Pearson's r is of y and ln x; None: if `x_name` holds "perplexity" or "ppl". Ranks are the same either way.
        seed: of the random permutations, from 10 systems up.

    Raises:
        InputError: the lengths differ, there are no systems, a name comes twice, a number is NaN, or no logarithm exists.

    >>> found = correlate(["a", "b", "c", "d"], [90.0, 70.0, 80.0, 60.0], [20.1, 23.0, 21.5, 23.4])
    >>> found.spearman, found.p_value == 2 / 24
    (-1.0, True)
    """
    if seed < 0:
        raise UsageError(f"seed: {seed} is negative; give 0 or more")
    log_x = any(word in x_name.lower() for word in ("perplexity", "ppl")) if log_x is None else log_x
    _check(systems, x, y, x_name, y_name, log_x)
    left, right = np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)
    n = len(left)
    rho, tau = spearman_rho(left, right), kendall_tau_b(left, right)
    finite = bool(np.isfinite(left).all() and np.isfinite(right).all())
    tested = rank_permutation_p_value(left, right, PERMUTATIONS, seed)
    return Correlation(
        x_name=x_name,
        y_name=y_name,
        systems=tuple(systems),
        x=tuple(left.tolist()),
        y=tuple(right.tolist()),
        spearman=rho,
        spearman_interval=None if rho is None else spearman_interval(rho, n),
        p_value=None if tested is None else tested[0],
        exact=tested is not None and tested[1],
        kendall=tau,
        kendall_interval=None if tau is None else kendall_interval(tau, n),
        pearson=pearson_r(np.log(left) if log_x else left, right) if finite else None,
        log_x=log_x,
        seed=seed,
        notes=_notes(left.tolist(), right.tolist(), x_name, y_name, rho),
    )


def _check(systems: Sequence[str], x: Sequence[float], y: Sequence[float], x_name: str, y_name: str, log_x: bool) -> None:
    if not len(systems) == len(x) == len(y):
        raise InputError(
            f"{len(systems)} systems, {len(x)} times {x_name} and {len(y)} times {y_name}: one of each is needed"
        )
    if not len(systems):
        raise InputError("there are no systems to correlate")
    seen: set[str] = set()
    for name, first, second in zip(systems, x, y, strict=True):
        if name in seen:
            raise InputError(f"system {name!r} comes twice; give each system one {x_name} and one {y_name}")
        seen.add(name)
        for what, value in ((x_name, first), (y_name, second)):
            if math.isnan(value):
                raise InputError(f"{what} of system {name!r} is NaN: leave the system out or mend what produced it")
        if log_x and first <= 0:
            raise InputError(
                f"{x_name} of system {name!r} is {first!r}, which has no logarithm; correlate without the logarithm"
            )


def _notes(x: list[float], y: list[float], x_name: str, y_name: str, rho: float | None) -> tuple[str, ...]:
    n, notes = len(x), []
    if n < 2:
        notes.append("one system says nothing about a correlation")
    for name, values in ((x_name, x), (y_name, y)):
        if n > 1 and len(set(values)) == 1:
            notes.append(f"{name} is the same for all systems: there is no correlation to speak of")
        if not all(map(math.isfinite, values)):
            notes.append(f"{name} is infinite for some systems: ranks stand, Pearson's r does not exist")
    if rho is not None:
        if n < 4:
            notes.append(f"{n} systems are too few for an interval: 4 are needed")
        elif abs(rho) == 1:
            notes.append("the order agrees entirely, and for that the interval's approximation does not hold")
        lowest = 2 / math.factorial(n) if n < 6 else 0.0
        if lowest > 0.05:
            notes.append(f"with {n} systems no p-value can be below {min(1.0, lowest):.2g}")
    return tuple(notes)


def _bounds(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" [{interval[0]:.3f}, {interval[1]:.3f}]"


# --- tables -----------------------------------------------------------------------------------------------


def read_table(path: str) -> list[Row]:
    """The rows of a table of systems: TSV or CSV with a header, JSONL, or JSON.

    JSON is a list of objects, or an object with such a list under "systems", which `lmgauge bleu --json` and its like print.

    Args:
        path: its ending says what it is: .tsv, .csv, .jsonl or .json.

    Returns:
        A dictionary for each row; values of TSV and CSV are strings.

    Raises:
        InputError: the file is missing, empty, no text or not of its kind; the message names the line.
        UsageError: the ending says nothing.
    """
    readers = {".tsv": _read_separated, ".csv": _read_separated, ".jsonl": _read_json_lines, ".json": _read_json}
    ending = Path(path).suffix.lower()
    if ending not in readers:
        raise UsageError(f"{path}: the ending says neither .tsv, .csv, .jsonl nor .json; rename the file")
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not valid UTF-8 at byte {error.start}; save it as UTF-8") from error
    rows = readers[ending](path, text)
    if not rows:
        raise InputError(f"{path}: the table has no rows")
    return rows


def _read_separated(path: str, text: str) -> list[Row]:
    separator = "\t" if path.lower().endswith(".tsv") else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    header: list[str] = []
    rows: list[Row] = []
    try:
        for cells in reader:
            if not cells:
                continue
            if not header:
                header = _header(path, cells)
            elif len(cells) != len(header):
                raise InputError(f"{path}:{reader.line_num}: {len(cells)} fields, but the header has {len(header)}")
            else:
                rows.append(dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: {error}") from error
    return rows


def _header(path: str, cells: list[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    odd = next((name for i, name in enumerate(header) if not name or name in header[:i]), None)
    if odd is not None:
        what = f"the column {odd!r} comes twice" if odd else "a column has no name"
        raise InputError(f"{path}:1: {what}; the first line names the columns, each once")
    return header


def _read_json_lines(path: str, text: str) -> list[Row]:
    return [_json_row(path, number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _json_row(path: str, number: int, line: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path}:{number}: not JSON: {error}") from error
    if not isinstance(row, dict):
        raise InputError(f"{path}:{number}: {type(row).__name__} where an object with the columns' names belongs")
    return row


def _read_json(path: str, text: str) -> list[Row]:
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; brackets thousands deep
        raise InputError(f"{path}: not usable JSON: {error}") from error
    rows = whole.get("systems") if isinstance(whole, dict) else whole
    if not isinstance(rows, list):
        raise InputError(f'{path}: needs a list of objects, or an object with such a list under "systems"')
    odd = next((i for i, row in enumerate(rows) if not isinstance(row, dict)), None)
    if odd is not None:
        raise InputError(f"{path}: entry {odd + 1} is {type(rows[odd]).__name__}, not an object")
    return rows


def paired_columns(
    x_rows: Sequence[Mapping[str, Any]],
    y_rows: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    *,
    system: str = "system",
    tables: tuple[str, str] = ("", ""),
) -> tuple[list[str], list[float], list[float], list[str]]:
    """A number from each of two tables (or twice the same), for the systems that are in both.

    Args:
        x_rows: the table with column `x`.
        y_rows: the table with column `y`; its order is kept.
        x: name of a column.
        y: name of a column.
        system: name of the column that says which system a row is.
        tables: where the rows of both are from, for messages.

    Returns:
        The systems' names, x and y of each, and a note where a system is in one table only.

    Raises:
        InputError: a column is missing, a value is no number, a system comes twice, or no system is in both.
    """
    first, second = _column(x_rows, system, x, tables[0]), _column(y_rows, system, y, tables[1])
    names = [name for name in second if name in first]
    if not names:
        raise InputError(
            f"no system is in both tables: {x} is given for {_some(list(first))}, {y} for {_some(list(second))}; "
            "the names must be the same"
        )
    notes = [
        f"left out, without {missing}: {_some(alone)}"
        for missing, alone in (
            (y, [name for name in first if name not in second]),
            (x, [n for n in second if n not in first]),
        )
        if alone
    ]
    return names, [first[name] for name in names], [second[name] for name in names], notes


def _some(names: list[str]) -> str:
    rest = len(names) - NAMED
    return ", ".join(map(repr, names[:NAMED])) + (f" and {rest:,} more" if rest > 0 else "")


def _column(rows: Sequence[Mapping[str, Any]], system: str, column: str, table: str) -> dict[str, float]:
    found: dict[str, float] = {}
    of = f"{table}: " if table else ""
    for i, row in enumerate(rows, 1):
        for wanted in (system, column):
            if wanted not in row:
                raise InputError(f"{of}row {i} has no column {wanted!r}; it has {_some(list(row))}")
        name, value = str(row[system]), row[column]
        if name in found:
            raise InputError(f"{of}row {i}: system {name!r} comes a second time")
        try:
            found[name] = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            found[name] = math.nan
        if math.isnan(found[name]):
            raise InputError(f"{of}row {i}: {column} of system {name!r} is {value!r}, not a number")
    return found
