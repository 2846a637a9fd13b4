"""What is said of a selection: how much, why, and whether it helps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lmgauge.filtering.selection_results import MeasuredModel, Selection, SelectionCut, choose_cut
from lmgauge.numerics.intervals import Interval
from lmgauge.report import blocks as doc
from lmgauge.report.selection import blocks
from lmgauge.report.terminal import as_text

ENDS = Interval(95.0, 105.0, 0.95, "jackknife", "documents", 31)


def ratio(low: float, high: float) -> Interval:
    return Interval(low, high, 0.95, "jackknife", "documents", 31)


def cuts(random: MeasuredModel | None = None) -> tuple[SelectionCut, ...]:
    return (
        SelectionCut(0.25, 10, 100, -0.5, MeasuredModel(102.0, ENDS, 1.02, ratio(0.99, 1.05), 0.2), random, 0.4),
        SelectionCut(0.5, 30, 200, 0.25, MeasuredModel(100.0, ENDS, 1.0), random),
        SelectionCut(1.0, 60, 400, 2.0, MeasuredModel(120.0, ENDS, 1.2, ratio(1.1, 1.3), 0.001), None, 0.002),
    )


def made(chosen: int = 1, random: MeasuredModel | None = None, **changes: Any) -> Selection:
    tried = cuts(random)
    return replace(
        Selection(tried[chosen], tried, 0.0, 60, 400, 0, 900, 250.0, 5000, 0.05, 400, signature="select|v:1"), **changes
    )


def verdicts(selection: Selection) -> list[tuple[str, str]]:
    return [(block.level, block.text) for block in blocks(selection) if isinstance(block, doc.Verdict)]


def test_the_best_share_and_the_smallest_that_is_not_worse_are_named() -> None:
    (level, text), _ = verdicts(made(random=MeasuredModel(130.0, ENDS, 0.77, ratio(0.7, 0.85), 0.0001)))
    assert level == "fact"
    assert text == (
        "Selected: 30 documents, 50.00 % of the pool's text. A model trained on them has a held-out perplexity of 100.00 "
        "(95 % interval 95.00 – 105.00), the lowest; 25.00 % is not significantly worse."
    )


@pytest.mark.parametrize(
    ("random", "level", "text"),
    [
        (MeasuredModel(130.0, ENDS, 0.77, ratio(0.7, 0.85), 0.0001), "good", "Selecting helps: -23.00 % against"),
        (MeasuredModel(101.0, ENDS, 0.99, ratio(0.9, 1.1), 0.4), "unknown", "No sign that selecting helps: -1.00 %"),
        (MeasuredModel(90.0, ENDS, 1.11, ratio(1.05, 1.2), 0.001), "bad", "Selecting harms: +11.00 %"),
        (MeasuredModel(101.0, None, 0.99), "unknown", "No sign that selecting helps"),
    ],
)
def test_the_selection_is_held_against_chance(random: MeasuredModel, level: str, text: str) -> None:
    assert verdicts(made(random=random))[1][0] == level
    assert verdicts(made(random=random))[1][1].startswith(text)


def test_all_of_the_pool_is_a_verdict_of_its_own() -> None:
    assert verdicts(made(chosen=2))[1] == ("unknown", "All of the pool is best: nothing is gained by leaving documents out.")


def test_a_share_within_a_tolerance_says_so() -> None:
    says = verdicts(made(chosen=0, tolerance=0.05))[0][1]
    assert says.endswith(", which is surely no more than 5.00 % above the lowest, at 50.00 %.")


def test_a_share_named_by_hand_has_no_perplexity() -> None:
    alone = SelectionCut(0.1, 1, 40, -1.25)
    selection = made(chosen=0, held_out_events=0, in_domain_perplexity=None)
    selection = replace(selection, chosen=alone, cuts=(alone,))
    assert verdicts(selection) == [
        ("fact", "Selected: 1 document, 10.00 % of the pool's text, which differ by at most -1.2500 bits per token.")
    ]
    assert selection.best is selection.smallest_alike is None
    table = next(block for block in blocks(selection) if isinstance(block, doc.Table))
    assert [column.title for column in table.columns] == ["share", "documents", "bytes", "difference ≤"]
    assert "perplexity" not in as_text(blocks(selection))


def test_the_rule_of_the_share() -> None:
    tried = cuts()
    assert choose_cut(tried, 0.0).share == 0.5
    assert choose_cut(tried, 0.04).share == 0.5  # the interval of the smaller one ends at 1.05
    assert choose_cut(tried, 0.05).share == 0.25
    assert choose_cut(tried[1:], 0.5).share == 0.5  # never more than the best


def test_charts_have_both_lines_and_the_histogram() -> None:
    line = next(block for block in blocks(made()) if isinstance(block, doc.ChartData))
    assert [series.name for series in line.series] == ["selected", "random"]
    assert [series.y[-1] for series in line.series] == [120.0, 120.0]
