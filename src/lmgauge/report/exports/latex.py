"""Results as the table of a paper: a row for each model, a column for each figure, of each task where there are several."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from lmgauge.base.errors import LmgaugeError, UsageError
from lmgauge.base.escaping import visible_on_page
from lmgauge.evaluation.comparison.compare import compare
from lmgauge.evaluation.runs import Run
from lmgauge.numerics.resampling import holm_adjusted
from lmgauge.report import blocks as doc
from lmgauge.report.exports import ExportedFigure, ExportedRun
from lmgauge.report.tsv_renderer import latex_lines
from lmgauge.tasks.items.compare import compare_items

_NOTHING = ExportedFigure("", "", math.nan)
_BOLD = "bold: the best, and what is not shown to be worse (paired tests, 5 %, Holm); a lower bound never is"


def latex(runs: Sequence[ExportedRun]) -> Iterator[tuple[str, str]]:
    """A table of a paper (booktabs): figures with intervals, the best in bold."""
    several = len({run.task for run in runs}) > 1
    cells: dict[tuple[str, str], dict[str, tuple[int, ExportedFigure]]] = {}  # of a title and kind of runs
    for number, run in enumerate(runs):
        for figure in run.figures:
            title = f"{run.task}: {figure.title}" if several else figure.title
            column = cells.setdefault((title, type(run.source).__name__), {})
            if column.setdefault(run.model, (number, figure))[0] != number:
                raise UsageError(f"two runs of {run.model!r} have {figure.title} of {run.task}: tell them apart by --names")
    compared = cache(lambda numbers: _compared([runs[number] for number in numbers]))
    models = list(dict.fromkeys(run.model for run in runs))
    columns: list[doc.Column] = [doc.labels("model", models)]
    bold: set[tuple[int, int]] = set()
    reasons: list[str] = []
    for (title, _), column in cells.items():
        try:
            bold |= {(models.index(model), len(columns)) for model in _best(column, compared)}
        except LmgaugeError as error:
            reasons.append(f"none of {title} is bold: {error}")
        figures = [column[model][1] if model in column else _NOTHING for model in models]
        columns.append(doc.Column(title, [doc.Number(figure.shown, figure.digits) for figure in figures]))
        if any(figure.interval for figure in figures):
            columns.append(doc.Column("95 % interval", [doc.between(one.interval, one.digits) for one in figures]))
    made = [f"{run.model}, {run.task}: {run.signature}, rows sha256:{run.rows_sha256}" for run in runs]
    notes = (f"% {visible_on_page(note)}" for note in [_BOLD] * bool(bold) + reasons + made)
    lines = [*latex_lines(doc.Table(tuple(columns)), bold), *notes]
    yield "results.tex", "".join(f"{line}\n" for line in lines)


def _best(column: Mapping[str, tuple[int, ExportedFigure]], compared: Callable[[tuple[int, ...]], Any]) -> list[str]:
    # Models with the best figure and those that are not shown to be worse.
    known = {model: one for model, (_, one) in column.items() if math.isfinite(one.value) and not one.is_lower_bound}
    order = sorted(known, key=lambda model: known[model].value * (-1 if known[model].higher_is_better else 1))
    if len(order) < 2:
        return []
    pairs = compared(tuple(column[model][0] for model in order))
    pairs = pairs.require(known[order[0]].name) if hasattr(pairs, "require") else pairs
    return [order[0], *(model for model, pair in zip(order[1:], pairs, strict=True) if not pair.significant)]


def _compared(runs: Sequence[ExportedRun]) -> Any:
    # Each run beside the first, which its figure chose as the best: p-values count for all pairs.
    sources: list[Any] = [run.source for run in runs]
    if isinstance(sources[0], Run):
        return compare(sources, examples=0, best_first=True)
    pairs = compare_items(sources, [run.model for run in runs]).differences
    return holm_adjusted(pairs, best_of=len(runs))
