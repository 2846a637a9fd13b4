"""Slices and examples as tables: figures of one model or two, charts where slices have an order, tokens in their text."""

from __future__ import annotations

import re
from dataclasses import replace

from lmgauge.evaluation.slicing.examples import Example
from lmgauge.evaluation.slicing.sums import Slice, Slices
from lmgauge.report.blocks import ChartData, Table
from lmgauge.report.slices import example_blocks, slice_blocks
from lmgauge.report.terminal import as_text

ROWS = (
    Slice("word", 2, 3, 4, (5.0, 6.0), (1.25, 1.5), 0.25, (-0.1, 0.6), 0.2, (0, 0), (5.0, 6.0), p_value_holm=0.4),
    Slice("[URL]", 1, 1, 2, (float("inf"), 1.0), (float("inf"), 0.5), None, None, None, (1, 0), (0.0, 1.0)),
)
NAMES = ["kn5", "a/very/long/name/of/a/run"]


def example(text: str, before: str = "", after: str = "", bits: tuple[float, ...] = (3.0,), value: float = 3.0) -> Example:
    return Example("a/b.txt", 7, 6, before, text, after, bits, value)


def test_slices_of_two_models() -> None:
    shown = as_text(slice_blocks(Slices("class", "byte", ROWS), NAMES))
    assert re.search(r"^ +bytes +kn5 +a/very/long/name +difference +95 % interval +p +p \(Holm\)$", shown, re.M)
    assert re.search(r"^word +4 +1.250 +1.500 +\+0.250 +-0.100 .. \+0.600 +0.2000 +0.4000$", shown, re.M)
    assert re.search(r"^\[URL\] +2 +∞ +0.500( +–){4}$", shown, re.M)
    assert shown.startswith("by class, bits per byte\n")


def test_slices_of_one_model_show_zeros_where_there_are_some() -> None:
    shown = as_text(slice_blocks(Slices("class", "byte", ROWS), NAMES[:1]))
    assert re.search(r"^word +3 +4 +1.250 +-0.100 – 0.600 +3.2 +0 +3.2$", shown, re.M)
    assert re.search(r"^\[URL\] +1 +2 +∞ +– +∞ +1 +–$", shown, re.M)
    finite = as_text(slice_blocks(Slices("class", "byte", ROWS[:1]), NAMES[:1]))
    assert "p = 0" not in finite
    assert "100.0 %" in finite


def test_what_intervals_of_ordered_slices_rest_on_is_said() -> None:
    units = (("1", "documents", 40), ("2", "documents", 29), ("3 to 4", "", 0))
    rows = tuple(
        replace(ROWS[0], label=label, bits=(4.0,), bits_per_unit=(1.0,), zeros=(0,), unit=unit, units=count)
        for label, unit, count in units
    )
    shown = as_text(slice_blocks(Slices("position in the segment (events)", "byte", rows), ["kn5"]))
    assert "95 % intervals over documents, the fewest (29) in 2; below 30 it is rough." in shown
    enough = as_text(slice_blocks(Slices("position in the segment (events)", "byte", rows[:1]), ["kn5"]))
    assert "95 % intervals over documents, the fewest (40) in 1." in enough
    (unknown,) = (replace(row, unit="unknown") for row in rows[:1])
    alike = as_text(slice_blocks(Slices("length of the segment", "byte", (unknown,)), ["kn5"]))
    assert "95 % intervals over segments, allowing for similar neighbors, the fewest (40)" in alike
    assert "intervals over" not in as_text(slice_blocks(Slices("class", "byte", rows), ["kn5"]))
    assert "intervals over" not in as_text(slice_blocks(Slices("position", "byte", rows[2:]), ["kn5"]))


def test_no_slices_are_no_table() -> None:
    assert slice_blocks(Slices("class", "byte", ()), ["kn5"]) == ()


def drawn(name: str, rows: tuple[Slice, ...], names: list[str], whole: float | None = None) -> list[ChartData]:
    table, *charts = slice_blocks(Slices(name, "byte", rows), names, whole)
    assert isinstance(table, Table)
    assert table.cut == name
    found = [chart for chart in charts if isinstance(chart, ChartData)]
    assert all(chart.cut == name for chart in found)
    assert as_text(charts) == ""
    return found


