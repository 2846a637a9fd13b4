"""The numbers of a chart as rows for drawing, the ranges of its axes, what is said of it, and where names stand."""

# What comes from a file or a model is only ever a value of one of the fixed fields of a row (`x`, `series`, `what`, ...),
# never a field's name, an expression or a format.

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from statistics import median
from typing import Any
from urllib.parse import quote

from lmgauge.base.escaping import visible_on_page as visible
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report.blocks import ChartData, Series

Row = dict[str, Any]
WIDTH, PAGE_WIDTH = 680, 430
"""Of a chart, in pixels, with its axes: letters are of the same size in all. On a page two stand side by side."""
_WIDE = 4.0  # an interval this many times as wide as the median one may leave the chart
_ROOM = 0.75  # of the axis: an interval may lengthen it so far on each side
_FROM_ZERO = 0.35  # an axis begins at 0 where the lowest value is at most this part of the highest
_ROUNDING = 1e-12
_LEAST_SPAN = 0.02  # of the highest value: without intervals, smaller differences are not blown up


@dataclass(frozen=True)
class Values:
    """What a chart draws."""

    # one for each point with the fields `series`, `x`, `y`, `low`, `high`, `what` (a description) and, as far as there are
    # any, `href`, `name`, `end` (of a bin), `alone_low` and `alone_high` (an interval without neighbors); `bound` in the
    # place of `y`, `low` and `high` where a value is only a lower bound
    rows: list[Row]
    series: tuple[str, ...]  # names, each once, safe to show
    names: tuple[str, ...]  # what x are, in their order, each once, safe to show; empty where x are numbers
    x: tuple[float, float]  # x, y: lowest and highest value to draw
    y: tuple[float, float]
    is_cut: bool  # some intervals are longer than the axis
    missing: int  # how many values are not finite, or cannot be drawn on a logarithmic axis
    width: int  # pixels, axes included


def values(chart: ChartData, *, width: int = WIDTH, links: bool = False) -> Values:
    """Return the rows and ranges of a chart."""
    numeric = all(isinstance(x, int | float) for series in chart.series for x in series.x)
    shown = {} if numeric else _distinct([str(x) for series in chart.series for x in series.x])
    titles = _titles([series.name for series in chart.series])
    rows = [
        row
        for series, title in zip(chart.series, titles, strict=True)
        for row in _rows(chart, series, title, shown, links=links)
    ]
    low, high, is_cut = _extent(chart, rows)
    for row in rows if chart.log_y else ():  # a lower end that has no logarithm: the interval reaches down to the axis
        if row["low"] is None and row["high"] is not None:
            row["low"] = low
    places = [row[end] for row in rows for end in ("x", "end") if row.get(end) is not None] if numeric else []
    x = (min(places), max(places)) if places else (0.1, 1.0)
    if chart.kind == "scatter":
        x, (low, high) = _with_room(x, log=chart.log_x), _with_room((low, high), log=chart.log_y)
    missing = sum(row["y"] is None and row["low"] is None and "bound" not in row for row in rows)
    if chart.kind == "histogram":
        missing = 0
    return Values(rows, titles, tuple(shown.values()), x, (low, high), is_cut, missing, width)


def _rows(chart: ChartData, series: Series, title: str, shown: dict[str, str], *, links: bool) -> Iterator[Row]:
    columns = zip_longest(series.x, series.y, series.low, series.high, series.names)
    rows: list[Row] = []
    intervals = []
    for x, *numbers, name in columns:
        place = shown[str(x)] if shown else _drawable(x, log=chart.log_x)
        if place is None:
            continue
        if is_bound := isinstance(numbers[0], LowerBound):
            numbers = [numbers[0], None, None]
        intervals.append([_drawable(number, log=False) for number in numbers[1:]])
        y, low, high = (_drawable(number, log=chart.log_y) for number in numbers)
        row: Row = {"series": title, "x": place, "y": None if is_bound else y, "low": low, "high": high}
        if is_bound and y is not None:
            row["bound"] = y
        if name is not None:
            row["name"] = visible(name)
        if links and chart.cut:
            row["href"] = link(chart.cut, str(x))
        rows.append(row)
    if chart.kind == "histogram":
        rows = [row | {"end": after["x"]} for row, after in pairwise(rows)]
    for i, row in enumerate(rows):
        row["what"] = _described(chart, row, *intervals[i])
        if row["low"] is not None and all(near["high"] is None for near in (*rows[max(0, i - 1) : i], *rows[i + 1 : i + 2])):
            row |= {"alone_low": row["low"], "alone_high": row["high"]}
    yield from rows


