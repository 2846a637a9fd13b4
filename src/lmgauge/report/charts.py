"""Charts as Vega-Lite specifications: plain dicts with their data inside, all in one style."""

# Colors are those that the page's style sheet knows and turns for a dark page. Series differ by color, dash and the shape of
# their points. Every mark has a description in words, so that no expression is made of titles; no string of the data is ever
# part of an expression, a format or the name of a field (see `chart_values`).

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from typing import Any

from lmgauge.base.escaping import visible_on_page as visible
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report.blocks import ChartData
from lmgauge.report.chart_values import WIDTH, Row, Values, description, placed_names, said, titled, values

Spec = dict[str, Any]

INK, FAINT_INK, GRID_INK = "#1f2328", "#656d76", "#d8dee4"
SERIES_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6e7781")
"""Okabe and Ito's colors, which people with any color vision tell apart, and a gray."""
FONT = "system-ui, sans-serif"

_DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3], [12, 4], [1, 3], [4, 6])
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
_FILLS = (0.85, 0.45, 0.65, 0.3, 0.75, 0.55, 0.2)
_HEIGHTS = {"line": 240, "histogram": 200, "scatter": 320}
_MOST_POINTS = 60  # of a line; one with more has no marks at its points
_LABEL = 6.6  # about the width of a letter, in pixels
_WIDEST_LABEL = 230
_FOLDED = 74  # letters of a title in a line
_BAND = 0.18
_TURN, _WIDEST_TURNED = -35, 150
_LEGEND_LABEL = 260
_DASHED: Spec = {"strokeDash": [5, 4], "strokeWidth": 1.25, "color": FAINT_INK, "aria": False}
_POINT: Spec = {"type": "point", "filled": True, "size": 64, "opacity": 1}
_LOG_LABELS = "datum.value < 0.001 || datum.value >= 1e6 ? format(datum.value, '~e') : format(datum.value, ',~r')"

_AXIS: Spec = {
    "labelColor": FAINT_INK,
    "titleColor": FAINT_INK,
    "tickColor": GRID_INK,
    "domainColor": GRID_INK,
    "gridColor": GRID_INK,
    "gridWidth": 0.75,
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
    "titlePadding": 8,
    "titleLimit": 500,
    "labelPadding": 5,
    "tickSize": 4,
}
CONFIG: Spec = {
    "font": FONT,
    "view": {"stroke": None},
    "axis": _AXIS,
    "legend": {
        "labelColor": INK,
        "labelFontSize": 12,
        "labelLimit": _LEGEND_LABEL,
        "orient": "top",
        "direction": "horizontal",
        "columnPadding": 26,
        "offset": 8,
        "symbolSize": 90,
        "symbolStrokeWidth": 2,
    },
    "title": {
        "color": INK,
        "subtitleColor": FAINT_INK,
        "fontSize": 14,
        "fontWeight": 600,
        "subtitleFontSize": 12,
        "subtitlePadding": 4,
        "anchor": "start",
        "frame": "bounds",
        "offset": 12,
        "lineHeight": 18,
        "subtitleLineHeight": 16,
    },
}
"""The style of all charts."""


def specification(chart: ChartData, *, width: int = WIDTH, links: bool = False) -> Spec:
    """Return a chart as a Vega-Lite specification (version 5) with its data inside."""
    # Values that are missing or not finite leave a gap. Two charts of the same data are the same to the byte.
    drawn = values(chart, width=width, links=links)
    layers, height = _KINDS[chart.kind](chart, drawn)
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": _title(chart, drawn),
        "description": description(chart, drawn),
        "width": width,
        "height": height,
        "padding": _padding(chart, drawn),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": "transparent",
        "data": {"values": drawn.rows},
        "layer": layers,
        "resolve": {"legend": dict.fromkeys(("color", "shape", "strokeDash", "fillOpacity"), "independent")},
        "config": CONFIG,
    }


