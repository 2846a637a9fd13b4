"""Several systems scored on the same segments: what each reaches, how sure that is, whether it differs from the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

from lmgauge.errors import UsageError
from lmgauge.numerics.intervals import UNKNOWN, Interval
from lmgauge.numerics.significance import holm
from lmgauge.result_list import ResultList
from lmgauge.tasks.draws import ONE_DOCUMENT, SIGNIFICANT, Drawn, Plan, doubts, draw
from lmgauge.tasks.metrics.protocol import ScoredSums, Statistics, TaskScore
from lmgauge.tasks.settings import ComparisonSettings


@dataclass(frozen=True)
class SystemResult:
    """One system's score, and how it stands to the first system.

    Attributes:
        system: its name.
        score: the number and its parts.
        mean: of the scores over resamples; None where documents are known, whose interval has none.
        interval: of 95 %: by the bootstrap over segments or, where documents are known, by leaving out one at a time; None
            where nothing was drawn.
        half_width: half its width, what sacreBLEU prints after ±.
        difference: score minus the score of the first system; None for the first one itself.
        difference_interval: of 95 %, in the same way.
        p_value: of the test that was asked for, against the first system.
        p_value_holm: adjusted for all systems that are compared with the first (Holm 1979).
        groups: the score of each group of segments.
    """

    system: str
    score: TaskScore
    mean: float | None = None
    interval: Interval | None = None
    half_width: float | None = None
    difference: float | None = None
    difference_interval: Interval | None = None
    p_value: float | None = None
    p_value_holm: float | None = None
    groups: dict[str, TaskScore] = field(default_factory=dict)

    @property
    def significant(self) -> bool | None:
        """Whether it differs from the first system at 5 %, adjusted for the number of systems; None if not tested."""
        return None if self.p_value_holm is None else self.p_value_holm < SIGNIFICANT

    def to_dict(self) -> dict[str, Any]:
        """Return the score, its parts and what was drawn, flat and in full precision; groups as a dict of dicts."""
        whole = {"system": self.system} | self.score.to_dict() | self._drawn()
        return whole | ({"groups": {name: score.to_dict() for name, score in self.groups.items()}} if self.groups else {})

    def _drawn(self) -> dict[str, Any]:
        low, high = _ends(self.interval)
        difference_low, difference_high = _ends(self.difference_interval)
        return {
            "mean": self.mean,
            "interval_low": low,
            "interval_high": high,
            "half_width": self.half_width,
            "difference": self.difference,
            "difference_low": difference_low,
            "difference_high": difference_high,
            "p_value": self.p_value,
            "p_value_holm": self.p_value_holm,
            "significant": self.significant,
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a flat dict for the whole, with group None, and one for each group."""
        whole = {"system": self.system, "group": None} | _flat(self.score) | self._drawn()
        return [whole, *({"system": self.system, "group": g} | _flat(score) for g, score in self.groups.items())]


def _flat(score: TaskScore) -> dict[str, Any]:
    """Return the score and its parts; of a list each entry by its number, from 1."""
    flat: dict[str, Any] = {}
    for key, value in score.to_dict().items():
        flat |= {f"{key}_{i}": part for i, part in enumerate(value, 1)} if isinstance(value, list) else {key: value}
    return flat


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)


