"""Several systems scored on the same segments: what each reaches, how sure that is, whether it differs from the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lmgauge.base.errors import UsageError
from lmgauge.base.result_list import ResultList
from lmgauge.numerics.intervals import Interval
from lmgauge.numerics.resampling import holm
from lmgauge.tasks.metrics.protocol import ScoredSums, Statistics, TaskScore
from lmgauge.tasks.settings import ComparisonSettings
from lmgauge.tasks.significance import (
    SIGNIFICANT,
    IndependentRows,
    SignificancePlan,
    Uncertainty,
    doubts,
    uncertainties,
    widest,
)

_DRAWN = (
    *("mean", "interval_low", "interval_high", "half_width", "difference", "difference_low", "difference_high"),
    *("p_value", "p_value_holm", "significant"),
)


@dataclass(frozen=True)
class SystemResult:
    """One system's score, and how it stands to the first system."""

    system: str
    score: TaskScore
    mean: float | None = None  # of the scores over the resamples of sacreBLEU's tests; None without them
    # of 95 %, by the test that was asked for; None where there was none, or fewer than six units
    interval: Interval | None = None
    # half its width before it ends at the bounds of the score, what sacreBLEU prints after ±
    half_width: float | None = None
    difference: float | None = None  # score minus the score of the first system; None for the first one itself
    difference_interval: Interval | None = None
    p_value: float | None = None  # of the test that was asked for, against the first system
    p_value_holm: float | None = None  # adjusted for all systems that are compared with the first (Holm 1979)
    groups: dict[str, TaskScore] = field(default_factory=dict)  # the score of each group of segments

    @property
    def significant(self) -> bool | None:
        """Return True if it differs from the first system at 5 %, adjusted for the number of systems; None if not tested."""
        return None if self.p_value_holm is None else self.p_value_holm < SIGNIFICANT

    def to_dict(self) -> dict[str, Any]:
        """Return the score, its parts and what was drawn, flat and in full precision; groups as a dict of dicts."""
        whole = {"system": self.system} | self.score.to_dict() | self._drawn()
        return whole | ({"groups": {name: score.to_dict() for name, score in self.groups.items()}} if self.groups else {})

    def _drawn(self) -> dict[str, Any]:
        values = (
            *(self.mean, *_ends(self.interval), self.half_width, self.difference, *_ends(self.difference_interval)),
            *(self.p_value, self.p_value_holm, self.significant),
        )
        return dict(zip(_DRAWN, values, strict=True))

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a flat dict for the whole, with group None, and one for each group."""
        unit = {"interval_unit": None if self.interval is None else self.interval.unit}
        whole = {"system": self.system, "group": None} | _flat(self.score) | self._drawn() | unit
        return [whole, *({"system": self.system, "group": g} | _flat(score) for g, score in self.groups.items())]


def _flat(score: TaskScore) -> dict[str, Any]:
    # Score and its parts; of a tuple each entry by its number, from 1.
    flat: dict[str, Any] = {}
    for key, value in score.to_dict().items():
        flat |= {f"{key}_{i}": part for i, part in enumerate(value, 1)} if isinstance(value, tuple) else {key: value}
    return flat


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)


@dataclass(frozen=True, repr=False)
class Systems(ResultList[SystemResult]):
    """Systems in the order given; prints as lines, turns into dicts and data frames.

    Attributes:
        items: a result a system; differences and p-values are against the first.
        metric: its name.
        signature: all choices that move the numbers.
        test: "student", "sacrebleu", "sacrebleu-bootstrap", or None if there was none.
        resamples: of sacreBLEU's bootstrap; None with another test.
        trials: of sacreBLEU's randomization; None with another test.
        seed: of all draws; None if nothing was drawn.
        segments: how many were scored.
        unit: what intervals and tests take as independent, "documents" or "segments"; "unknown" if documents are not known
            or fewer than six; None if there are no intervals.
        units: how many of them there are.
        independence: the same in words, without a full stop.
        segments_per_draw: how many neighbors were taken as one; 1 but for very long texts.
        higher_is_better: whether a higher score is the better one.
        percent: whether scores are ratios that people read as per cent.
        notes: what a reader must know to read the numbers.

    Example:
        >>> import lmgauge
        >>> outputs = {"a": ["a dog barks", "it rains"], "b": ["the dog barks", "it rains"]}
        >>> references = ["the dog barks", "it is raining"]
        >>> systems = lmgauge.tasks.score_systems(lmgauge.tasks.WER(), hypotheses=outputs, references=references)
        >>> systems.best.system, round(systems[1].difference, 3), systems.unit
        ('b', -0.167, None)
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
    unit: str | None = None
    units: int | None = None
    independence: str = ""

    @property
    def best(self) -> SystemResult:
        """The system with the best score; of equal ones the first."""
        return (max if self.higher_is_better else min)(self.items, key=lambda item: item.score.score)

    @property
    def scale(self) -> float:
        """What scores are shown times: 100 for ratios that people read as per cent."""
        return 100.0 if self.percent else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, full precision; a dict a system under "systems"."""
        names = ("metric", "signature", "test", "resamples", "trials", "seed", "segments", "segments_per_draw")
        return {
            **{name: getattr(self, name) for name in (*names, "unit", "units", "independence")},
            "best": self.best.system,
            "systems": [item.to_dict() for item in self.items],
            "notes": list(self.notes),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Return flat dicts: for each system the whole, with group None, then its groups."""
        return [row for item in self.items for row in item.to_rows()]

    def _in_brief(self) -> str:
        unit = " %" if self.percent else ""
        return f"{self.metric}: " + ", ".join(f"{s.system} {self.scale * s.score.score:.2f}{unit}" for s in self.items)


