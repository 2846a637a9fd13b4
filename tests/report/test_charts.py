"""Specifications of charts: every kind draws its own numbers, in one style, and no string of the data becomes code."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, get_args

import altair
import pytest
from tests.report.conftest import HOSTILE, LONG

from lmgauge.report.blocks import ChartData, ChartKind, Document, Series
from lmgauge.report.chart_values import link, said, values
from lmgauge.report.charts import FAINT_INK, GRID_INK, INK, SERIES_COLORS, specification

KINDS: tuple[ChartKind, ...] = get_args(ChartKind)
CODE = ('"+alert(1)+"', "\\'); alert(1) //", "datum.what", "${alert(1)}", "{{x}}", "</script><b>", "x['y']", "\\u0022", "#")


def chart(kind: ChartKind = "intervals", **changes: Any) -> ChartData:
    """A chart of two series whose numbers are found nowhere else."""
    numeric = kind in ("histogram", "scatter")
    x: tuple[float | str, ...] = (0.5, 1.5, 2.5) if numeric else ("never", "once", "often")
    first = Series("kn5", x, (4.125, 3.0625, None), (4.0, 2.5, None), (4.25, 3.5, None))
    second = Series("wb5", x, (4.5, math.inf, 2.75))
    made = ChartData("by-words", "Bits by words", "words", "bits per byte", "bits", (first, second), kind=kind, cut="words")
    return replace(made, **changes)


def strings(value: Any) -> list[str]:
    """All keys and values of a specification that are text."""
    if isinstance(value, dict):
        return [text for key, part in value.items() for text in (key, *strings(part))]
    if isinstance(value, list | tuple):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("kind", KINDS)
def test_a_specification_is_json_that_altair_accepts(kind: ChartKind) -> None:
    spec = specification(chart(kind, rule=3.5, rule_name="all"), links=True)
    assert json.loads(json.dumps(spec, allow_nan=False))["$schema"].endswith("/vega-lite/v5.json")
    assert isinstance(altair.Chart.from_dict(spec), altair.LayerChart)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_the_numbers_of_the_chart_and_no_others(kind: ChartKind) -> None:
    drawn = chart(kind)
    rows = specification(drawn)["data"]["values"]
    points = [(series.name, x, y) for series in drawn.series for x, y in zip(series.x, series.y, strict=True)]
    expected = [(name, x, y if y is not None and math.isfinite(y) else None) for name, x, y in points]
    if kind == "histogram":  # the last x ends the last bin
        expected = [point for point in expected if point[1] != 2.5]
    assert [(row["series"], row["x"], row["y"]) for row in rows] == expected
    assert [row["low"] for row in rows if row["series"] == "kn5"][:2] == [4.0, 2.5]


def test_only_the_colors_of_the_style_are_used() -> None:
    colors = {text for kind in KINDS for text in strings(specification(chart(kind, rule=3.5))) if text.startswith("#")}
    assert colors <= {INK, FAINT_INK, GRID_INK, *SERIES_COLORS}
    assert {INK, FAINT_INK, GRID_INK, *SERIES_COLORS[:2]} <= colors


def test_every_mark_is_described_or_not_read_out() -> None:
    for kind in KINDS:
        for layer in specification(chart(kind, rule=3.5, diagonal=True))["layer"]:
            assert layer["mark"].get("aria") is False or layer["encoding"]["description"]["field"] in ("what", "series")


def test_series_differ_by_more_than_color() -> None:
    for kind, channel in (("line", "strokeDash"), ("line", "shape"), ("intervals", "shape"), ("bars", "fillOpacity")):
        scales = [
            layer["encoding"][channel]["scale"]
            for layer in specification(chart(kind))["layer"]
            if channel in layer["encoding"]
        ]
        assert scales
        assert all(len({str(shown) for shown in scale["range"]}) == 2 for scale in scales)


def test_one_series_has_no_legend_several_have_one() -> None:
    def legends(spec: dict[str, Any]) -> list[Any]:
        channels = [layer["encoding"].get("color", {}) for layer in spec["layer"]]
        return [channel["legend"] for channel in channels if channel.get("legend")]

    both = chart()
    assert len(legends(specification(both))) == 1
    assert legends(specification(replace(both, series=both.series[:1]))) == []


def test_marks_lead_to_the_examples_of_their_slice() -> None:
    named = chart(cut="class & kind", series=(Series("kn5", ("a=b#c", "é"), (1.0, 2.0)),))
    hrefs = [row["href"] for row in specification(named, links=True)["data"]["values"]]
    assert hrefs == ["#cut=class%20%26%20kind&is=a%3Db%23c", "#cut=class%20%26%20kind&is=%C3%A9"]
    assert link("group", "\ud800") == "#cut=group&is=%EF%BF%BD"
    for without in (specification(named), specification(replace(named, cut=""), links=True)):
        assert "href" not in strings(without)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [*CODE, HOSTILE, LONG])
def test_strings_of_the_data_are_never_code(kind: ChartKind, text: str) -> None:
    x: tuple[float | str, ...] = (0.5, 1.5) if kind in ("histogram", "scatter") else (text, f"{text}2")
    series = tuple(Series(text, x, (1.0, 2.0), (0.5, 1.5), (1.5, 2.5), names=(text, text)) for _ in range(2))
    plain = tuple(replace(one, name="a", x=x if isinstance(x[0], float) else ("a", "b"), names=("a", "a")) for one in series)
    shown = ChartData(text, text, text, text, text, series, text, kind, rule=1.5, rule_name=text, cut=text, note=text)
    harmless = ChartData("n", "t", "x", "y", "u", plain, "u", kind, rule=1.5, rule_name="r", cut="c", note="n")

    def code(spec: Any) -> list[str]:
        """All that Vega may evaluate, look up, or use as a format."""
        if isinstance(spec, list | tuple):
            return [found for part in spec for found in code(part)]
        if not isinstance(spec, dict):
            return []
        named = [str(spec[key]) for key in ("field", "expr", "signal", "format", "labelExpr", "filter") if key in spec]
        return named + [found for key, part in spec.items() for found in code(part) if key != "values"]

    spec = specification(shown, links=True)
    assert sorted(set(code(spec))) == sorted(set(code(specification(harmless, links=True))))
    assert all(character.isprintable() for part in strings(spec) for character in part)
    assert len({row["series"] for row in spec["data"]["values"]}) == 2


def test_names_that_look_alike_stay_apart() -> None:
    names = ("a\x1b", "a\x07", "a\N{REPLACEMENT CHARACTER} (2)")
    rows = specification(chart(series=(Series("s", names, (1.0, 2.0, 3.0)),)))["data"]["values"]
    assert len({row["x"] for row in rows}) == 3


def test_a_description_says_what_is_drawn_and_its_range() -> None:
    text = specification(chart(better="lower", rule=3.5, rule_name="the whole text"))["description"]
    assert text.startswith(
        "Bits by words. bits per byte over words. kn5: 2 values from 3.062 (at once) to 4.125 (at never)."
    )
    assert "Lower is better. A dashed line at 3.5: the whole text. 2 without a value that can be drawn." in text
    rows = specification(chart())["data"]["values"]
    assert rows[0]["what"] == "kn5, never: 4.125 bits per byte (95 % interval 4 to 4.25)"
    assert rows[2]["what"] == "kn5, often: no value"


def test_titles_say_units_and_what_is_better() -> None:
    spec = specification(
        chart("line", y_title="mutual information", x_unit="tokens", better="higher", rule=0.0, rule_name="none")
    )
    axes = spec["layer"][-1]["encoding"]
    assert (axes["x"]["axis"]["title"], axes["y"]["axis"]["title"]) == ("words (tokens)", "mutual information (bits)")
    assert spec["title"]["subtitle"] == ["higher is better · bands: 95 % intervals · dashed line: none"]


def test_an_axis_neither_hides_nor_blows_up_differences() -> None:
    def ends(*y: float, **changes: Any) -> tuple[float, float]:
        return values(chart(**{"kind": "line", **changes}, series=(Series("s", tuple("abcd"[: len(y)]), y),))).y

    assert ends(100.0, 100.1) == pytest.approx((99.049, 101.051))  # two per cent at least
    assert ends(1.0, 10.0) == (0.0, 10.0)
    assert ends(8.0, 10.0) == (8.0, 10.0)
    assert ends(8.0, 10.0, kind="bars") == (0.0, 10.0)
    assert ends(-3.0, -2.0, rule=0.0) == (-3.0, 0.0)
    assert ends() == (0.0, 1.0)


def test_one_huge_interval_does_not_flatten_the_others() -> None:
    series = Series("s", tuple("abcd"), (1.0, 1.1, 1.2, 1.3), (0.9, 1.0, 1.1, -80.0), (1.1, 1.2, 1.3, 90.0))
    wide = chart("line", series=(series,))
    assert values(wide).y == (0.9, 1.3)
    assert values(wide).is_cut
    assert "long intervals are cut off" in specification(wide)["title"]["subtitle"][0]


def test_logarithmic_axes_leave_out_what_has_no_logarithm() -> None:
    series = Series("s", (0.0, 0.01, 1.0), (0.5, 0.0, 0.5), (0.4, 0.0, -0.1), (0.6, 0.1, 0.9))
    spec = specification(chart("line", series=(series,), log_x=True, log_y=True))
    assert [(row["x"], row["y"]) for row in spec["data"]["values"]] == [(0.01, None), (1.0, 0.5)]
    lowest = spec["layer"][-1]["encoding"]["y"]["scale"]["domain"][0]
    assert [row["low"] for row in spec["data"]["values"]] == [lowest, lowest]  # the band reaches down to the axis


def test_height_grows_with_the_rows() -> None:
    def height(count: int) -> int:
        x = tuple(str(i) for i in range(count))
        return int(specification(chart(series=(Series("s", x, (1.0,) * count),)))["height"])

    assert (height(1), height(100)) == (24, 2400)


def test_points_have_their_names_beside_them_where_there_is_room() -> None:
    def named(*x: float) -> list[str]:
        names = tuple(f"system {i}" for i in range(len(x)))
        layers = specification(chart("scatter", series=(Series("s", x, x, names=names),)))["layer"]
        return [row["name"] for layer in layers for row in layer.get("data", {}).get("values", ())]

    assert named(1.0, 2.0, 3.0) == ["system 0", "system 1", "system 2"]
    assert len(named(*(2.0,) * 9)) < 9


def test_charts_of_all_results_are_specified(documents: dict[str, Document]) -> None:
    charts = [block for document in documents.values() for block in document if isinstance(block, ChartData)]
    assert charts
    for one in charts:
        spec = specification(one, links=True)
        assert spec["data"]["values"]
        assert all(character.isprintable() for text in strings(spec) for character in text)


def test_numbers_are_said_with_four_digits() -> None:
    assert [said(value) for value in (0.0, 3.0, 12.3456, 1234.56, 2.5e-7, 1e20)] == [
        "0",
        "3",
        "12.35",
        "1,235",
        "2.5e-07",
        "100,000,000,000,000,000,000",
    ]


def test_charts_side_by_side_have_rows_of_one_height() -> None:
    both = chart()
    alone = replace(both, series=both.series[:1])
    assert specification(alone)["height"] < specification(both)["height"]
    assert specification(replace(alone, beside=2))["height"] == specification(both)["height"]


def test_a_chart_can_be_narrow() -> None:
    assert [specification(chart(), width=width)["width"] for width in (430, 680)] == [430, 680]
    labels = specification(chart(), width=430)["layer"][-1]["encoding"]["y"]["axis"]
    assert labels["labelLimit"] == 155