@dataclass(frozen=True)
class Systems(ResultList[SystemResult]):
    """Systems in the order given; prints as lines, turns into dicts and data frames.

    Attributes:
        items: a result a system; differences and p-values are against the first.
        metric: its name.
        signature: all choices that move the numbers.
        test: "bootstrap", "randomization", or None if nothing was drawn.
        resamples: of the bootstrap; None if there was none.
        trials: of the randomization; None with another test.
        exact: whether these are all there are; nothing is drawn then.
        seed: of all draws; None if nothing was drawn.
        segments: how many were scored.
        unit: what intervals and tests take as independent, "segments" or "documents"; None if there are none.
        units: how many of them there are.
        independence: the same in words, without a full stop.
        segments_per_draw: how many neighbors were drawn as one; 1 but for very long texts.
        higher_is_better: whether a higher score is the better one.
        percent: whether scores are ratios that people read as per cent.
        notes: what a reader must know to read the numbers.
    """

    metric: str
    signature: str
    test: str | None
    resamples: int | None
    trials: int | None
    seed: int | None
    segments: int
    segments_per_draw: int
    higher_is_better: bool
    percent: bool
    notes: tuple[str, ...] = ()
    exact: bool = False
    unit: str | None = None
    units: int | None = None
    independence: str = ""

    @property
    def best(self) -> SystemResult:
        """The system with the best score; of equal ones the first."""
        return (max if self.higher_is_better else min)(self.items, key=lambda item: item.score.score)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, full precision; a dict a system under "systems"."""
        names = ("metric", "signature", "test", "resamples", "trials", "exact", "seed", "segments", "segments_per_draw")
        return {
            **{name: getattr(self, name) for name in (*names, "unit", "units", "independence")},
            "best": self.best.system,
            "systems": [item.to_dict() for item in self.items],
            "notes": list(self.notes),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Return flat dicts: for each system the whole, with group None, then its groups."""
        return [row for item in self.items for row in item.to_rows()]

    def _cells(self) -> list[list[str]]:
        unit, scale = (" %", 100.0) if self.percent else ("", 1.0)
        rows = [["system", self.metric, "95 % interval", "difference", "p"]]
        for item in self.items:
            low, high = _ends(item.interval)
            interval = "-" if low is None or high is None else f"{scale * low:.2f} .. {scale * high:.2f}{unit}"
            difference = "-" if item.difference is None else f"{scale * item.difference:+.2f}"
            p = "-" if item.p_value_holm is None else f"{item.p_value_holm:.4f}"
            rows.append([item.system, f"{scale * item.score.score:.2f}{unit}", interval, difference, p])
        return rows if self.test is not None else [row[:2] for row in rows]

    def __str__(self) -> str:
        rows = self._cells()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        return "\n".join([*lines, *filter(None, [self.independence]), self.signature])

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        best = self.items.index(self.best)
        lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
        for i, row in enumerate(rows):
            before, after = ("<b>", "</b>") if i == best and len(rows) > 1 else ("", "")
            lines.append("<tr>" + "".join(f"<td>{before}{escape(cell)}{after}</td>" for cell in row) + "</tr>")
        sure = f"<p>{escape(self.independence)}</p>" if self.independence else ""
        return f"<table>{''.join(lines)}</table>{sure}<p><code>{escape(self.signature)}</code></p>"


@dataclass(frozen=True)
class Groups:
    """Sums of statistics of groups of segments.

    Attributes:
        names: of the groups.
        sums: of each system int64 [groups, columns].
    """

    names: tuple[str, ...]
    sums: tuple[Statistics, ...]

    def scores(self, metric: ScoredSums, system: int, references: int | None) -> dict[str, TaskScore]:
        """Return the score of each group of one system's segments.

        Args:
            metric: that gave the statistics.
            system: its index.
            references: how many a segment has, None where the number varies.
        """
        return {name: metric.score(self.sums[system][g], references) for g, name in enumerate(self.names)}


@dataclass(frozen=True)
class IndependentRows:
    """Statistics of what is taken as independent: documents, segments, or units of neighboring segments.

    Attributes:
        statistics: of each system, int64 [rows, columns].
        segments: how many there are in all rows; None: each row is one.
        segments_per_row: more than 1 where neighbors were added up (`UnitSums`).
        documents_by: what tells documents apart, for people; "unknown" if nothing does, `ONE_DOCUMENT` if there is one only.
        by_document: each row is the sum of a document.
    """

    statistics: Sequence[Statistics]
    segments: int | None = None
    segments_per_row: int = 1
    documents_by: str = UNKNOWN
    by_document: bool = False

    def with_documents(self, documents: Sequence[Statistics]) -> IndependentRows:
        """Return documents as rows where there are two or more; else the same rows, of one document.

        Args:
            documents: of each system, int64 [documents, columns], as `in_one_order` or `document_sums` gives them.

        >>> rows = IndependentRows([np.array([[1], [2], [4]])], documents_by="names")
        >>> rows.with_documents([np.array([[3], [4]])]).by_document
        True
        >>> rows.with_documents([np.array([[7]])]).documents_by
        'one document'
        """
        if len(documents[0]) < 2:
            return replace(self, documents_by=ONE_DOCUMENT)
        whole = len(self.statistics[0]) if self.segments is None else self.segments
        return IndependentRows(documents, whole, 1, self.documents_by, by_document=True)


