"""A correlation of systems' numbers as people read it: the points, then the coefficients."""

from __future__ import annotations

from lmgauge.report.slices import Column, print_table
from lmgauge.report.terminal import console, number, p_value, readable
from lmgauge.tasks.comparison import SIGNIFICANT
from lmgauge.tasks.correlation import Correlation

CORRELATION_COLUMNS = ("system", "x", "y", "rank_x", "rank_y", "rank_difference")


def print_correlation(found: Correlation) -> None:
    """A row a system, then each coefficient with what is known of it, then the notes."""
    rows = found.rows()
    columns = [
        Column(readable(found.x_name), [number(row["x"], 2) for row in rows]),
        Column("rank", [f"{row['rank_x']:g}" for row in rows], 3),
        Column(readable(found.y_name), [number(row["y"], 2) for row in rows]),
        Column("its rank", [f"{row['rank_y']:g}" for row in rows], 2),
        Column("beside the expected", [f"{row['rank_difference']:+g}" for row in rows], 1),
    ]
    title = f"{readable(found.y_name)} against {readable(found.x_name)}, {len(rows)} systems"
    print_table(title, [readable(str(row["system"])) for row in rows], columns, heading="system")
    figures = [
        ("Spearman's rho", found.spearman, found.spearman_interval),
        ("Kendall's tau-b", found.kendall, found.kendall_interval),
        (f"Pearson's r{' with the logarithm' * found.log_x}", found.pearson, None),
    ]
    known = [(name, value, interval) for name, value, interval in figures if value is not None]
    if known:
        columns = [
            Column("", [number(value, 3) for _, value, _ in known]),
            Column("95 % interval", [_interval(interval) for _, _, interval in known]),
        ]
        if found.p_value is not None:
            columns.append(Column("p", [p_value(found.p_value), *([number(None)] * (len(known) - 1))]))
        print_table("", [name for name, _, _ in known], columns, heading="coefficient")
    if found.p_value is not None and found.spearman is not None:
        console().print(readable(_verdict(found, found.spearman, found.p_value)))
    if found.independence:
        console().print(readable(f"{found.independence}."), style="dim")
    for note in found.notes:
        console().print(readable(note), style="dim")


def _verdict(found: Correlation, rho: float, p: float) -> str:
    if p >= SIGNIFICANT:
        return f"The ranks show no link that could not be chance (p = {p_value(p)})."
    which = "higher" if rho > 0 else "lower"
    return f"Systems with a higher {found.y_name} tend to have a {which} {found.x_name} (p = {p_value(p)})."


def _interval(ends: tuple[float, float] | None) -> str:
    return number(None) if ends is None else f"{ends[0]:.3f} .. {ends[1]:.3f}"
