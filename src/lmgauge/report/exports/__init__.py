"""Results in the forms of other programs: a file each, with one function that a plug-in could be as well.

    def latex(runs: Sequence[ExportedRun], *, source: str) -> Iterator[tuple[str, str]]

It yields the names of files and their texts; where they go is not its business. The first line of its docstring
describes it. Its keywords are options of `lmgauge export`; those without a default must be given. May
import what `report` may.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lmgauge.base.decoding import decode
from lmgauge.base.errors import UsageError
from lmgauge.base.files import digest
from lmgauge.base.plugins import Plugins
from lmgauge.base.version import NUMBERS_VERSION, __version__
from lmgauge.evaluation.estimate import figures_of_run
from lmgauge.evaluation.runs import Run
from lmgauge.numerics.figures import FIGURES
from lmgauge.numerics.intervals import Interval
from lmgauge.numerics.lower_bound import marked
from lmgauge.numerics.signature import Signature
from lmgauge.report.formats import names_in_brief
from lmgauge.tasks.items.compare import summarized
from lmgauge.tasks.items.table import ItemScores

EXPORTERS = Plugins(
    "result_exporters",
    """
    csv = lmgauge.report.exports.csv:csv
    every-eval-ever = lmgauge.report.exports.every_eval_ever:every_eval_ever
    harness = lmgauge.report.exports.harness:harness
    hub = lmgauge.report.exports.hub:hub
    inspect = lmgauge.report.exports.inspect:inspect
    latex = lmgauge.report.exports.latex:latex
    """,
)
"""What writes results, by the name of the form."""


@dataclass(frozen=True)
class ExportedFigure:
    """A figure of a run."""

    name: str  # as JSON and data frames call it: "perplexity", "acc"
    title: str  # as people read it
    value: float  # inf where an event has probability zero
    digits: int = 4  # after the point, where people read it
    is_lower_bound: bool = False
    interval: Interval | None = None  # 95 %
    error: float | None = None  # standard error, of means
    higher_is_better: bool = False
    lowest: float = 0.0  # lowest, highest: the range of the figure
    highest: float = math.inf

    @property
    def shown(self) -> float | None:
        """Return the value as tables have it: a bound marked as one."""
        return None if math.isnan(self.value) else marked(self.value, bound=self.is_lower_bound)


@dataclass(frozen=True)
class ExportedRun:
    """What leaves of a run: its figures, how they were made, and the digest of the rows that they are of."""

    source: Run | ItemScores
    model: str
    task: str  # name of the text, or of the task
    program: str  # that made the figures
    figures: tuple[ExportedFigure, ...]
    signature: str
    rows_sha256: str
    rows: Sequence[Mapping[str, Any]] = ()  # of scores of items: a row each, by the names of columns
    moment: datetime = datetime.min  # of the evaluation, with a time zone

    def provenance(self) -> dict[str, str]:
        """Return what shows how the figures were made, by names that every form uses."""
        return {"signature": self.signature, "rows_sha256": self.rows_sha256, "lmgauge": __version__}


def evaluation_exported(run: Run) -> ExportedRun:
    """Return what leaves of an evaluation."""
    if (numbers := run.evaluation) is None:
        cures = "`lmgauge eval --scores FILE -o RUN` makes one of a score table"
        cures += ", `lmgauge import FILE --score NAME -o RUN` of scores of items"
        raise UsageError(f"{run.path}: is not a run: {cures}")
    bound = bool(numbers.get("bits_per_byte_is_bound"))
    figures = [
        ExportedFigure(one.name, one.title, float(numbers[one.name]), one.digits, one.bounded and bound)
        for one in FIGURES
        if numbers.get(one.name) is not None
    ]
    if numbers.get("interval") is not None and not numbers.get("zero_probability_events"):
        interval = decode(numbers["interval"], Interval, run.path, "an interval", "evaluate again")
        figures[0] = replace(figures[0], interval=interval)  # of the perplexity
    text, signature = run.settings.get("text"), numbers["signature"]
    if (sample := run.sample) is not None:  # the figures of the whole text: those of the sample alone say nothing of it
        estimates, signature = figures_of_run(run, sample)
        known = {one.metric: one for one in estimates}
        figures = [
            replace(one, value=float(known[one.name].value), interval=known[one.name].interval)
            for one in figures
            if one.name in known
        ]
    task = names_in_brief([Path(path).name for path in text.get("paths", ())]) if isinstance(text, dict) else ""
    task = f"{task or 'text'}, from {sample.part} documents" if sample is not None else task or "text"
    return ExportedRun(run, run.name, task, "lmgauge", tuple(figures), signature, run.scores_sha256)


def items_exported(scores: ItemScores) -> ExportedRun:
    """Return what leaves of a run of scores of items."""
    origin, (own, error) = scores.origin, summarized(scores)
    score = ExportedFigure(origin.score, origin.score, own.score, interval=own.interval, error=error)
    score = replace(score, higher_is_better=origin.higher_is_better, lowest=origin.lowest, highest=origin.highest)
    columns = {name: list(getattr(scores, name)) for name in ("item", "subset", "cluster", "prompt", "content")}
    columns |= {"sample": scores.sample.tolist(), "score": scores.score.tolist()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    count, unit = len(set(scores.codes.tolist())), own.interval and f"{own.interval.units}-{own.interval.unit}"
    parts = {"score": origin.score, "program": origin.program, "n": str(count), "independent": unit or "none"}
    line = str(Signature(parts | {"v": NUMBERS_VERSION}, "items"))
    return ExportedRun(scores, origin.model, _task(scores), origin.program, (score,), line, digest(rows), rows)


def _task(scores: ItemScores) -> str:
    # The one subset; of several what all their names begin with (mmlu_law, mmlu_logic), or the ids (mmlu/1, as an import
    # with groups calls items of a task); else the score.
    subsets = [*{*scores.subset} - {""}]
    if len(subsets) == 1:
        return subsets[0]
    for sign, names in (("[_/:. -]", subsets), ("/", scores.item if subsets else ())):
        begin = os.path.commonprefix([*names])  # noqa: RUF071 - which it compares as we want
        if named := re.match(f"(.{{1,60}}){sign}", begin):
            return named[1]
    return scores.origin.score