def compare_systems(
    metric: ScoredSums,
    names: Sequence[str],
    rows: IndependentRows,
    references: int | None,
    *,
    groups: Groups | None = None,
    notes: Sequence[str] = (),
    settings: ComparisonSettings | None = None,
) -> Systems:
    """Score systems, draw intervals, and test each against the first.

    Intervals are the bootstrap's with both tests, from one set of draws for all systems. (sacreBLEU gives the first
    system other draws than the rest where it is asked for intervals beside the randomization test.) Where rows are
    documents, intervals come from leaving out one at a time, and the randomization of 16 or fewer counts all swaps. Of one
    system, or of one segment, nothing is tested.

    Args:
        metric: that gave the statistics.
        names: of the systems, the one to compare the others with first.
        rows: their statistics.
        references: how many a segment has, None where the number varies.
        groups: sums of groups of segments, to be scored too.
        notes: to be shown with the result.
        settings: the test, and how much is drawn.

    Raises:
        UsageError: names and statistics do not match, too few resamples, or a seed below 0.
    """
    settings = settings or ComparisonSettings()
    statistics, test = rows.statistics, settings.test
    _check_names(names, len(statistics))
    units = len(statistics[0])
    segments = units if rows.segments is None else rows.segments
    plan = Plan(
        *(test, len(names), units, segments, rows.segments_per_row, rows.documents_by, rows.by_document),
        *(settings.resamples, settings.seed),
    )
    totals = [part.sum(axis=0, dtype=np.int64) for part in statistics]
    scores = [metric.score(total, references, plan.choices()) for total in totals]
    drawn = draw(metric, names, statistics, plan, settings.threads)
    p_values = holm([of_system.p_value for of_system in drawn])
    doubtful = [note for name, one, p in zip(names, drawn, p_values, strict=True) for note in doubts(name, one, p, test)]
    items = (
        _result(name, score, scores[0], one, p, groups.scores(metric, i, references) if groups else {})
        for i, (name, score, one, p) in enumerate(zip(names, scores, drawn, p_values, strict=True))
    )
    return Systems(
        items=tuple(items),
        metric=metric.name,
        signature=scores[0].signature,
        test=test,
        resamples=plan.resamples,
        trials=plan.trials,
        exact=plan.exact,
        seed=plan.drawn_seed,
        segments=segments,
        segments_per_draw=rows.segments_per_row,
        unit=None if plan.units is None else plan.units.unit,
        units=None if plan.units is None else plan.units.units,
        independence=plan.independence(),
        higher_is_better=metric.higher_is_better,
        percent=metric.percent,
        notes=tuple(dict.fromkeys([*notes, *drawn[0].notes, *plan.caveats(), *doubtful])),
    )


def _result(
    name: str, score: TaskScore, first: TaskScore, drawn: Drawn, p: float | None, groups: dict[str, TaskScore]
) -> SystemResult:
    sure = drawn.interval
    return SystemResult(
        name,
        score,
        mean=None if sure is None else sure.mean,
        interval=None if sure is None else sure.interval,
        half_width=None if sure is None else sure.half_width,
        difference=None if score is first else score.score - first.score,
        difference_interval=drawn.difference_interval,
        p_value=drawn.p_value,
        p_value_holm=p,
        groups=groups,
    )


def _check_names(names: Sequence[str], systems: int) -> None:
    if not names or len(names) != systems:
        raise UsageError(f"{len(names)} names for {systems} systems: give one for each, and at least one system")
    repeated = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if repeated is not None:
        raise UsageError(f"two systems are called {repeated!r}: give each a name of its own")
