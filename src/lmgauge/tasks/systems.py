"""Several systems scored on the same segments: what each reaches, how sure that is, whether it differs from the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import SIGNIFICANCE_TESTS
from lmgauge.errors import MissingExtraError, UsageError
from lmgauge.evaluation.paired import holm
from lmgauge.evaluation.statistics import Interval
from lmgauge.tasks.metric import ScoredSums, Statistics, TaskScore
from lmgauge.tasks.significance import (
    DEFAULT_RESAMPLES,
    DEFAULT_SEED,
    DEFAULT_TRIALS,
    Floats,
    bootstrap_p_value,
    bootstrap_sums,
    estimate,
    randomization_p_value,
    randomized_sums,
)

if TYPE_CHECKING:
    import pandas as pd

RANDOMIZATION_TEST, BOOTSTRAP_TEST = SIGNIFICANCE_TESTS
SIGNIFICANT = 0.05
# Below so many segments intervals are too narrow, and the bootstrap's rule, made for test sets, gives too small p-values.
_FEW = 30


@dataclass(frozen=True)
class SystemResult:
    """One system's score, and how it stands to the first system.

    Attributes:
        system: its name.
        score: the number and its parts.
        mean: of the scores over resamples.
        interval: of 95 %, by the bootstrap over segments; None where nothing was drawn.
        half_width: half its width, what sacreBLEU prints after ±.
        difference: score minus the score of the first system; None for the first one itself.
        difference_interval: of 95 %, over the same resamples.
        p_value: of the test that was asked for, against the first system.
        p_value_holm: adjusted for all systems held against the first (Holm 1979).
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
        """The score, its parts and what was drawn, flat and in full precision; groups as a dict of dicts."""
        found = {"system": self.system} | self.score.to_dict() | self._drawn()
        return found | ({"groups": {name: score.to_dict() for name, score in self.groups.items()}} if self.groups else {})

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
        """A flat dict for the whole, with group None, and one for each group."""
        whole = {"system": self.system, "group": None} | _flat(self.score) | self._drawn()
        return [whole, *({"system": self.system, "group": g} | _flat(score) for g, score in self.groups.items())]


def _flat(score: TaskScore) -> dict[str, Any]:
    """The score and its parts; of a list each entry by its number, from 1."""
    found: dict[str, Any] = {}
    for key, value in score.to_dict().items():
        found |= {f"{key}_{i}": part for i, part in enumerate(value, 1)} if isinstance(value, list) else {key: value}
    return found


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)


@dataclass(frozen=True)
class Systems(Sequence[SystemResult]):
    """Systems in the order given; prints as lines, turns into dicts and data frames.

    Attributes:
        items: a result a system; differences and p-values are against the first.
        metric: its name.
        signature: all choices that move the numbers.
        test: "bootstrap", "randomization", or None if nothing was drawn.
        resamples: of the bootstrap that gives the intervals; None if nothing was drawn.
        trials: of the randomisation; None with another test.
        seed: of all draws.
        segments: how many were scored.
        segments_per_draw: how many neighbours were drawn as one; 1 but for very long texts.
        higher_is_better: whether a higher score is the better one.
        percent: whether scores are ratios that people read as per cent.
        notes: what a reader must know to read the numbers.
    """

    items: tuple[SystemResult, ...]
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

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    @property
    def best(self) -> SystemResult:
        """The system with the best score; of equal ones the first."""
        return (max if self.higher_is_better else min)(self.items, key=lambda item: item.score.score)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, full precision; a dict a system under "systems"."""
        names = ("metric", "signature", "test", "resamples", "trials", "seed", "segments", "segments_per_draw")
        return {
            **{name: getattr(self, name) for name in names},
            "best": self.best.system,
            "systems": [item.to_dict() for item in self.items],
            "notes": list(self.notes),
        }

    def to_rows(self) -> list[dict[str, Any]]:
        """Flat dicts: for each system the whole, with group None, then its groups."""
        return [row for item in self.items for row in item.to_rows()]

    def to_pandas(self) -> pd.DataFrame:
        """A row a system, and one a group.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError("pandas", extra="pandas") from error
        return pandas.DataFrame(self.to_rows())

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
        return "\n".join([*lines, self.signature])

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        best = self.items.index(self.best)
        lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
        for i, row in enumerate(rows):
            before, after = ("<b>", "</b>") if i == best and len(rows) > 1 else ("", "")
            lines.append("<tr>" + "".join(f"<td>{before}{escape(cell)}{after}</td>" for cell in row) + "</tr>")
        return f"<table>{''.join(lines)}</table><p><code>{escape(self.signature)}</code></p>"