def _title(chart: ChartData, drawn: Values) -> Spec:
    better = f"{chart.better} is better" if chart.better else ""
    rule = ""
    if chart.rule is not None and math.isfinite(chart.rule):
        rule = f"dashed line: {visible(chart.rule_name)}" + ("" if chart.rule == 0 else f", {said(chart.rule)}")
    cut = "long intervals are cut off" if drawn.is_cut else ""
    has_bounds = any("bound" in row for row in drawn.rows)
    bound = "open triangles: lower bounds, the true value may be higher" if has_bounds else ""
    band = _interval_words(chart)
    subtitle = " · ".join(text for text in (better, band, rule, cut, bound) if text)
    folded = _folded(subtitle, _FOLDED + 18)
    title: Spec = {"text": _folded(visible(chart.title), _FOLDED)}
    return title | ({"subtitle": folded} if subtitle else {})


def _bounds(drawn: Values, channel: str, places: Spec, numbers: Spec) -> list[Spec]:
    # Open triangles that point to where the values are that have only a lower bound.
    rows = [row for row in drawn.rows if "bound" in row]
    if not rows:
        return []
    turned = "triangle-right" if channel == "x" else "triangle-up"
    mark: Spec = {"type": "point", "shape": turned, "filled": False, "size": 80, "strokeWidth": 2, "opacity": 1}
    encoding = {**places, channel: numbers | {"field": "bound"}, **_color(drawn), **_said(drawn)}
    return [{"data": {"values": rows}, "mark": mark, "encoding": encoding}]


def _ends(drawn: Values, mark: Spec, places: Spec, channel: str, numbers: Spec, color: Spec, which: str = "") -> list[Spec]:
    # Intervals, drawn by a mark from their low to their high ends.
    low, high = f"{which}low", f"{which}high"
    if all(row.get(low) is None for row in drawn.rows):
        return []
    ends = {channel: numbers | {"field": low}, f"{channel}2": {"field": high}}
    return [{"mark": mark | {"aria": False, "clip": True}, "encoding": {**places, **ends, **color}}]


def _interval_words(chart: ChartData) -> str:
    ends = ((low, y) for one in chart.series for low, y in zip(one.low, one.y, strict=False))
    if not any(low is not None and y is not None and not isinstance(y, LowerBound) for low, y in ends):
        return ""
    return "bands: 95 % intervals" if chart.kind == "line" else "lines: 95 % intervals"


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, max_lines=4, placeholder=" …") or [""]


def _scale(drawn: Values, shown: Any, *, legend: bool = False) -> Spec:
    # Channel that tells series apart; of several, one mark also makes the legend.
    count = len(drawn.series)
    chosen = [shown[i % len(shown)] for i in range(count)]
    return {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": list(drawn.series), "range": chosen},
        "legend": {"title": None, "columns": _legend_columns(drawn)} if legend and count > 1 else None,
    }


