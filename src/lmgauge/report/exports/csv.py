"""Results as CSV: a row for each figure of each run."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from csv import DictWriter
from typing import Any

from lmgauge.report.exports import ExportedFigure, ExportedRun

_FORMULAS = tuple("=+-@\t\r")
"""What makes a spreadsheet take a cell for a formula."""


def csv(runs: Sequence[ExportedRun]) -> Iterator[tuple[str, str]]:
    """A table for spreadsheets and data frames: a row for each figure, full precision."""
    rows = [_row(run, figure) for run in runs for figure in run.figures]
    out = io.StringIO()
    writer = DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    yield "results.csv", out.getvalue()


def _row(run: ExportedRun, figure: ExportedFigure) -> dict[str, Any]:
    names = {"model": run.model, "task": run.task, "figure": figure.name}
    names = {name: f"'{text}" if text.startswith(_FORMULAS) else text for name, text in names.items()}
    ends = {f"interval_{name}": getattr(figure.interval, name, None) for name in ("low", "high", "level", "unit", "units")}
    numbers = {"value": figure.value, "is_lower_bound": figure.is_lower_bound, **ends}
    return names | numbers | {"date": run.moment.isoformat(), **run.provenance()}
