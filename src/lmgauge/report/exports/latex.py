"""Results as the table of a paper: a row for each model, a column for each figure, of each task where there are several."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from lmgauge.base.errors import UsageError
from lmgauge.base.escaping import visible_on_page
from lmgauge.evaluation.comparison.compare import compare
from lmgauge.evaluation.comparison.results import Comparisons
from lmgauge.evaluation.runs import Run
from lmgauge.numerics.figures import COMPARED, FIGURES
from lmgauge.numerics.lower_bound import marked
from lmgauge.report import blocks as doc
from lmgauge.report.exports import ExportedFigure, ExportedRun
from lmgauge.report.formats import in_column
from lmgauge.report.tsv_renderer import latex_lines

_BOLD = "bold: the best, and what is not shown to be worse (paired tests, 5 %, Holm); a lower bound never is"
_Cells = Mapping[int, tuple[ExportedRun, ExportedFigure]]
"""Of a column: what stands in each row."""
_COMPARED: dict[str, str] = {one.name: next(other.name for other in COMPARED if other.per == one.per) for one in FIGURES}
"""The figure whose comparison holds for a figure, too: they differ in the scale only."""


def latex(runs: Sequence[ExportedRun]) -> Iterator[tuple[str, str]]:
    """A table of a paper (booktabs): figures with intervals, the best in bold."""
    models = list(dict.fromkeys(run.model for run in runs))
    several = len({run.task for run in runs}) > 1
    cells: dict[tuple[str, str], dict[int, tuple[ExportedRun, ExportedFigure]]] = {}
    for run in runs:
        for figure in run.figures:
            title = f"{run.task}: {figure.title}" if several else figure.title
            column, row = cells.setdefault((title, figure.name), {}), models.index(run.model)
            if row in column:
                raise UsageError(f"two runs of {run.model!r} have {title}: give each a name of its own (--names)")
            column[row] = run, figure
    columns: list[doc.Column] = [doc.labels("model", models)]
    bold: set[tuple[int, int]] = set()
    known: dict[tuple[int, ...], Comparisons] = {}
    for (title, _), column in cells.items():
        bold |= {(row, len(columns)) for row in _best(column, known)}
        figures = [column[row][1] if row in column else None for row in range(len(models))]
        columns.append(doc.Column(title, [_number(one) for one in figures]))
        if any(one and one.interval for one in figures):
            ends = [doc.between(one.interval, one.digits) if one else doc.Number(None) for one in figures]
            columns.append(doc.Column("95 % interval", ends))
    rows = zip(*(column.cells for column in columns), strict=True)
    texts = [[column.title for column in columns], *([_text(cell) for cell in row] for row in rows)]
    notes = [_BOLD] * bool(bold)
    notes += [f"{run.model}, {run.task}: {run.signature}, rows sha256:{run.rows_sha256}" for run in runs]
    table = latex_lines([[visible_on_page(text) for text in row] for row in texts], "l" + "r" * (len(columns) - 1), bold)
    yield "results.tex", "".join(f"{line}\n" for line in (*table, *(f"% {visible_on_page(note)}" for note in notes)))


def _number(figure: ExportedFigure | None) -> doc.Number:
    return (
        doc.Number(None) if figure is None else doc.Number(marked(figure.value, bound=figure.is_lower_bound), figure.digits)
    )


def _text(cell: doc.Cell) -> str:
    return in_column(cell) if isinstance(cell, doc.Number | doc.Range) else str(cell)


def _best(cells: _Cells, known: dict[tuple[int, ...], Comparisons]) -> list[int]:
    # Rows with the best figure and with those that are not shown to be worse; none where they may not be compared.
    # known: comparisons by the runs compared, the best first; several columns may have the same.
    figures = {row: one for row, (_, one) in cells.items() if math.isfinite(one.value) and not one.is_lower_bound}
    order = sorted(
        figures, key=lambda row: figures[row].value, reverse=any(one.higher_is_better for one in figures.values())
    )
    sources = [cells[row][0].source for row in order]
    runs = [source for source in sources if isinstance(source, Run)]
    if len(order) < 2 or len(runs) < len(order):
        return []
    key, metric = tuple(map(id, runs)), _COMPARED[figures[order[0]].name]
    if key not in known:
        known[key] = compare(runs, examples=0, best_first=True)
    compared = known[key]
    if not all(one.verdict(metric).comparable for one in compared):
        return []
    return [order[0], *(row for row, one in zip(order[1:], compared, strict=True) if not one.significant)]