def test_slices_of_two_are_a_chart_of_both_and_one_of_the_difference() -> None:
    both, gap = drawn("position in the segment", ROWS, NAMES)
    assert [(series.name, series.x, series.y, series.low) for series in both.series] == [
        ("kn5", ("word", "[URL]"), (1.25, float("inf")), ()),
        (NAMES[1], ("word", "[URL]"), (1.5, 0.5), ()),
    ]
    assert (both.name, both.kind, both.y_unit, both.x_title) == ("position", "line", "bits", "position in the segment")
    (series,) = gap.series
    assert (gap.name, gap.rule, gap.note) == ("position-difference", 0.0, f"below 0: {NAMES[1]} is better")
    assert (series.y, series.low, series.high) == ((0.25, None), (-0.1, None), (0.6, None))


def test_slices_of_one_are_a_chart_with_intervals_and_one_of_the_shares() -> None:
    rows = tuple(
        Slice(label, 1, 1, 4, (bits,), (bits / 4,), interval=ends, zeros=(0,), finite_bits=(bits,))
        for label, bits, ends in (("a", 2.0, (0.25, 0.75)), ("b", 6.0, (1.0, 2.0)))
    )
    cost, share = drawn("class", rows, ["kn5"], 1.0)
    (series,) = cost.series
    assert (cost.kind, cost.better, cost.rule, cost.rule_name) == ("intervals", "lower", 1.0, "the whole text")
    assert (series.x, series.y, series.low, series.high) == (("a", "b"), (0.5, 1.5), (0.25, 1.0), (0.75, 2.0))
    assert (share.name, share.kind, share.y_unit, share.series[0].y) == ("class-share", "bars", "%", (25.0, 75.0))
    by_group = drawn("group", rows, ["kn5"])[0]
    assert by_group.series[0].x == ("b", "a")  # the dearest first, as the order of groups says nothing
    (alone,) = drawn("position in the segment", rows[:1], ["kn5"])
    assert alone.kind == "line"


def test_charts_of_many_groups_have_those_with_most_bits() -> None:
    rows = tuple(Slice(f"g{i}", 1, 1, 100, (float(i),), (i / 100,), zeros=(0,), finite_bits=(float(i),)) for i in range(100))
    cost, share = drawn("group", rows, ["kn5"])
    assert cost.series[0].x == tuple(f"g{i}" for i in reversed(range(60, 100)))
    assert cost.note == share.note == "the 40 of 100 with most bits; the table has all"


def test_the_token_that_is_meant_is_marked() -> None:
    shown = as_text(example_blocks("title", [example(" dog", "the", " barks"), example("a whole line")], ["kn5"]))
    assert shown.splitlines() == [
        "title (b.txt)",
        "bits   line   the token in its text",
        "───────────────────────────────────",
        " 3.0      7   the »dog« barks",
        " 3.0      7   a whole line",
    ]


def test_marks_do_not_occur_in_the_text() -> None:
    shown = as_text(example_blocks("title", [example("dog", "the »big« ")], ["kn5"]))
    assert "the »big« ⟦dog⟧" in shown


def test_examples_of_two_models_have_the_bits_of_both() -> None:
    shown = as_text(example_blocks("title", [example("dog", "the ", "", (1.0, 3.5), 2.5)], ["kn5", "wb5"]))
    assert "kn5, bits   wb5, bits   difference   line" in shown
    assert re.search(r"1.0 +3.5 +\+2.5 +7   the »dog«", shown)


def test_examples_of_several_files_say_where() -> None:
    examples = [example("a"), replace(example("b", value=5.0), source="c.txt")]
    shown = as_text(example_blocks("title", examples, ["kn5"]))
    assert shown.startswith("title\n")
    assert re.search(r"^ 3.0 +\+5.0   c.txt:7   b$", shown, re.M)
    assert "beyond average" in shown


def test_no_examples_are_no_table() -> None:
    assert example_blocks("title", [], ["kn5"]) == ()