def link(cut: str, label: str) -> str:
    """Return the address on a page of the examples of a slice of the text."""
    cut, label = (quote(visible(name), safe="") for name in (cut, label))
    return f"#cut={cut}&is={label}"


def _drawable(value: Any, *, log: bool) -> float | None:
    if value is None or not math.isfinite(value) or (log and value <= 0):
        return None
    return float(value)


def _distinct(names: Iterable[str]) -> dict[str, str]:
    # For each name one that is safe to show; no two are alike.
    shown: dict[str, str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        text, number = visible(name), 1
        while (candidate := text if number == 1 else f"{text} ({number})") in taken:
            number += 1
        taken.add(candidate)
        shown[name] = candidate
    return shown


def _titles(names: Sequence[str]) -> tuple[str, ...]:
    # Names of series that are safe to show; those that occur again are numbered.
    times: Counter[str] = Counter()
    numbered = []
    for name in names:
        times[name] += 1
        numbered.append(name if times[name] == 1 else f"{name} ({times[name]})")
    return tuple(_distinct(numbered).values()) if len(set(numbered)) == len(names) else tuple(map(str, range(len(names))))


def _extent(chart: ChartData, rows: Sequence[Row]) -> tuple[float, float, bool]:
    points = [value for row in rows for value in (row["y"], row.get("bound")) if value is not None]
    if chart.rule is not None and _drawable(chart.rule, log=chart.log_y) is not None:
        points.append(chart.rule)
    ends = [(row["low"], row["high"]) for row in rows if row["low"] is not None and row["high"] is not None]
    usual = _WIDE * median(high - low for low, high in ends) if ends else 0.0
    points += [end for pair in ends if chart.log_y or pair[1] - pair[0] <= usual for end in pair]
    room = _ROOM * (max(points) - min(points)) if points else 0.0
    near = (min(points, default=0.0) - room, max(points, default=0.0) + room)
    points += [end for pair in ends for end in pair if near[0] <= end <= near[1]]
    if not points:
        return (0.1, 1.0, False) if chart.log_y else (0.0, 1.0, False)
    low, high = min(points), max(points)
    is_cut = any(pair[0] < low or pair[1] > high for pair in ends)
    if chart.log_y:
        return (*(_with_room((low, high), log=True) if low < high else (low / 2, high * 2)), is_cut)
    if chart.kind in ("bars", "histogram"):
        low, high = min(low, 0.0), max(high, 0.0)
        return (low, high if high > low else low + 1.0, is_cut)
    if 0 <= low <= _FROM_ZERO * high:
        low = 0.0
    if -high * _FROM_ZERO <= -low <= 0 and high <= 0:
        high = 0.0
    least = 0.0 if ends else _LEAST_SPAN * max(abs(low), abs(high))
    if max(abs(low), abs(high)) < _ROUNDING:  # all differences are zero
        low, high = -0.5, 0.5
    elif high - low < least or high == low:
        middle, half = (low + high) / 2, max(least, abs(high) * _LEAST_SPAN) / 2
        low, high = middle - half, middle + half
    if chart.kind == "intervals":  # so that no point is half over the edge
        room = 0.02 * (high - low)
        low, high = (end if end == 0 else end + side for end, side in ((low, -room), (high, room)))
    return low, high, is_cut


def _with_room(ends: tuple[float, float], *, log: bool) -> tuple[float, float]:
    # Ends of an axis a little further out, so that no point is in a corner.
    low, high = ends
    if log:
        room = (high / low) ** 0.05
        return low / room, high * room
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return (low if low == 0 else low - room), high + room


def said(value: float) -> str:
    """Return a number for a description: whole ones as they are, others with four digits that count."""
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def titled(title: str, unit: str) -> str:
    """Return the title of an axis with its unit, where the title does not say it."""
    return visible(title if not unit or unit in title else f"{title} ({unit})")


def _quantity(value: float, title: str, unit: str) -> str:
    return f"{said(value)}{unit if unit == '%' else ' ' + visible(title if unit in title else f'{unit} {title}')}"


def _described(chart: ChartData, row: Row, low: float | None, high: float | None) -> str:
    place = row["x"] if isinstance(row["x"], str) else f"{titled(chart.x_title, chart.x_unit)} {said(row['x'])}"
    if "end" in row:
        place += f" to {said(row['end'])}"
    words = [row["series"]] if len(chart.series) > 1 else []
    words += [row["name"], place] if "name" in row else [place]
    value = row.get("bound", row["y"])
    y = "no value" if value is None else _quantity(value, chart.y_title, chart.y_unit)
    y = f"at least {y}" if "bound" in row else y
    interval = "" if low is None or high is None else f" (95 % interval {said(low)} to {said(high)})"
    return f"{', '.join(words)}: {y}{interval}"


def description(chart: ChartData, drawn: Values) -> str:
    """Return what a chart shows and the range of its values, in words."""
    parts = [visible(chart.title).rstrip(".")]
    parts.append(f"{titled(chart.y_title, chart.y_unit)} over {titled(chart.x_title, chart.x_unit)}")
    for title in drawn.series:
        rows = [row for row in drawn.rows if row["series"] == title and row["y"] is not None]
        if not rows:
            continue
        name = f"{title}: " if len(drawn.series) > 1 else ""
        least, most = min(rows, key=lambda row: row["y"]), max(rows, key=lambda row: row["y"])
        ends = " to ".join(f"{said(row['y'])} (at {_place(row)})" for row in (least, most))
        parts.append(f"{name}{said(least['y'])}" if len(rows) == 1 else f"{name}{len(rows):,} values from {ends}")
    if chart.better:
        parts.append(f"{chart.better} is better".capitalize())
    if chart.rule is not None and math.isfinite(chart.rule):
        parts.append(f"A dashed line at {said(chart.rule)}: {visible(chart.rule_name)}")
    if drawn.missing:
        parts.append(f"{drawn.missing:,} without a value that can be drawn")
    if chart.note:
        parts.append(visible(chart.note).rstrip("."))
    return ". ".join(parts) + "."


def _place(row: Row) -> str:
    name = row.get("name", row["x"])
    return name if isinstance(name, str) else said(float(row["x"]))


# -- names beside the points --------------------------------------------------------------------------------------------
_LETTER, _LINE, _GAP = 6.6, 14.0, 8.0  # pixels: a letter's width, a line's height, from a point to its name
_WIDEST = 180.0
_MOST = 60
_SIDES = (("left", "middle", 1, 0), ("right", "middle", -1, 0), ("center", "bottom", 0, -1), ("center", "top", 0, 1))
Box = tuple[float, float, float, float]


def placed_names(chart: ChartData, drawn: Values, width: float, height: float) -> list[Row]:
    """Return rows with `x`, `y`, `name` and where the name stands beside its point: `align`, `baseline`, `dx`, `dy`."""
    # Names for which there is no room are left out; descriptions and the table have them.
    rows = [row for row in drawn.rows if "name" in row and row["y"] is not None]
    if not rows or drawn.names or len(rows) > _MOST:
        return []
    points = [
        (width * _part(row["x"], drawn.x, log=chart.log_x), height * (1 - _part(row["y"], drawn.y, log=chart.log_y)))
        for row in rows
    ]
    taken: list[Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in points]
    placed = []
    for row, (x, y) in zip(rows, points, strict=True):
        wide = min(_WIDEST, _LETTER * len(row["name"]))
        for align, baseline, dx, dy in _SIDES:
            left = x + dx * _GAP - wide * {"left": 0.0, "center": 0.5, "right": 1.0}[align]
            top = y + dy * _GAP - _LINE * {"top": 0.0, "middle": 0.5, "bottom": 1.0}[baseline]
            box = (left, top, left + wide, top + _LINE)
            if (
                left < -_GAP
                or box[2] > width + 60
                or top < 0
                or box[3] > height
                or any(_overlap(box, other) for other in taken)
            ):
                continue
            taken.append(box)
            beside = {"align": align, "baseline": baseline, "dx": dx * _GAP, "dy": dy * _GAP}
            placed.append({name: row[name] for name in ("x", "y", "name")} | beside)
            break
    return placed


def _part(value: float, ends: tuple[float, float], *, log: bool) -> float:
    low, high, value = (math.log(end) for end in (*ends, value)) if log else (*ends, value)
    return (value - low) / (high - low) if high > low else 0.5


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
