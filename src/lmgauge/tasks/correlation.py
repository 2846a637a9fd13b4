"""Do better language models make better systems? Task scores and perplexities of systems, from tables of systems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lmgauge.base.choices import DEFAULT_SEED
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import first_few
from lmgauge.base.result_list import Tabled
from lmgauge.numerics.correlation import (
    average_ranks,
    kendall_interval,
    kendall_tau_b,
    pearson_r,
    rank_permutation_p_value,
    spearman_interval,
    spearman_rho,
)
from lmgauge.numerics.figures import FIGURES
from lmgauge.numerics.lower_bound import LowerBound, marked
from lmgauge.records.formats import split_compression
from lmgauge.records.sources import table_rows
from lmgauge.scores.imports.log import LogFile
from lmgauge.tasks.settings import CorrelationSettings

PERMUTATIONS = 100_000
_BOUNDED = tuple(figure.name for figure in FIGURES if figure.bounded)


@dataclass(frozen=True, repr=False)
class Correlation(Tabled):
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

    Example:
        >>> import lmgauge
        >>> result = lmgauge.tasks.correlate(["a", "b", "c", "d"], [80.0, 90.0, 120.0, 150.0], [30.1, 29.5, 27.0, 27.9])
        >>> round(result.spearman, 3), result.exact
        (-0.8, True)
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

    def _in_brief(self) -> str:
        known = ", ".join(f"{name} {value:.3f}" for name, value, _ in self.coefficients) or "no correlation"
        return f"{self.y_name} against {self.x_name}, {len(self.systems)} systems: {known}"

    @property
    def independence(self) -> str:
        """What intervals and the p-value take as independent, as a sentence without its full stop; empty without them."""
        if self.p_value is None and self.spearman_interval is None:
            return ""
        return (
            f"{len(self.systems)} systems are taken as independent, which variants of one system are not; the "
            "uncertainty of each score is not used"
        )

    @property
    def coefficients(self) -> list[tuple[str, float, tuple[float, float] | None]]:
        """Name, value and 95 % interval of each coefficient there is."""
        pearson = f"Pearson's r{' with the logarithm' * self.log_x}"
        known = (
            ("Spearman's rho", self.spearman, self.spearman_interval),
            ("Kendall's tau-b", self.kendall, self.kendall_interval),
            (pearson, self.pearson, None),
        )
        return [(name, value, interval) for name, value, interval in known if value is not None]

    def to_rows(self) -> list[Row]:
        """Return a row for each system, to plot: system, x, y, rank_x, rank_y, rank_difference.

        Ranks are from 1, the smallest first. The difference is the rank in y less the one x alone would give: the rank in
        x, counted from the other end if rho is negative. Positive: the system's y is higher than its x lets expect.
        """
        rank_x, rank_y = (average_ranks(np.array(values)) for values in (self.x, self.y))
        expected = len(self.x) + 1 - rank_x if (self.spearman or 0) < 0 else rank_x
        columns = ("system", "x", "y", "rank_x", "rank_y", "rank_difference")
        parts = (self.systems, self.x, self.y, rank_x.tolist(), rank_y.tolist(), (rank_y - expected).tolist())
        return [dict(zip(columns, row, strict=True)) for row in zip(*parts, strict=True)]

    def to_dict(self) -> Row:
        """Return everything, with the rows under "systems"."""
        low, high = self.spearman_interval or (None, None)
        tau_low, tau_high = self.kendall_interval or (None, None)
        spearman = {"spearman": self.spearman, "spearman_low": low, "spearman_high": high}
        kendall = {"kendall": self.kendall, "kendall_low": tau_low, "kendall_high": tau_high}
        tested = {"p_value": self.p_value, "p_value_exact": self.exact}
        last = {name: getattr(self, name) for name in ("pearson", "log_x", "seed", "independence")}
        names = {"x": self.x_name, "y": self.y_name, "n": len(self.systems)}
        return names | spearman | tested | kendall | last | {"notes": list(self.notes), "systems": self.to_rows()}


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
    """Return rank correlations of two numbers of several systems, and Pearson's r.

    Sources: Spearman (1904); Kendall (1945), tau-b; Good (2005), the permutation test.

    Args:
        systems: their names.
        x: a number of each, usually the perplexity of its language model, or of its output under one.
        y: another, usually its score in a task.
        x_name: what x is.
        y_name: what y is.
        log_x: Pearson's r is of y and ln x; None: if `x_name` holds "perplexity" or "ppl". Ranks are the same either way.
        seed: of the random permutations, from 10 systems up.

    Raises:
        InputError: the lengths differ, there are no systems, a name occurs twice, a number is NaN, or no logarithm exists.

    >>> found = correlate(["a", "b", "c", "d"], [90.0, 70.0, 80.0, 60.0], [20.1, 23.0, 21.5, 23.4])
    >>> found.spearman, found.p_value == 2 / 24
    (-1.0, True)
    """
    if seed < 0:
        raise UsageError(f"seed: {seed} is negative; give 0 or more")
    log_x = any(word in x_name.lower() for word in ("perplexity", "ppl")) if log_x is None else log_x
    _check(systems, x, y, x_name, y_name, log_x)
    left, right, n = np.array(x, dtype=np.float64), np.array(y, dtype=np.float64), len(x)
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
            raise InputError(f"system {name!r} occurs twice; give each system one {x_name} and one {y_name}")
        seen.add(name)
        for what, value in ((x_name, first), (y_name, second)):
            if isinstance(value, LowerBound):
                raise InputError(
                    f"{what} of system {name!r} is {value}, a lower bound, which has no rank; correlate perplexities"
                )
            if math.isnan(value):
                raise InputError(f"{what} of system {name!r} is NaN: leave the system out, or fix the program that wrote it")
        if log_x and first <= 0:
            raise InputError(
                f"{x_name} of system {name!r} is {first!r}, which has no logarithm; correlate without it: --no-log-x"
            )


def _notes(x: list[float], y: list[float], x_name: str, y_name: str, rho: float | None) -> tuple[str, ...]:
    n, notes = len(x), []
    if n < 2:
        notes.append("one system says nothing about a correlation")
    for name, values in ((x_name, x), (y_name, y)):
        if n > 1 and len(set(values)) == 1:
            notes.append(f"{name} is the same for all systems: a correlation does not exist")
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


def by_system(rows: list[Row], system: str) -> list[Row]:
    """Return rows of `eval --json` with their groups or, without, their models as systems; other rows as they are."""
    if any(system in row or "model" not in row for row in rows):
        return rows
    grouped = [row | {system: row["group"]} for row in rows if row.get("group") is not None]
    return grouped or [row | {system: row["model"]} for row in rows]


def correlate_rows(
    x_rows: Sequence[Row], y_rows: Sequence[Row], settings: CorrelationSettings, tables: tuple[str, str]
) -> Correlation:
    """Correlate a column of one table with a column of another."""
    names, xs, ys, notes = paired_columns(x_rows, y_rows, settings, tables)
    result = correlate(names, xs, ys, x_name=settings.x, y_name=settings.y, log_x=settings.log_x, seed=settings.seed)
    return replace(result, notes=(*notes, *result.notes))


def paired_columns(
    x_rows: Sequence[Mapping[str, Any]],
    y_rows: Sequence[Mapping[str, Any]],
    settings: CorrelationSettings,
    tables: tuple[str, str] = ("", ""),
) -> tuple[list[str], list[float], list[float], list[str]]:
    """Return a number from each of two tables (or twice the same), for the systems that are in both."""
    # -> the systems' names, x and y of each, and a note where a system is in one table only.
    x, y, system = settings.x, settings.y, settings.system
    first, second = _column(x_rows, system, x, tables[0]), _column(y_rows, system, y, tables[1])
    names = [name for name in second if name in first]
    if not names:
        raise InputError(
            f"no system is in both tables: {x} is given for {first_few(list(first))}, {y} for {first_few(list(second))}; "
            "the names must be the same"
        )
    alone = ((y, [name for name in first if name not in second]), (x, [name for name in second if name not in first]))
    notes = [f"left out, without {missing}: {first_few(systems)}" for missing, systems in alone if systems]
    return names, [first[name] for name in names], [second[name] for name in names], notes


def _column(rows: Sequence[Mapping[str, Any]], system: str, column: str, table: str) -> dict[str, float]:
    numbers: dict[str, float] = {}
    of = f"{table}: " if table else ""
    for i, row in enumerate(rows, 1):
        for wanted in (system, column):
            if wanted not in row:
                raise InputError(f"{of}row {i} has no column {wanted!r}; it has {first_few(list(row))}")
        name, value = str(row[system]), row[column]
        if name in numbers:
            raise InputError(f"{of}row {i}: system {name!r} occurs a second time")
        try:
            bound = column in _BOUNDED and row.get("bits_per_byte_is_bound") is True
            numbers[name] = math.nan if isinstance(value, bool) else marked(float(value), bound=bound)
        except (TypeError, ValueError):
            numbers[name] = math.nan
        if math.isnan(numbers[name]):
            raise InputError(f"{of}row {i}: {column} of system {name!r} is {value!r}, not a number")
    return numbers


Row = dict[str, Any]


def read_table(path: str) -> list[Row]:
    """Return the rows of a table of systems: CSV or TSV with a header, JSON lines, Parquet, or JSON."""
    # JSON is a list of objects, or an object with such a list under "systems", which `lmgauge bleu --json` and its like
    # print.
    # -> a dictionary for each row; values of TSV and CSV are strings of characters, the others as they are.
    if split_compression(path)[0].lower().endswith(".json"):
        rows = [value for _, value in LogFile(Path(path)).values()]
        if len(rows) == 1 and isinstance(rows[0], dict):
            rows = rows[0].get("systems", rows)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InputError(f'{path}: needs a list of objects, or an object with such a list under "systems"')
    else:
        rows = [row.fields for row in table_rows(path, "tables are read from .json,", quotes=True)]
    if not rows:
        raise InputError(f"{path}: the table has no rows")
    return rows