@dataclass(frozen=True)
class Groups:
    """Sums of statistics of groups of segments.

    Attributes:
        names: of the groups.
        sums: of each system int64 [groups, columns].
    """

    names: tuple[str, ...]
    sums: tuple[Statistics, ...]

    @classmethod
    def of_segments(cls, codes: NDArray[np.integer[Any]], names: Sequence[str], statistics: Sequence[Statistics]) -> Groups:
        """Add up.

        Args:
            codes: the group of each segment, an index into `names`.
            names: of the groups.
            statistics: of each system, int64 [segments, columns].
        """
        return cls(tuple(names), tuple(group_sums(codes, len(names), part) for part in statistics))


def group_sums(codes: NDArray[np.integer[Any]], groups: int, statistics: Statistics) -> Statistics:
    """Sums of statistics for each group.

    Args:
        codes: the group of each segment, 0 to `groups` - 1.
        groups: how many there are.
        statistics: int64 [segments, columns].

    Returns:
        int64 [groups, columns].
    """
    sums = np.zeros((groups, statistics.shape[1]), dtype=np.int64)
    np.add.at(sums, codes, statistics)
    return sums


def compare_systems(
    metric: ScoredSums,
    names: Sequence[str],
    statistics: Sequence[Statistics],
    references: int | None,
    *,
    test: str | None = RANDOMIZATION_TEST,
    resamples: int | None = None,
    seed: int = DEFAULT_SEED,
    segments: int | None = None,
    segments_per_draw: int = 1,
    groups: Groups | None = None,
    notes: Sequence[str] = (),
    threads: int | None = None,
) -> Systems:
    """Score systems, draw intervals, and test each against the first.

    Intervals are the bootstrap's with both tests, from one set of draws for all systems. (sacreBLEU gives the first
    system other draws than the rest where it is asked for intervals beside the randomisation test.) Of one system, or of
    one segment, nothing is tested.

    Args:
        metric: that gave the statistics.
        names: of the systems, the one to hold the others against first.
        statistics: of each system, int64 [segments, columns], or of units of neighbours (`UnitSums`).
        references: a segment has, None where the number varies.
        test: "bootstrap" (paired), "randomization" (approximate), or None to draw nothing at all.
        resamples: of the test; None: 1,000 resamples of the bootstrap (40 at least), 10,000 trials of the randomisation.
            Beside the latter, intervals are of 1,000 resamples.
        seed: of all draws.
        segments: how many there are, if `statistics` are of units.
        segments_per_draw: segments a unit.
        groups: sums of groups of segments, to be scored too.
        notes: to be shown with the result.
        threads: how many; no number depends on it.

    Raises:
        UsageError: no such test, names and statistics do not match, too few resamples, or a seed below 0.
    """
    _check(names, statistics, test)
    rows = len(statistics[0])
    tosses = test == RANDOMIZATION_TEST and len(names) > 1
    trials = (DEFAULT_TRIALS if resamples is None else resamples) if tosses else None
    draws = DEFAULT_RESAMPLES if resamples is None or test == RANDOMIZATION_TEST else resamples
    drawing = test is not None and rows > 1
    choices = _choices(draws, trials, seed, segments_per_draw) if drawing else {}
    totals = [part.sum(axis=0, dtype=np.int64) for part in statistics]
    scores = [metric.score(total, references, choices) for total in totals]
    drawn = [_Drawn() for _ in names]
    told = [*notes]
    if test is not None:
        if drawing:
            _draw_intervals(metric, statistics, scores, drawn, draws, seed, tested=trials is None)
        if drawing and trials is not None:
            _randomize(metric, statistics, drawn, trials, seed, threads)
        told += _settle_identical(names, statistics, drawn)
        told += _caveats(rows, segments_per_draw, test)
    adjusted = holm([found.p_value for found in drawn])
    told += [note for name, found, p in zip(names, drawn, adjusted, strict=True) for note in _doubts(name, found, p, test)]
    items = (
        _result(name, score, scores[0], found, p, _group_scores(metric, groups, i, references))
        for i, (name, score, found, p) in enumerate(zip(names, scores, drawn, adjusted, strict=True))
    )
    return Systems(
        items=tuple(items),
        metric=metric.name,
        signature=scores[0].signature,
        test=test,
        resamples=draws if drawing else None,
        trials=trials if drawing else None,
        seed=seed if drawing else None,
        segments=rows if segments is None else segments,
        segments_per_draw=segments_per_draw,
        higher_is_better=metric.higher_is_better,
        percent=metric.percent,
        notes=tuple(dict.fromkeys(told)),
    )


@dataclass
class _Drawn:
    """What resampling found of one system."""

    interval: tuple[float | None, Interval | None, float | None] = (None, None, None)
    difference_interval: Interval | None = None
    p_value: float | None = None


