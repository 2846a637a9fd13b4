"""Systems scored on a task, as people read them: the scores, how sure they are, their parts, and groups of segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from lmgauge.numerics.intervals import Interval
from lmgauge.report.slices import Column, print_table
from lmgauge.report.terminal import console, number, p_value, readable, sign, signed
from lmgauge.tasks.comparison import BOOTSTRAP_TEST, SIGNIFICANT, SystemResult, Systems
from lmgauge.tasks.metrics.protocol import TaskScore

MARK = "*"
"""Before p-values of systems that differ from the first."""


class _Part(NamedTuple):
    """A part of a score: its key in the score's dict (`x_*` stands for x_1, x_2, ...), and how it is shown."""

    key: str
    heading: str
    shown: Callable[[Any], str]
    goes: int


def _count(value: Any) -> str:
    return f"{value:,.0f}"


def _percent(value: Any) -> str:
    return f"{100 * value:.2f} %"


def _figure(value: Any) -> str:
    return number(value, 2)


def _ratio(value: Any) -> str:
    return number(value, 3)


def _each(values: Any) -> str:
    return "/".join(f"{value:.1f}" for value in values)


# In the order of the columns; where there is no room those with low numbers go first.
_PARTS = (
    _Part("precision_*", "precisions", _each, 1),
    _Part("brevity_penalty", "BP", _ratio, 3),
    _Part("ratio", "ratio", _ratio, 2),
    _Part("precision", "precision", _figure, 1),
    _Part("recall", "recall", _figure, 2),
    _Part("macro_precision", "precision (macro)", _percent, 2),
    _Part("macro_recall", "recall (macro)", _percent, 1),
    _Part("accuracy", "accuracy", _percent, 4),
    _Part("num_edits", "edits", _count, 2),
    _Part("ref_length", "ref. words", _count, 1),
    _Part("substitutions", "subs", _count, 6),
    _Part("deletions", "dels", _count, 5),
    _Part("insertions", "ins", _count, 4),
    _Part("mer", "MER", _percent, 3),
    _Part("wil", "WIL", _percent, 2),
)
_INTERVAL_GOES, _DIFFERENCE_GOES, _P_GOES = 7, 8, 9


def print_systems(systems: Systems, *, width: int = 2) -> None:
    """A row a system, then its groups, then what a reader must know, then the signature.

    Args:
        systems: what was found.
        width: digits after the point of scores; rates of errors are told in per cent.
    """
    scale = 100.0 if systems.percent else 1.0
    segments = f"{systems.segments:,} segment{'s' * (systems.segments != 1)}"
    best = systems.items.index(systems.best)
    bold = [best] if len(systems) > 1 else []
    labels = [readable(item.system) for item in systems]
    columns = [Column(_heading(systems), [number(scale * item.score.score, width) for item in systems])]
    columns += [*_drawn_columns(systems, scale, width), *_part_columns([item.score for item in systems])]
    better = "" if systems.higher_is_better else "; lower is better"
    print_table(f"{systems.metric}, {segments}{better}", labels, columns, heading="system", bold=bold)
    _print_groups(systems, scale, width)
    out = console()
    for line in _footnotes(systems):
        out.print(readable(line), style="dim")
    out.print(readable(f"{systems.metric}|{systems.signature}"), style="cyan", soft_wrap=True)


def print_labels(systems: Systems) -> None:
    """A table a system with precision, recall and F1 of each label, in per cent, and how often it is gold and predicted.

    Args:
        systems: of `score_labels`.
    """
    for item in systems:
        report = getattr(item.score, "report", None)
        if report is None:
            continue
        rates = [("precision", report.precision), ("recall", report.recall), ("F1", report.f1)]
        columns = [Column(heading, [_percent(value) for value in values]) for heading, values in rates]
        columns += [
            Column("gold", [_count(value) for value in report.support], 2),
            Column("predicted", [_count(value) for value in report.predicted], 1),
        ]
        print_table(f"Labels of {readable(item.system)}", [readable(x) for x in report.labels], columns, heading="label")


def _heading(systems: Systems) -> str:
    return f"{systems.metric} %" if systems.percent else systems.metric


def _drawn_columns(systems: Systems, scale: float, width: int) -> Iterator[Column]:
    items = systems.items
    if any(item.interval is not None for item in items):
        yield Column("95 % interval", [_interval(item.interval, scale, width) for item in items], _INTERVAL_GOES)
    if len(items) > 1:
        differences = [None if item.difference is None else scale * item.difference for item in items]
        yield Column("difference", [signed(value, width) for value in differences], _DIFFERENCE_GOES)
    if any(item.p_value_holm is not None for item in items):
        tested = sum(item.p_value_holm is not None for item in items)
        yield Column("p (Holm)" if tested > 1 else "p", [_p(item) for item in items], _P_GOES)


def _interval(interval: Interval | None, scale: float, width: int) -> str:
    if interval is None:
        return number(None)
    return f"{number(scale * interval.low, width)} {sign('–', '-')} {number(scale * interval.high, width)}"


def _p(item: SystemResult) -> str:
    return (f"{MARK} " if item.significant else "") + p_value(item.p_value_holm)


def _part_columns(scores: Sequence[TaskScore]) -> Iterator[Column]:
    parts = [score.to_dict() for score in scores]
    for part in _PARTS:
        values = [_part(found, part.key) for found in parts]
        if None not in values:
            yield Column(part.heading, [part.shown(value) for value in values], part.goes)


def _part(parts: dict[str, Any], key: str) -> Any:
    if not key.endswith("*"):
        return parts.get(key)
    return [value for name, value in parts.items() if name.startswith(key[:-1]) and name[len(key) - 1 :].isdigit()] or None


def _print_groups(systems: Systems, scale: float, width: int) -> None:
    groups = list(systems.items[0].groups)
    if not groups:
        return
    if len(systems) == 1:
        scores = [systems.items[0].groups[group] for group in groups]
        columns = [Column(_heading(systems), [number(scale * score.score, width) for score in scores])]
        columns += _part_columns(scores)
        print_table("by group", [readable(group) for group in groups], columns, heading="group")
        return
    columns = [
        Column(
            readable(item.system),
            [number(scale * item.groups[group].score, width) for group in groups],
            len(systems) - i if i else 0,
        )
        for i, item in enumerate(systems)
    ]
    print_table(f"{_heading(systems)} by group", [readable(group) for group in groups], columns, heading="group")


def _footnotes(systems: Systems) -> Iterator[str]:
    """What the mark means, what is taken as independent, and notes."""
    tested = [item for item in systems if item.p_value_holm is not None]
    if tested:
        if systems.test == BOOTSTRAP_TEST:
            how = f"paired bootstrap, {systems.resamples:,} resamples"
        elif systems.exact:
            how = f"randomization, all {systems.trials:,} swaps of {systems.unit}"
        else:
            how = f"approximate randomization, {systems.trials:,} trials"
        adjusted = f", p adjusted for {len(tested)} comparisons (Holm)" if len(tested) > 1 else ""
        real = f"{MARK} " if any(item.significant for item in tested) else "none "
        yield f"{real}differs from {systems.items[0].system} at {100 * SIGNIFICANT:.0f} % ({how}{adjusted})."
    if systems.independence:
        yield f"{systems.independence}."
    yield from systems.notes
