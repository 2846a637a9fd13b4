"""A correlation of systems' numbers: the verdict, the points, then the coefficients."""

from __future__ import annotations

from collections.abc import Iterator

from lmgauge.report import blocks as doc
from lmgauge.report.formats import p_equals
from lmgauge.tasks.correlation import PERMUTATIONS, Correlation
from lmgauge.tasks.significance import SIGNIFICANT


def blocks(correlation: Correlation) -> doc.Document:
    """Return the verdict, a row for each system, each coefficient with what is known of it, and notes."""
    independence = [f"{correlation.independence}."] if correlation.independence else []
    notes = doc.notes([*_permutations(correlation), *independence, *correlation.notes])
    return (*_verdict(correlation), _systems(correlation), *_coefficients(correlation), *notes)


def _systems(correlation: Correlation) -> doc.Table:
    rows = correlation.to_rows()
    columns = (
        doc.labels("system", [str(row["system"]) for row in rows]),
        doc.numbers(correlation.x_name, [row["x"] for row in rows], 2),
        doc.numbers("rank", [row["rank_x"] for row in rows], form="rank", drop=3),
        doc.numbers(correlation.y_name, [row["y"] for row in rows], 2),
        doc.numbers("its rank", [row["rank_y"] for row in rows], form="rank", drop=2),
        doc.numbers("beside the expected", [row["rank_difference"] for row in rows], form="places", drop=1),
    )
    return doc.Table(columns, f"{_title(correlation)}, {len(rows)} systems")


def _permutations(correlation: Correlation) -> Iterator[str]:
    if correlation.p_value is not None:
        drawn = f"{PERMUTATIONS:,} permutations, seed {correlation.seed}"
        yield f"p-value of rho: {'all permutations' if correlation.exact else drawn}."


def _title(correlation: Correlation) -> str:
    return f"{correlation.y_name} against {correlation.x_name}"


def _coefficients(correlation: Correlation) -> Iterator[doc.Block]:
    known = correlation.coefficients
    columns = [
        doc.labels("coefficient", [name for name, _, _ in known]),
        doc.numbers("value", [value for _, value, _ in known], 3),
        doc.Column("95 % interval", [doc.between(ends, 3, "fixed") for _, _, ends in known]),
    ]
    if correlation.p_value is not None:
        columns.append(doc.numbers("p", [correlation.p_value, *([None] * (len(known) - 1))], form="p"))
    yield doc.Table(tuple(columns))
    points = doc.Series("systems", correlation.x, correlation.y, names=correlation.systems)
    names = (correlation.x_name, correlation.y_name)
    title = _title(correlation)
    yield doc.ChartData("correlation", title, *names, "", (points,), kind="scatter", log_x=correlation.log_x)


def _verdict(correlation: Correlation) -> Iterator[doc.Verdict]:
    rho, p = correlation.spearman, correlation.p_value
    if rho is None or p is None:
        return
    if p >= SIGNIFICANT:
        yield doc.Verdict("unknown", f"The ranks show no link that could not be chance ({p_equals(p)}).")
        return
    which = "higher" if rho > 0 else "lower"
    yield doc.Verdict(
        "good", f"Systems with a higher {correlation.y_name} tend to have a {which} {correlation.x_name} ({p_equals(p)})."
    )