def compare_systems(
    metric: ScoredSums,
    names: Sequence[str],
    rows: IndependentRows,
    references: int | None,
    *,
    groups: Sequence[Mapping[str, Statistics]] = (),
    notes: Sequence[str] = (),
    settings: ComparisonSettings | None = None,
) -> Systems:
    """Score systems, with intervals, and test each against the first."""
    # With sacreBLEU's tests the intervals of both are the bootstrap's, from one set of draws for all systems. (sacreBLEU
    # gives the first system other draws than the rest where it is asked for intervals beside the randomization test.) Of
    # one system, or of fewer than six units, nothing is tested.
    plan = SignificancePlan(rows, settings or ComparisonSettings())
    test = plan.settings.test
    _check_names(names, len(rows.statistics))
    totals = [part.sum(axis=0, dtype=np.int64) for part in rows.statistics]
    drawn = uncertainties(metric, names, plan)
    lead = widest(drawn)
    scores = [metric.score(total, references, plan.choices(lead)) for total in totals]
    p_values = holm([of_system.p_value for of_system in drawn])
    doubtful = [note for name, one, p in zip(names, drawn, p_values, strict=True) for note in doubts(name, one, p, test)]
    items = (
        _result(name, score, scores[0], one, p, {g: metric.score(part, references) for g, part in of_groups.items()})
        for name, score, one, p, of_groups in zip(names, scores, drawn, p_values, groups or [{}] * len(names), strict=True)
    )
    return Systems(
        items=tuple(items),
        metric=metric.name,
        signature=scores[0].signature,
        test=test,
        resamples=plan.resamples,
        trials=plan.trials,
        seed=plan.drawn_seed,
        segments=rows.count,
        segments_per_draw=rows.segments_per_row,
        unit=None if lead is None else lead.unit,
        units=None if lead is None else lead.units,
        independence=plan.independence(lead),
        higher_is_better=metric.higher_is_better,
        percent=metric.percent,
        notes=tuple(dict.fromkeys([*notes, *drawn[0].notes, *plan.caveats(lead), *doubtful])),
    )


def _result(
    name: str, score: TaskScore, first: TaskScore, drawn: Uncertainty, p: float | None, groups: dict[str, TaskScore]
) -> SystemResult:
    mean, interval, half_width = drawn.interval or (None, None, None)
    difference = None if score is first else score.score - first.score
    tested = (drawn.difference_interval, drawn.p_value, p)
    return SystemResult(name, score, mean, interval, half_width, difference, *tested, groups)


def _check_names(names: Sequence[str], systems: int) -> None:
    if not names or len(names) != systems:
        raise UsageError(f"{len(names)} names for {systems} systems: give one for each, and at least one system")
    repeated = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if repeated is not None:
        raise UsageError(f"two systems are called {repeated!r}: give each a name of its own")