def _result(
    name: str, score: TaskScore, first: TaskScore, drawn: _Drawn, p: float | None, groups: dict[str, TaskScore]
) -> SystemResult:
    return SystemResult(
        name,
        score,
        *drawn.interval,
        difference=None if score is first else score.score - first.score,
        difference_interval=drawn.difference_interval,
        p_value=drawn.p_value,
        p_value_holm=p,
        groups=groups,
    )


def _check(names: Sequence[str], statistics: Sequence[Statistics], test: str | None) -> None:
    if test is not None and test not in SIGNIFICANCE_TESTS:
        raise UsageError(f"test {test!r} is not known; choose from {', '.join(SIGNIFICANCE_TESTS)}, or None to draw nothing")
    if not names or len(names) != len(statistics):
        raise UsageError(f"{len(names)} names for {len(statistics)} systems: give one for each, and at least one system")
    repeated = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if repeated is not None:
        raise UsageError(f"two systems are called {repeated!r}: give each a name of its own")


def _choices(draws: int, trials: int | None, seed: int, segments_per_draw: int) -> dict[str, str]:
    """Keys of the signature, in sacreBLEU's order."""
    found = {"bs": draws, "ar": trials, "seed": seed, "block": segments_per_draw if segments_per_draw > 1 else None}
    return {key: str(value) for key, value in found.items() if value is not None}


def _draw_intervals(
    metric: ScoredSums,
    statistics: Sequence[Statistics],
    scores: Sequence[TaskScore],
    drawn: Sequence[_Drawn],
    resamples: int,
    seed: int,
    *,
    tested: bool,
) -> None:
    resampled: list[Floats] = [metric.scores(sums) for sums in bootstrap_sums(statistics, resamples, seed)]
    for i, (found, values) in enumerate(zip(drawn, resampled, strict=True)):
        found.interval = estimate(values, seed)
        if i:
            found.difference_interval = estimate(values - resampled[0], seed).interval
        if i and tested:
            found.p_value = bootstrap_p_value(resampled[0], values, scores[i].score - scores[0].score)


def _randomize(
    metric: ScoredSums,
    statistics: Sequence[Statistics],
    drawn: Sequence[_Drawn],
    trials: int,
    seed: int,
    threads: int | None,
) -> None:
    # By the formula of the trials, so that a trial that swaps all or nothing ties with the real difference.
    totals = np.stack([part.sum(axis=0, dtype=np.int64) for part in statistics]).astype(np.float64)
    real = metric.scores(totals)
    mixed = randomized_sums(statistics[0], statistics[1:], trials, seed, threads)
    for i, (mine, theirs) in enumerate(mixed, start=1):
        difference = float(real[i] - real[0])
        differing = int((statistics[i] != statistics[0]).any(axis=1).sum())
        drawn[i].p_value = randomization_p_value(metric.scores(mine), metric.scores(theirs), difference, differing)


def _settle_identical(names: Sequence[str], statistics: Sequence[Statistics], drawn: Sequence[_Drawn]) -> list[str]:
    """P-value 1 where nothing tells a system from the first: the bootstrap's rule would give the least."""
    same = []
    for name, part, found in list(zip(names, statistics, drawn, strict=True))[1:]:
        if found.p_value is not None and np.array_equal(part, statistics[0]):
            found.p_value = 1.0
            same.append(name)
    if not same:
        return []
    who = same[0] if len(same) == 1 else f"{same[0]} and {len(same) - 1} more"
    return [f"{who}: the same counts as {names[0]} in every segment, so p = 1 (sacreBLEU prints its least p-value)"]


def _caveats(rows: int, segments_per_draw: int, test: str) -> list[str]:
    notes = []
    if rows == 1:
        notes.append("one segment: there is nothing to draw from, so no interval and no test")
    elif rows < _FEW:
        lenient = " and p-values too small" if test == BOOTSTRAP_TEST else ""
        notes.append(f"{rows} segments are few: intervals are too narrow{lenient}; take {_FEW} or more")
    if segments_per_draw > 1:
        notes.append(f"{segments_per_draw} neighbouring segments at a time were drawn as one (block:{segments_per_draw})")
    return notes


def _doubts(name: str, found: _Drawn, p: float | None, test: str | None) -> Iterator[str]:
    """Where the lenient rule of the paired bootstrap says yes and the interval from the same draws does not."""
    interval = found.difference_interval
    if test == BOOTSTRAP_TEST and p is not None and p < SIGNIFICANT and interval and interval.low <= 0 <= interval.high:
        yield (
            f"{name}: p is below {SIGNIFICANT} by sacreBLEU's rule, which counts one side only, but the 95 % interval of "
            "the difference holds 0: ask the randomization test"
        )


def _group_scores(metric: ScoredSums, groups: Groups | None, system: int, references: int | None) -> dict[str, TaskScore]:
    if groups is None:
        return {}
    return {name: metric.score(groups.sums[system][g], references) for g, name in enumerate(groups.names)}
