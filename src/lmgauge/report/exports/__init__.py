"""Results in the forms of other programs: a file each, with one function that a plug-in could be as well.

    def latex(runs: Sequence[ExportedRun], *, date: str) -> Iterator[tuple[str, str]]

It yields the names of files and their texts; where they go is not its business. The first line of its docstring
describes it. Its keywords are options of `lmgauge export`; those without a default must be given. May
import what `report` may.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from lmgauge.base.decoding import decode
from lmgauge.base.errors import UsageError
from lmgauge.base.files import digest
from lmgauge.base.plugins import Plugins
from lmgauge.base.version import NUMBERS_VERSION, __version__
from lmgauge.evaluation.runs import Run
from lmgauge.numerics.exact import Floats, Ints
from lmgauge.numerics.figures import FIGURES
from lmgauge.numerics.independence import in_signature
from lmgauge.numerics.intervals import Interval, spread, wilson_interval
from lmgauge.numerics.signature import Signature
from lmgauge.report.formats import names_in_brief
from lmgauge.tasks.items.table import ItemScores

EXPORTERS = Plugins(
    "result_exporters",
    """
    csv = lmgauge.report.exports.csv:csv
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
    interval: Interval | None = None  # 95 %
    error: float | None = None  # standard error, where the interval is that of a mean
    higher_is_better: bool = False
    is_lower_bound: bool = False
    digits: int = 4  # after the point, where people read it


@dataclass(frozen=True)
class ExportedRun:
    """What leaves of a run: its figures, how they were made, and the digest of the rows that they are of."""

    source: Run | ItemScores
    model: str
    task: str  # name of the text, or of the task
    figures: tuple[ExportedFigure, ...]
    signature: str
    rows_sha256: str
    moment: datetime = datetime.min  # of the evaluation, with a time zone

    @property
    def items(self) -> ItemScores | None:
        """Return the scores of items, where the run is of a task."""
        return self.source if isinstance(self.source, ItemScores) else None

    @property
    def date(self) -> str:
        """Return when it was evaluated, as ISO 8601 has it."""
        return self.moment.isoformat()

    def provenance(self) -> dict[str, str]:
        """Return what shows how the figures were made, by names that every form uses."""
        return {"signature": self.signature, "rows_sha256": self.rows_sha256, "lmgauge": __version__}

    def with_interval(self, figure: ExportedFigure) -> str:
        """Return a figure as a line of notes, full precision."""
        bound, own = ">= " * figure.is_lower_bound, figure.interval
        between = (
            f", {own.level:.0%} interval {own.low!r} to {own.high!r} ({own.method}, {own.units} {own.unit})" if own else ""
        )
        return f"{figure.title} {bound}{figure.value!r}{between}"


def evaluation_exported(run: Run) -> ExportedRun:
    """Return what leaves of an evaluation."""
    numbers: Mapping[str, Any] | None = run.evaluation
    if numbers is None:
        raise UsageError(
            f"{run.path}: is a score table; `lmgauge eval --scores {run.path} -o RUN` makes a run with figures of it"
        )
    stated = None if numbers.get("zero_probability_events") else numbers.get("interval")
    interval = stated and decode(stated, Interval, run.path, "an interval", "evaluate again")
    bound = bool(numbers.get("bits_per_byte_is_bound"))
    figures = [
        ExportedFigure(
            one.name, one.title, float(numbers[one.name]), is_lower_bound=one.bounded and bound, digits=one.digits
        )
        for one in FIGURES
        if numbers.get(one.name) is not None
    ]
    figures[0] = replace(figures[0], interval=interval)  # of the perplexity
    text = run.settings.get("text")
    paths = text.get("paths") if isinstance(text, dict) else None
    names = [str(path).rpartition("/")[2] for path in paths] if isinstance(paths, list) else []
    return ExportedRun(
        run, run.name, names_in_brief(names) or "text", tuple(figures), str(numbers.get("signature", "")), run.scores_sha256
    )


def items_exported(scores: ItemScores) -> ExportedRun:
    """Return what leaves of a run of scores of items."""
    origin, (means, clusters) = scores.origin, _of_items(scores)
    mean, own = float(means.mean()), spread(means, np.ones(len(means)), clusters)
    binary = len(scores) == len(means) == len(np.unique(clusters)) and bool(np.isin(means, (0.0, 1.0)).all())
    interval = wilson_interval(mean, len(means), "items") if binary else own.interval() if own else None
    figure = ExportedFigure(origin.score, origin.score, mean, interval, own.error if own else None, origin.higher_is_better)
    rows = {name: list(getattr(scores, name)) for name in ("item", "subset", "sample", "score", "cluster", "prompt")}
    parts = {
        "score": origin.score,
        "program": origin.program,
        "n": str(len(means)),
        "samples": str(len(scores)),
        "independent": in_signature(interval),
        "v": NUMBERS_VERSION,
    }
    subsets = dict.fromkeys(scores.subset)
    task = next(iter(subsets)) if len(subsets) == 1 else ""
    return ExportedRun(scores, origin.model, task or origin.score, (figure,), str(Signature(parts, "items")), digest(rows))


def _of_items(scores: ItemScores) -> tuple[Floats, Ints]:
    # The mean over the samples of each item, and its cluster, which is itself where nothing is known of clusters.
    keys: dict[tuple[str, str], int] = {}
    rows = np.array([keys.setdefault(key, len(keys)) for key in zip(scores.subset, scores.item, strict=True)])
    firsts = np.unique(rows, return_index=True)[1].tolist()
    numbers: dict[object, int] = {}
    clusters = np.array([numbers.setdefault(scores.cluster[i] or i, len(numbers)) for i in firsts], np.int64)
    return np.bincount(rows, scores.score) / np.bincount(rows), clusters
