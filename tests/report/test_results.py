"""What the documents of the other results say: figures, marks, conclusions, charts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.report.conftest import HOSTILE

from lmgauge.models.combined.mixture.model import MixtureModel
from lmgauge.report import audit, diagnosis, divergence, models, overlap, tasks
from lmgauge.report.blocks import ChartData, Document, Number, Range, Table, Verdict
from lmgauge.report.terminal import as_text
from lmgauge.tasks.alignment import AlignedSegment, ErrorCounts, align
from lmgauge.tasks.correlation import correlate


def table(document: Document, title: str) -> Table:
    return next(block for block in document if isinstance(block, Table) and block.title.startswith(title))


def charts(document: Document) -> dict[str, ChartData]:
    return {block.name: block for block in document if isinstance(block, ChartData)}


def test_a_diagnosis_has_the_data_of_its_charts(results: dict[str, Any]) -> None:
    document = diagnosis.blocks(results["diagnosis"])
    found = charts(document)
    happened, chance = found["calibration"].series
    rows = [row for row in table(document, "calibration").rows if row[0] != "0"]
    means, shares = ([cell.value for row in rows if isinstance(cell := row[i], Number)] for i in (2, 3))
    assert (list(happened.x), list(happened.y)) == (means, shares)
    assert chance.x == happened.x
    bins = results["diagnosis"].calibration
    (first,) = (
        one for one in (*bins.decades, *bins.tenths) if one.mean_forecast == happened.x[-1] and one.low >= 0.1 - 1e-12
    )
    half = 1.959963984540054 * first.deviation / first.forecasts
    assert chance.low[-1] == pytest.approx(max(0.0, first.mean_forecast - half))
    assert chance.high[-1] == pytest.approx(min(1.0, first.mean_forecast + half))
    assert {"occurrences", "class", "class-share", "position", "baselines", "confidence"} <= found.keys()
    assert all(
        chart.cut == "" or any(isinstance(b, Table) and b.cut == chart.cut for b in document) for chart in found.values()
    )


def test_a_diagnosis_sets_the_model_off_from_the_baselines(results: dict[str, Any]) -> None:
    baselines = table(diagnosis.blocks(results["diagnosis"]), "what the number is worth")
    (own,) = baselines.bold
    columns = {column.title: column.cells for column in baselines.columns}
    assert columns["what it is"][own] == "the model"
    assert columns["compared with the model"][own] == ""
    seen = dict(zip(columns[""], columns["trained"], strict=True))
    assert (seen["word 5-gram"], seen["byte 10-gram"], seen["gzip -9"]) == ("yes", "yes", "no")


def test_a_diagnosis_without_finite_bits(results: dict[str, Any]) -> None:
    found = results["diagnosis"]
    infinite = replace(found.evaluation, bits_per_byte=math.inf, bits_per_byte_is_bound=True, perplexity_without_zeros=None)
    shown = as_text(diagnosis.blocks(replace(found, evaluation=infinite)), 120)
    assert "≥ ∞" not in shown
    assert "average of – bits per byte" in shown


def test_a_divergence_has_a_row_for_each_figure(results: dict[str, Any]) -> None:
    found = results["divergence"]
    names, values, ends = next(block for block in divergence.blocks(found) if isinstance(block, Table)).columns
    assert names.cells[0] == "KL, nats"
    assert values.cells[0] == Number(found.kl_ab_nats.value, 2, "figures")
    assert ends.cells[0] == Range(found.kl_ab_nats.interval.low, found.kl_ab_nats.interval.high, 2, "figures")
    agreement = list(names.cells).index("top-1 agreement, %")
    assert values.cells[agreement] == Number(100 * found.top_1_agreement.value, 2)


def test_where_models_are_furthest_apart(results: dict[str, Any]) -> None:
    found = results["divergence"]
    worst = table(divergence.blocks(found), "events where the models differ most")
    assert [cell.value for cell in worst.columns[1].cells] == [token.kl_nats for token in found.worst_tokens]
    shown = as_text(divergence.blocks(found), 200)
    assert "'\\x1b[2Jc' 0.83" in shown
    alike = replace(found, kl_ab_quantiles_nats=dict.fromkeys(found.kl_ab_quantiles_nats, 0.0))
    assert "furthest" not in as_text(divergence.blocks(alike))
    assert "furthest" not in as_text(divergence.blocks(found, details=False))


def test_a_divergence_by_slices_is_in_nats(results: dict[str, Any]) -> None:
    found = results["divergence"]
    by_class = next(slices for slices in found.slices if slices.name == "class")
    shown = table(divergence.blocks(found), "by class")
    assert [cell.value for cell in shown.columns[1].cells] == [row.ranges for row in by_class.rows]
    means = [row.bits_per_unit[0] * math.log(2) for row in by_class.rows]
    assert [cell.value for cell in shown.columns[2].cells] == pytest.approx(means)


def test_candidates_have_a_verdict_a_row_each_and_tests(results: dict[str, Any]) -> None:
    found = results["candidates"]
    document = divergence.candidate_blocks(found)
    verdict = next(block for block in document if isinstance(block, Verdict))
    closest = min(found, key=lambda item: item.kl_ab_nats.value)
    assert f"{closest.b} is closest to" in verdict.text
    rows = next(block for block in document if isinstance(block, Table))
    assert [cell.value for cell in rows.columns[1].cells] == [item.kl_ab_nats.value for item in found]
    tests = table(document, "is one worse")
    assert len(tests.rows) == len(found.tests) == 6
    assert [row[2].value for row in tests.rows] == pytest.approx([test.difference for test in found.tests])
    far = replace(found[0], kl_ab_nats=replace(found[0].kl_ab_nats, value=math.inf, interval=None))
    infinite = divergence.candidate_blocks(replace(found, items=(far, far)))
    assert "No candidate is a finite divergence from" in next(b.text for b in infinite if isinstance(b, Verdict))


def test_an_overlap_shows_passages_on_both_sides(results: dict[str, Any]) -> None:
    shown = as_text(overlap.blocks(results["overlap"]), 200)
    assert "contaminated segments  41 of 41 (100.00 %)" in shown
    assert "Passages, 36 of 36" in shown
    assert "\n    = " in shown


def test_many_groups_are_cut_and_counted(results: dict[str, Any]) -> None:
    found = results["overlap"]
    many = replace(found, groups=[replace(found.groups[0], name=str(i)) for i in range(45)])
    groups = table(overlap.blocks(many), "By test text")
    assert len(groups.rows) == 40
    assert groups.footnotes == ("and 5 more, with smaller shares: --json has them all",)


def test_an_audit_begins_with_its_conclusion(results: dict[str, Any]) -> None:
    document = audit.blocks(results["audit"])
    assert isinstance(document[1], Verdict)
    assert document[1].level == "good"
    checks = next(block for block in document if isinstance(block, Table))
    assert checks.columns[0].cells[checks.bold[0]] == "1 coverage"
    failed = replace(results["audit"], checks=tuple(replace(check, verdict="FAIL") for check in results["audit"].checks))
    assert audit.blocks(failed)[1].level == "bad"  # type: ignore[union-attr]


def test_a_mixture_sums_up_its_weights(results: dict[str, Any]) -> None:
    mixed = results["mixture"]
    own, chart, notes = models.mixture_blocks(mixed, name="mixed", paths=["a", "b"])
    assert isinstance(own, Table)
    assert isinstance(chart, ChartData)
    assert [(series.x, series.y) for series in chart.series] == [(("a", "b"), tuple(mixed.weights))]
    names, weights, perplexities = own.columns
    assert names.cells == ["a", "b", "mixed"]
    assert [cell.value for cell in weights.cells if isinstance(cell, Number)] == [*mixed.weights, 1.0]
    last = perplexities.cells[-1]
    assert isinstance(last, Number)
    assert last.value == mixed.estimation["perplexity"]
    assert own.bold == (2,)
    assert "other weights could gain" in as_text([notes])
    assert "held-out" not in as_text(models.mixture_blocks(MixtureModel(mixed.components, mixed.weights)))


def test_a_correlation_begins_with_its_verdict() -> None:
    names = [str(i) for i in range(8)]
    document = tasks.correlation_blocks(
        correlate(names, [float(i) for i in range(8, 0, -1)], [i**2 + 0.5 for i in range(8)])
    )
    assert document[0] == Verdict("good", "Systems with a higher score tend to have a lower perplexity (p < 0.0001).")
    assert charts(document)["correlation"].series[0].x == tuple(float(i) for i in range(8, 0, -1))


def test_segments_without_errors_are_left_out() -> None:
    right = AlignedSegment(0, "one", align("a b", "a b"))
    assert list(tasks.aligned_blocks([right])) == []
    shown = as_text(tasks.aligned_blocks([right, AlignedSegment(1, "one", align("a b", "a c"))]))
    assert shown.splitlines() == [
        "segment 2 of one: 1 substituted, 0 deleted, 0 inserted, 1 right",
        "REF:  a b",
        "HYP:  a c",
        "EVAL:   S",
    ]


def test_systems_without_errors_have_none() -> None:
    assert as_text(tasks.error_blocks({HOSTILE: ErrorCounts()}, 3)).endswith("\nnone")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_alignments_continue_on_new_lines(width: int) -> None:
    long = AlignedSegment(0, "one", align("word " * 40, "word " * 39 + "ward"))
    shown = as_text(tasks.aligned_blocks([long]), width)
    assert max(map(len, shown.splitlines())) <= width


@pytest.mark.parametrize(
    ("ratio", "level"), [(1.02, "bad"), (1.0011, "bad"), (1.0009, "fact"), (0.9991, "fact"), (0.98, "good")]
)
def test_a_small_change_of_the_perplexity_is_neither_good_nor_bad(results: dict[str, Any], ratio: float, level: str) -> None:
    one = results["divergence"]
    interval = replace(one.perplexity_ratio.interval, low=ratio - 1e-5, high=ratio + 1e-5)
    figure = replace(one.perplexity_ratio, value=ratio, interval=interval)
    verdict = next(b for b in divergence.blocks(replace(one, perplexity_ratio=figure)) if isinstance(b, Verdict))
    assert verdict.level == level
    assert ("; below 0.1 % it counts as neither good nor bad." in verdict.text) == (level == "fact")