def _legend_columns(drawn: Values) -> int:
    longest = max(min(len(name) * _LABEL, _LEGEND_LABEL) for name in drawn.series)
    return max(1, min(len(drawn.series), int((drawn.width - 40) // (longest + 40))))


def _color(drawn: Values) -> Spec:
    return {"color": _scale(drawn, SERIES_COLORS)}


def _in_legend(drawn: Values, **channels: Any) -> Spec:
    return {name: _scale(drawn, shown, legend=True) for name, shown in {"color": SERIES_COLORS, **channels}.items()}


def _said(drawn: Values) -> Spec:
    channels: Spec = {name: {"field": "what", "type": "nominal"} for name in ("description", "tooltip")}
    if any("href" in row for row in drawn.rows):
        channels["href"] = {"field": "href", "type": "nominal"}
    return channels


def _number_axis(
    channel: str,
    title: str,
    ends: tuple[float, float],
    *,
    log: bool,
    grid: bool,
    nice: bool = True,
    whole: bool = False,
    field: str = "",
    ticks: int = 8,
) -> Spec:
    scale: Spec = {"domain": list(ends), "nice": nice, "zero": False}
    if not nice:
        scale["padding"] = 8
    axis: Spec = {"title": title, "grid": grid, "domain": not grid, "ticks": not grid, "labelFlush": False}
    axis |= {"labelOverlap": "greedy", "labelSeparation": 12}
    if channel == "y":
        axis["titlePadding"] = 14  # other fonts are wider than the one at hand
    if log:
        scale = {"type": "log", "domain": list(ends), "nice": False, **({} if nice else {"padding": 8})}
        decades = math.log10(ends[1] / ends[0])
        axis |= {"labelExpr": _LOG_LABELS}
        first, last = math.floor(math.log10(ends[0])), math.ceil(math.log10(ends[1]))
        if decades >= 2:
            axis["values"] = [10.0**power for power in range(first, last + 1, max(1, (last - first) // 8))]
        elif decades >= 0.5:
            steps = (1, 2, 5) if decades >= 1 else (1, 1.5, 2, 3, 4, 5, 7)
            axis["values"] = [step * 10.0**power for power in range(first - 1, last + 1) for step in steps]
    else:
        axis |= {"tickCount": 6 if channel == "y" else ticks}
        if whole and ends[1] - ends[0] < 12:
            axis |= {"values": list(range(math.ceil(ends[0]), math.floor(ends[1]) + 1)), "format": "d"}
    return {"field": field or channel, "type": "quantitative", "scale": scale, "axis": axis}


def _place(chart: ChartData, drawn: Values, *, grid: bool = False) -> Spec:
    # Axis along x of a line: of numbers, or of names in their order.
    title = titled(chart.x_title, chart.x_unit)
    if not drawn.names:
        ends = _apart(drawn.x, log=chart.log_x)
        whole = all(row["x"] == round(row["x"]) for row in drawn.rows)
        return _number_axis("x", title, ends, log=chart.log_x, grid=grid, nice=False, whole=whole, ticks=drawn.width // 85)
    angle = _TURN if _are_turned(drawn) else 0
    axis: Spec = {"title": title, "labelAngle": angle, "labelLimit": _WIDEST_TURNED, "grid": False}
    if len(drawn.names) > 30:
        axis |= {"labelOverlap": "greedy"}
    return {
        "field": "x",
        "type": "ordinal",
        "scale": {"type": "point", "domain": list(drawn.names), "padding": 0.5},
        "sort": None,
        "axis": axis,
    }


def _room_for_names(drawn: Values) -> float:
    return (drawn.width - 80) / max(1, len(drawn.names))


def _are_turned(drawn: Values) -> bool:
    return max(map(len, drawn.names), default=0) * _LABEL > _room_for_names(drawn) - 8


def _padding(chart: ChartData, drawn: Values) -> Spec:
    # Room around a chart: more on the left where turned names stand out.
    out = 0.0
    if drawn.names and chart.kind in ("line", "scatter") and _are_turned(drawn):
        wide = [min(_WIDEST_TURNED, _LABEL * len(name)) * math.cos(math.radians(_TURN)) for name in drawn.names]
        out = max(width - (i + 0.5) * _room_for_names(drawn) for i, width in enumerate(wide)) - 44
    return {"left": round(4 + max(0.0, out)), "right": 8, "top": 4, "bottom": 4}


def _apart(ends: tuple[float, float], *, log: bool) -> tuple[float, float]:
    low, high = ends
    if low < high:
        return ends
    return (low / 2, high * 2) if log else (low - 0.5, high + 0.5)


def _rule(chart: ChartData, channel: str) -> list[Spec]:
    if chart.rule is None or not math.isfinite(chart.rule) or (chart.log_y and chart.rule <= 0):
        return []
    return [{"data": {"values": [{}]}, "mark": {"type": "rule"} | _DASHED, "encoding": {channel: {"datum": chart.rule}}}]


def _diagonal(chart: ChartData, drawn: Values) -> list[Spec]:
    low, high = max(drawn.x[0], drawn.y[0]), min(drawn.x[1], drawn.y[1])
    if not chart.diagonal or low >= high:
        return []
    ends = [{"x": low, "y": low}, {"x": high, "y": high}]
    encoding = {name: {"field": name, "type": "quantitative"} for name in ("x", "y")}
    return [{"data": {"values": ends}, "mark": {"type": "line"} | _DASHED, "encoding": encoding}]


def _lines(chart: ChartData, drawn: Values) -> tuple[list[Spec], int]:
    x = _place(chart, drawn)
    title = titled(chart.y_title, chart.y_unit)
    y = _number_axis("y", title, drawn.y, log=chart.log_y, grid=True)
    color = _color(drawn)
    layers = _ends(drawn, {"type": "area", "opacity": _BAND}, {"x": x}, "y", y, color)
    layers += _ends(drawn, {"type": "rule", "strokeWidth": 2}, {"x": x}, "y", y, color, "alone_")
    layers += [*_rule(chart, "y"), *_diagonal(chart, drawn)]
    whole: Spec = {"type": "line", "strokeWidth": 2, "strokeJoin": "round"}
    if max(len(series.x) for series in chart.series) > _MOST_POINTS:
        aloud = {"description": {"field": "series", "type": "nominal"}}
        layers.append({"mark": whole, "encoding": {"x": x, "y": y, **_in_legend(drawn, strokeDash=_DASHES), **aloud}})
    else:
        dash = {"strokeDash": _scale(drawn, _DASHES)}
        layers.append({"mark": whole | {"aria": False}, "encoding": {"x": x, "y": y, **color, **dash}})
        shape = _in_legend(drawn, shape=_SHAPES)
        layers.append({"mark": _POINT | {"size": 48}, "encoding": {"x": x, "y": y, **shape, **_said(drawn)}})
    layers += _bounds(drawn, "y", {"x": x}, y)
    return layers, 340 if chart.diagonal else _HEIGHTS["line"]


def _row_axis(drawn: Values) -> Spec:
    widest = min(_WIDEST_LABEL, round(0.36 * drawn.width))
    room = min(widest, _LABEL * max(map(len, drawn.names), default=0))  # other fonts are wider than the one at hand
    axis: Spec = {"title": None, "grid": False, "ticks": False, "domain": False, "labelColor": INK, "labelPadding": 10}
    axis |= {"labelLimit": widest, "minExtent": 1.12 * room + 11}
    return {
        "field": "x",
        "type": "ordinal",
        "scale": {
            "type": "band",
            "domain": list(drawn.names),
            "paddingInner": 0.25 if len(drawn.series) == 1 else 0.35,
            "paddingOuter": 0.15,
        },
        "sort": None,
        "axis": axis,
    }


def _in_rows(chart: ChartData, drawn: Values) -> tuple[Spec, Spec, int]:
    y: Spec = {"y": _row_axis(drawn)}
    several = max(chart.beside, len(drawn.series))
    if len(drawn.series) > 1:
        y["yOffset"] = {"field": "series", "type": "nominal", "scale": {"domain": list(drawn.series)}}
    title = titled(chart.y_title, chart.y_unit)
    x = _number_axis("x", title, drawn.y, log=chart.log_y, grid=True, field="y", ticks=drawn.width // 85)
    return y, x, max(1, len(drawn.names)) * (24 if several == 1 else 12 + 14 * several)


def _intervals(chart: ChartData, drawn: Values) -> tuple[list[Spec], int]:
    rows, x, height = _in_rows(chart, drawn)
    layers = [*_rule(chart, "x"), *_ends(drawn, {"type": "rule", "strokeWidth": 2}, rows, "x", x, _color(drawn))]
    shape = _in_legend(drawn, shape=_SHAPES)
    layers.append({"mark": _POINT, "encoding": {**rows, "x": x, **shape, **_said(drawn)}})
    return layers + _bounds(drawn, "x", rows, x), height


def _bars(chart: ChartData, drawn: Values) -> tuple[list[Spec], int]:
    for row in drawn.rows:
        row["shown"] = "" if row["y"] is None else _at_the_end(row["y"], chart.y_unit)
    room = 0.09 * (drawn.y[1] - drawn.y[0])
    low, high = drawn.y
    wider = Values(**{**vars(drawn), "y": (low - room if low < 0 else low, high + room if high > 0 else high)})
    rows, x, height = _in_rows(chart, wider)
    x["scale"]["nice"] = False
    bar: Spec = {"type": "bar", "cornerRadiusEnd": 2}
    fills = {"fillOpacity": _FILLS} if len(drawn.series) > 1 else {}
    encoding = {**rows, "x": x | {"stack": None}, **_in_legend(drawn, **fills), **_said(drawn)}
    layers: list[Spec] = [{"mark": bar, "encoding": encoding}, *_rule(chart, "x"), *_bounds(drawn, "x", rows, x)]
    if whiskers := _ends(drawn, {"type": "rule", "strokeWidth": 1.5, "color": INK}, rows, "x", x, {}):
        return layers + whiskers, height
    text: Spec = {"type": "text", "align": "left", "dx": 5, "color": INK, "fontSize": 12, "aria": False}
    layers.append({"mark": text, "encoding": {**rows, "x": x, "text": {"field": "shown", "type": "nominal"}}})
    return layers, height


def _at_the_end(value: float, unit: str) -> str:
    if unit != "%":
        return said(value)
    return "< 0.1 %" if 0 < value < 0.1 else f"{value:.1f} %"


def _histogram(chart: ChartData, drawn: Values) -> tuple[list[Spec], int]:
    ends = _apart(drawn.x, log=chart.log_x)
    x = _number_axis(
        "x", titled(chart.x_title, chart.x_unit), ends, log=chart.log_x, grid=False, nice=False, ticks=drawn.width // 85
    )
    y = _number_axis("y", titled(chart.y_title, chart.y_unit), drawn.y, log=False, grid=True)
    several = len(drawn.series) > 1
    bar: Spec = {"type": "bar", "binSpacing": 0, "fillOpacity": 0.3 if several else 0.75, "strokeWidth": 0.75}
    stroke = {"stroke": _scale(drawn, SERIES_COLORS)}
    encoding: Spec = {"x": x, "x2": {"field": "end"}, "y": y | {"stack": None}, "y2": {"datum": 0}}
    layers: list[Spec] = [{"mark": bar, "encoding": {**encoding, **_in_legend(drawn), **stroke, **_said(drawn)}}]
    if several:
        outline: Spec = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.75, "aria": False}
        dash = {"strokeDash": _scale(drawn, _DASHES)}
        layers.append({"mark": outline, "encoding": {"x": x, "y": y, **_color(drawn), **dash}})
    return layers + _rule(chart, "y"), _HEIGHTS["histogram"]


def _scatter(chart: ChartData, drawn: Values) -> tuple[list[Spec], int]:
    height = _HEIGHTS["scatter"]
    x = _place(chart, drawn, grid=True)
    y = _number_axis("y", titled(chart.y_title, chart.y_unit), drawn.y, log=chart.log_y, grid=True)
    shape = _in_legend(drawn, shape=_SHAPES)
    layers = [*_rule(chart, "y"), *_diagonal(chart, drawn)]
    layers.append({"mark": _POINT, "encoding": {"x": x, "y": y, **shape, **_said(drawn)}})
    names: list[Row] = placed_names(chart, drawn, drawn.width - 80, height)
    if names:
        turned: Spec = {name: {"expr": f"datum.{name}"} for name in ("align", "baseline", "dx", "dy")}
        text: Spec = {"type": "text", "color": INK, "fontSize": 12, "aria": False, "limit": 180, **turned}
        encoding: Spec = {"x": x, "y": y, "text": {"field": "name", "type": "nominal"}}
        layers.append({"data": {"values": names}, "mark": text, "encoding": encoding})
    return layers, height


_KINDS: dict[str, Callable[[ChartData, Values], tuple[list[Spec], int]]] = {
    "line": _lines,
    "intervals": _intervals,
    "bars": _bars,
    "histogram": _histogram,
    "scatter": _scatter,
}
