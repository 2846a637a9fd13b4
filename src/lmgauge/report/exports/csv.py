"""Results as CSV: a row for each figure of each run, full precision."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from csv import DictWriter
from typing import Any

from lmgauge.report.exports import ExportedRun

_FORMULAS = tuple("=+-@\t\r")
"""What makes a spreadsheet take a cell for a formula."""


def csv(runs: Sequence[ExportedRun]) -> Iterator[tuple[str, str]]:
    """A table for spreadsheets and data frames: a row for each figure, full precision."""
    rows = [row for run in runs for row in _rows(run)]
    out = io.StringIO()
    writer = DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    yield "results.csv", out.getvalue()


def _rows(run: ExportedRun) -> Iterator[dict[str, Any]]:
    for figure in run.figures:
        row = {
            "model": run.model,
            "task": run.task,
            "figure": figure.name,
            "value": figure.value,
            "is_lower_bound": figure.is_lower_bound,
            **{
                f"interval_{name}": getattr(figure.interval, name, None)
                for name in ("low", "high", "level", "unit", "units")
            },
            "date": run.date,
            **run.provenance(),
        }
        yield {
            name: f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell for name, cell in row.items()
        }
