"""Percentiles of perplexity by group: a table of some of them with intervals, and all of them as a chart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmgauge.filtering.options import PERCENTS
from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted

if TYPE_CHECKING:
    from lmgauge.filtering.percentiles import Percentiles

SHOWN = (10.0, 30.0, 50.0, 70.0, 90.0)
"""The percentiles of the table; the file has all."""

_MOST_ROWS = 40
_MOST_LINES = 6  # of a chart


def blocks(percentiles: Percentiles) -> doc.Document:
    """Return a table and a chart for each model, and what a reader must know."""
    names = _largest(percentiles, _MOST_ROWS)
    return (
        *(_table(percentiles, model, names) for model in percentiles.models),
        *doc.notes(_notes(percentiles)),
        *(_chart(percentiles, model) for model in percentiles.models),
        *(doc.Signature(line) for line in percentiles.models.values()),
    )


def _largest(percentiles: Percentiles, most: int) -> list[str]:
    by_size = sorted(percentiles.groups, key=lambda name: -percentiles.groups[name].documents)
    return sorted(by_size[:most])


def _table(percentiles: Percentiles, model: str, names: list[str]) -> doc.Table:
    rows: list[str | None] = [*names, *([None] if percentiles.has_stand_in else [])]
    groups = [percentiles.overall if name is None else percentiles.groups[name] for name in rows]
    own = [name is None or percentiles.has_own(model, name) for name in rows]
    columns = [
        doc.labels(percentiles.group or "group", ["all" if name is None else name for name in rows]),
        doc.numbers("documents", [group.documents for group in groups], form="count"),
        doc.numbers("scored", [group.scored(model) for group in groups], form="count", drop=6),
    ]
    is_sampled = any(group.sampled < group.documents for group in groups)
    for percent, drop in zip(SHOWN, (1, 3, 5, 4, 2), strict=True):  # the ends of the outer percentiles go first
        values = [percentiles.value(model, name, percent) if has else None for name, has in zip(rows, own, strict=True)]
        columns.append(doc.numbers(f"p{percent:g}", values, 1))
        if is_sampled:
            cells = [_interval(percentiles, model, name, percent) for name in rows]
            columns.append(doc.Column(f"95 % of p{percent:g}", cells, drop))
    title = f"perplexity by {model}" if len(percentiles.models) > 1 else "perplexity"
    return doc.Table(tuple(columns), title, bold=(len(rows) - 1,) if percentiles.has_stand_in else ())


def _interval(percentiles: Percentiles, model: str, group: str | None, percent: float) -> doc.Cell:
    # interval of a percentile; a dash where a group has no percentiles of its own.
    of_group = percentiles.overall if group is None else percentiles.groups[group]
    if group is not None and not percentiles.has_own(model, group):
        return doc.Number(None)
    if of_group.sampled == of_group.documents:
        return "exact"
    _, low, high = percentiles.row(model, group, percent)
    return doc.Number(None) if low is None or high is None else doc.between((low, high), 1)


def _notes(percentiles: Percentiles) -> Iterator[str]:
    overall, group, sample = percentiles.overall, percentiles.group, percentiles.sample
    of_each = " of each group" if group is not None else ""
    size = "all documents" if sample is None else f"up to {sample:,} documents{of_each}"
    yield f"learned on {size}; {overall.documents:,} documents were read (seed {percentiles.seed})"
    if percentiles.bad_records:
        yield f"{counted(percentiles.bad_records, 'record')} without valid text left out"
    for name in percentiles.models:
        if missing := overall.sampled - overall.scored(name):
            yield f"{missing:,} of {overall.sampled:,} sampled documents have no perplexity by {name}"
    judges = "judges them by the percentiles of all" if percentiles.has_stand_in else "drops them: no model is for them"
    small = [
        name for name in percentiles.groups if not all(percentiles.has_own(model, name) for model in percentiles.models)
    ]
    if small:
        count = sum(percentiles.groups[name].documents for name in small)
        these = "1 group has" if len(small) == 1 else f"{len(small):,} groups have"
        yield (
            f"{these} fewer than {percentiles.least:,} documents with a perplexity ({count:,} documents): a filter {judges}"
        )
    loose = overall.documents - sum(group.documents for group in percentiles.groups.values())
    if group is not None and loose:
        yield f"{loose:,} documents have no {group}: a filter {judges}"
    hidden = len(percentiles.groups) - _MOST_ROWS
    if hidden > 0:
        yield f"the {_MOST_ROWS} largest groups are shown; the file has {hidden:,} more"


def _chart(percentiles: Percentiles, model: str) -> doc.ChartData:
    groups: list[str | None] = [name for name in _largest(percentiles, _MOST_LINES) if percentiles.has_own(model, name)]
    rest = [None] if percentiles.has_stand_in else []
    several = len(percentiles.models) > 1
    name, by = (f"percentiles-{[*percentiles.models].index(model) + 1}", f" by {model}") if several else ("percentiles", "")
    title, x = f"Percentiles of perplexity{by}", "documents up to this perplexity"
    lines = tuple(_line(percentiles, model, name) for name in [*groups, *rest])
    note = f"the largest groups{', and all documents' * len(rest)}" if len(groups) < len(percentiles.groups) else ""
    return doc.ChartData(name, title, x, "perplexity", "", lines, x_unit="%", log_y=True, note=note)


def _line(percentiles: Percentiles, model: str, group: str | None) -> doc.Series:
    x = tuple(percent for percent in PERCENTS if not 1 < percent < 99 or percent % 2 == 0)
    y, low, high = zip(*(percentiles.row(model, group, percent) for percent in x), strict=True)
    return doc.Series("all documents" if group is None else group, x, y, low, high)
