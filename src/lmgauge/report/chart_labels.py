"""Names beside the points of a chart, where they cover neither each other nor a point."""

from __future__ import annotations

import math

from lmgauge.report.blocks import ChartData
from lmgauge.report.chart_values import Row, Values

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
