"""The charts of results: their numbers are the result's, they say units and what is better, and lead to slices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.tasks.share import ErrorShare, Share, compared, grouped

import lmgauge
from lmgauge.evaluation.results import Evaluation
from lmgauge.report import (
    audit,
    calc,
    comparison,
    correlation,
    divergence,
    evaluations,
    info,
    overlap,
    tasks,
    training,
)
from lmgauge.report.blocks import ChartData, Document, Ladder
from lmgauge.tasks.correlation import correlate

GOOD = np.array([(8, 10), (9, 10), (7, 9)] * 20, dtype=np.int64)
BAD = np.array([(5, 10), (6, 10), (6, 9)] * 20, dtype=np.int64)


def charts(document: Document) -> dict[str, ChartData]:
    """The charts of a document by name."""
    return {block.name: block for block in document if isinstance(block, ChartData)}


def ends(chart: ChartData) -> list[tuple[float | None, float | None]]:
    """The intervals of a chart of one series."""
    (series,) = chart.series
    return list(zip(series.low, series.high, strict=True))


def test_every_chart_says_its_unit_and_has_a_name_for_files(documents: dict[str, Document]) -> None:
    every = [chart for document in documents.values() for chart in charts(document).values()]
    assert len({chart.name for chart in every}) > 15
    for chart in every:
        assert chart.x_title
        assert chart.y_title
        assert chart.title
        assert chart.name.islower()
        assert " " not in chart.name
        for series in chart.series:
            assert len(series.x) == len(series.y)
            assert len(series.low) == len(series.high)
            assert len(series.low) in (0, len(series.x))


def test_models_are_drawn_by_the_figure_that_may_be_compared(results: dict[str, Any]) -> None:
    found = results["evaluations"]
    wholes = [result for result in found if result.group is None]
    models = charts(evaluations.blocks(wholes))["models"]
    assert (models.y_title, models.better, models.kind) == ("perplexity", "lower", "intervals")
    assert models.series[0].y == tuple(result.perplexity for result in wholes)
    assert ends(models) == [(result.interval.low, result.interval.high) for result in wholes]
    groups = charts(evaluations.blocks(found))["groups"]
    assert groups.cut == "group"
    assert [(series.name, set(series.x)) for series in groups.series] == [
        (result.model, {r.group for r in found if r.group is not None}) for result in wholes
    ]
    first = {r.group: r.perplexity for r in found if r.group is not None and r.model == wholes[0].model}
    assert dict(zip(groups.series[0].x, groups.series[0].y, strict=True)) == first


def test_models_of_other_events_are_drawn_by_bits_per_byte_if_they_are_no_bounds(results: dict[str, Any]) -> None:
    first, second = (result for result in results["evaluations"] if result.group is None)

    def drawn(*wholes: Evaluation) -> dict[str, ChartData]:
        return charts(evaluations.blocks(wholes))

    exact = (
        replace(first, bits_per_byte_is_bound=False),
        replace(second, bits_per_byte_is_bound=False, events=second.events + 1),
    )
    models = drawn(*exact)["models"]
    assert (models.y_title, models.y_unit, models.series[0].low) == ("bits per byte", "bits", ())
    assert models.series[0].y == (first.bits_per_byte, second.bits_per_byte)
    assert drawn(exact[0], replace(exact[1], bits_per_byte_is_bound=True)) == {}
    assert drawn(first, replace(second, fingerprints=second.fingerprints | {"text": "another"})) == {}
    assert drawn(first) == {}


def test_differences_of_runs_have_their_intervals(results: dict[str, Any]) -> None:
    pairs = results["comparison"]
    chart = charts(comparison.blocks(pairs))["difference"]
    leads = [item.differences[0] for item in pairs]
    assert (chart.y_unit, chart.rule, chart.rule_name) == ("%", 0.0, pairs[0].first)
    assert chart.series[0].y == tuple(100 * (lead.difference - 1) for lead in leads)
    for (low, high), interval in zip(ends(chart), (lead.interval for lead in leads), strict=True):
        assert (low, high) == ((None, None) if interval is None else (100 * (interval.low - 1), 100 * (interval.high - 1)))
    one = charts(comparison.blocks_of_one(pairs[0]))["difference"]
    assert one.series[0].y == chart.series[0].y[:1]


def test_recipes_are_drawn_with_all_their_runs(results: dict[str, Any]) -> None:
    (item,) = results["recipes"]
    found = charts(comparison.recipe_blocks([item]))
    runs, mean = found["recipes"].series
    assert runs.y == (*item.values[0], *item.values[1])
    assert (mean.x, mean.y) == ((item.first, item.second), item.figures)
    assert len(ends(found["difference"])) == 1


def test_a_divergence_is_drawn_over_its_quantiles(results: dict[str, Any]) -> None:
    result = results["divergence"]
    chart = charts(divergence.blocks(result))["divergence"]
    assert chart.series[0].y == tuple(result.kl_ab_quantiles_nats.values())
    assert chart.series[0].x[:3] + chart.series[0].x[-2:] == ("minimum", "0.1 %", "1 %", "99.9 %", "maximum")
    assert (chart.y_unit, chart.rule) == ("nats", result.kl_ab_nats.value)
    same = replace(result, kl_ab_quantiles_nats=dict.fromkeys(result.kl_ab_quantiles_nats, 0.0))
    assert charts(divergence.blocks(same)) == {}


def test_systems_are_drawn_with_intervals_and_the_best_is_marked() -> None:
    systems = compared(ErrorShare(), ["base", "new"], [GOOD, BAD], test="sacrebleu-bootstrap")
    found = charts(tasks.blocks(systems))
    scale = 100.0 if systems.percent else 1.0
    assert found["systems"].series[0].y == tuple(scale * item.score.score for item in systems)
    assert found["systems"].better == "lower"
    assert [name.endswith(" (best)") for name in map(str, found["systems"].series[0].x)] == [
        i is systems.best for i in systems
    ]
    gap = found["differences"]
    second = systems.items[1]
    assert second.difference is not None
    assert second.difference_interval is not None
    assert (gap.title, gap.rule, gap.series[0].y) == ("Difference from base", 0.0, (scale * second.difference,))
    assert ends(gap) == [(scale * second.difference_interval.low, scale * second.difference_interval.high)]
    assert gap.note.startswith("new: p ")
    assert "differences" not in charts(tasks.blocks(compared(Share(), ["base", "new"], [GOOD, BAD], test=None)))
    assert charts(tasks.blocks(compared(Share(), ["base"], [GOOD], test=None))) == {}


def test_groups_of_segments_are_drawn_by_system() -> None:
    groups = grouped(np.arange(60) % 2, ["a", "b"], [GOOD, BAD])
    systems = compared(Share(), ["base", "new"], [GOOD, BAD], groups=groups, test=None)
    series = charts(tasks.blocks(systems))["groups"].series
    assert [(one.name, one.x) for one in series] == [("base", ("a", "b")), ("new", ("a", "b"))]
    assert series[1].y[0] == pytest.approx((100.0 if systems.percent else 1.0) * systems.items[1].groups["a"].score)


def test_a_correlation_names_its_points() -> None:
    found = correlate(["a", "b", "c", "d"], [10.0, 20.0, 40.0, 80.0], [4.0, 3.0, 2.5, 1.0])
    chart = charts(correlation.blocks(found))["correlation"]
    assert (chart.kind, chart.log_x, chart.series[0].names) == ("scatter", found.log_x, found.systems)


def test_the_overlap_of_groups_is_drawn_as_shares(results: dict[str, Any]) -> None:
    found = results["overlap"]
    chart = charts(overlap.blocks(found))["overlap"]
    groups = sorted(found.groups, key=lambda group: -group.ngram_share)
    assert (chart.kind, chart.y_unit, chart.better) == ("bars", "%", "lower")
    assert chart.series[1].y == tuple(100 * group.ngram_share for group in groups)


def test_an_audit_has_a_step_for_each_level(results: dict[str, Any]) -> None:
    (ladder,) = (block for block in audit.blocks(results["audit"]) if isinstance(block, Ladder))
    assert [rung.mark.text for rung in ladder.rungs] == [results["audit"].verdict(rung.name) for rung in ladder.rungs]


def test_tokens_of_a_calculation_stay_apart() -> None:
    (chart,) = charts(calc.blocks(lmgauge.calc([0.5, 0.25], tokens=["the", "the"]))).values()
    assert (chart.series[0].x, chart.series[0].y) == (("1. the", "2. the"), (1.0, 2.0))


HISTORY = [
    {"epoch": 1, "perplexity": 90.0, "valid_perplexity": 95.0, "learning_rate": 1.0},
    {"epoch": 2, "perplexity": 80.0, "learning_rate": 0.5},
]


def test_loss_curves_of_a_training() -> None:
    loss, rate = (block for block in training.history_blocks(HISTORY) if isinstance(block, ChartData))
    assert [(one.name, one.x, one.y) for one in loss.series] == [
        ("training text", (1, 2), (90.0, 80.0)),
        ("validation text", (1, 2), (95.0, None)),
    ]
    assert (loss.better, rate.series[0].y) == ("lower", (1.0, 0.5))
    assert training.charts(HISTORY[:1]) == ()


def test_what_is_in_a_trained_network_has_its_loss_curves() -> None:
    stored = {"kind": "lstm", "training": {"history": HISTORY}}
    assert list(charts(info.blocks({"training": stored}))) == ["loss", "learning-rate"]
    for odd in ("text", {"training": 3}, {"training": {"history": [1, {"epoch": 2}]}}, {"training": {"history": "x"}}):
        assert charts(info.blocks({"training": odd})) == {}
