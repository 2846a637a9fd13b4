"""The document of a comparison: the verdict comes first and says all, then figures, agreements, slices and examples."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.report.conftest import HOSTILE, LONG

from lmgauge.evaluation.comparison.comparability import EXACT_PART, NOTHING, Agreement
from lmgauge.evaluation.comparison.results import Comparison, Comparisons
from lmgauge.report import comparison as report
from lmgauge.report.blocks import Document, Heading, Mark, Table, Verdict
from lmgauge.report.comparison import recipe_blocks
from lmgauge.report.terminal import as_text


@pytest.fixture(scope="module")
def comparisons(results: dict[str, Any]) -> Comparisons:
    found: Comparisons = results["comparison"]
    return found


@pytest.fixture(scope="module")
def one(comparisons: Comparisons) -> Comparison:
    """Two models that may be compared and differ."""
    item: Comparison = replace(comparisons[0], first="A", second="B")
    return item


def verdict(comparisons: Comparisons, item: Comparison, **changes: Any) -> Verdict:
    document = report.blocks(replace(comparisons, items=(replace(item, **changes),)), details=False)
    assert isinstance(document[0], Heading)
    assert isinstance(document[1], Verdict)
    return document[1]


def test_the_verdict_comes_first_and_says_all(comparisons: Comparisons, one: Comparison) -> None:
    found = verdict(comparisons, one)
    lead = one.differences[0]
    assert found.level == "good"
    assert found.text.startswith(f"Comparable: perplexity {lead.second:.2f} for B, {lead.first:.2f} for A, difference -")
    assert "% (95 % interval -" in found.text
    assert found.text.endswith("The difference is real: B is better (p < 0.0001, 27 paired segments).")


def test_chance_is_said_with_what_is_needed(comparisons: Comparisons, one: Comparison) -> None:
    found = verdict(comparisons, one, p_value_holm=0.4, units_needed=270)
    assert found.level == "unknown"
    assert "The difference is not significant (p = 0.4000, 27 paired segments)." in found.text
    assert "about 270 such segments are needed, 10.0 times this text" in found.text
    assert f"Differences of {100 * (one.detectable or 0):.2f} % or more are found in a text like this" in found.text


def test_a_plan_is_answered_whether_the_difference_is_real_or_not(comparisons: Comparisons, one: Comparison) -> None:
    found = verdict(comparisons, one, plan=0.005, units_planned=81)
    assert found.text.endswith("difference of 0.50 %, about 81 such segments are needed, 3.0 times this text (80 % power).")


def test_doubts_leave_no_verdict(comparisons: Comparisons, one: Comparison) -> None:
    found = verdict(comparisons, one, doubts=("B: its log-probabilities are not natural logs.",))
    assert found.level == "unknown"
    assert "So there is no verdict" in found.text


def test_what_cannot_be_compared(comparisons: Comparisons, one: Comparison) -> None:
    found = verdict(comparisons, one, differences=(), p_value_holm=None, part=NOTHING)
    assert (found.level, found.text) == ("bad", "Not comparable: no part of the two can be compared.")
    part = verdict(comparisons, one, part=EXACT_PART)
    assert part.text.startswith("Not comparable as a whole; on the exact part: perplexity ")
    assert "The difference on the part compared is real" in part.text


def test_infinite_figures_have_no_test(comparisons: Comparisons, one: Comparison) -> None:
    lead = replace(one.differences[0], second=math.inf, difference=math.inf, interval=None)
    found = verdict(comparisons, one, differences=(lead,), p_value_holm=None)
    assert found.level == "unknown"
    assert found.text.endswith("∞ for B, 3.59 for A, difference ∞.")


def test_verdicts_then_agreements_then_details(comparisons: Comparisons) -> None:
    document = report.blocks(comparisons)
    kinds = [type(block).__name__ for block in document]
    last_verdict = max(i for i, block in enumerate(document) if isinstance(block, Verdict))
    agreements = [i for i, t in enumerate(document) if isinstance(t, Table) and t.columns[0].title == "what must match"]
    titled = [i for i, block in enumerate(document) if isinstance(block, Table) and block.title]
    assert kinds[:2] == ["Heading", "Verdict"]
    assert [last_verdict < agreements[0], agreements[0] < min(titled)] == [True, True]


@pytest.mark.parametrize(("second", "said"), [("no: unseen words", "bound"), ("yes", "no")])
def test_two_bounds_of_one_kind_are_called_bounds(second: str, said: str, comparisons: Comparisons) -> None:
    exact = Agreement("bits exact", ("no: unseen words", second), False)
    table = report.agreements_of(replace(comparisons, runs=("A", "B"), agreements=(exact,)))
    assert list(table.columns[-1].cells) == [Mark(said, "unknown")]


def test_recipes_begin_with_their_verdict(results: dict[str, Any]) -> None:
    document: Document = recipe_blocks(results["recipes"])
    assert document[0] == Heading(f"{LONG} compared with {HOSTILE}")
    assert isinstance(document[1], Verdict)
    assert "perplexity: difference +" in document[1].text
    assert "The difference of the recipes is not significant (p = 0." in document[1].text
    real = recipe_blocks([replace(results["recipes"][0], first="A", second="B", p_value_holm=0.001)])
    assert "is real: recipe A is better (p = 0.0010)" in as_text(real).replace("\n", " ")


def test_several_runs_are_compared_with_the_first_only(comparisons: Comparisons) -> None:
    hint = "each is compared with {} only; for all pairs: lmgauge report"
    two = replace(comparisons, items=comparisons.items[:1] * 2, runs=("A", "B", "C"))
    assert hint.format("A") in as_text(report.blocks(two, details=False), 200)
    assert "only; for all pairs" not in as_text(report.blocks(replace(two, items=two.items[:1]), details=False), 200)


# -- three models or more -----------------------------------------------------------------------------------------------
def ranked(one: Comparison, *changes: dict[str, Any]) -> Verdict:
    """The verdict on A and further models, each with changes of the comparison with A."""
    lead = replace(one.differences[0], first=100.0, second=125.0, difference=1.25)
    usual = {"p_value_holm": 0.001, "differences": (lead,)}
    items = [replace(one, second=f"B{i}", **(usual | change)) for i, change in enumerate(changes)]
    runs = ("A", *(item.second for item in items))
    return report.ranking(Comparisons(tuple(items), runs, ()), "perplexity")


def further(one: Comparison, ratio: float) -> dict[str, Any]:
    """A comparison in which the other perplexity is so many times that of A."""
    return {"differences": (replace(one.differences[0], first=100.0, second=100 * ratio, difference=ratio),)}


def test_one_sentence_says_which_is_best_and_what_is_real(one: Comparison) -> None:
    found = ranked(one, further(one, 1.0069) | {"p_value_holm": 0.0002}, further(one, 1.0867), further(one, 11.0094))
    assert found.level == "good"
    assert found.text == (
        "A predicts best: perplexity 100. It beats B0 (0.69 % higher), B1 (8.67 % higher) and "
        "B2 (1,000.94 % higher); all three differences are real (p ≤ 0.0010, adjusted for 6 comparisons (Holm), "
        "27 paired segments)."
    )


def test_what_is_not_real_is_said_of_each(one: Comparison) -> None:
    zero = replace(one.differences[0], second=math.inf, difference=math.inf, interval=None)
    cases: dict[str, dict[str, Any]] = {
        "It may be lower by chance than B1 (25.00 % higher, p = 0.4000).": {"p_value_holm": 0.4},
        "It is lower than B1 (25.00 % higher); this is not tested: that takes six documents or segments.": {
            "p_value_holm": None
        },
        "Equal within the rounding of scores: B1.": {"within_rounding": True},
        "B1: not natural logs. So there is no verdict on B1.": {"doubts": ("B1: not natural logs.",)},
        "B1 has no rank: only a part may be compared.": {"part": EXACT_PART},
        "B1 has no rank: an event has probability zero.": {"differences": (zero,), "p_value_holm": None},
    }
    for sentence, change in cases.items():
        found = ranked(one, {}, change)
        assert found.text.endswith(f" {sentence}")
        assert "It beats B0 (25.00 % higher); the difference is real (p = 0.0010" in found.text
        assert found.level == ("good" if "Equal" in sentence else "unknown")
        assert ("predicts best" in found.text) == ("Equal" in sentence or "no rank" in sentence)


def test_equal_models_are_not_called_better(one: Comparison) -> None:
    found = ranked(one, further(one, 1.0), further(one, 1.0))
    assert found == Verdict("unknown", "A has the lowest perplexity, 100. Equal within the rounding of scores: B0 and B1.")


def test_many_models_are_counted(one: Comparison) -> None:
    found = ranked(one, *(further(one, 1 + i / 10) for i in range(1, 9)))
    assert "It beats 8 models, from B0 (10.00 % higher) to B7 (80.00 % higher); all 8 differences are real" in found.text


def test_no_figure_for_all_is_no_rank(one: Comparison) -> None:
    found = ranked(one, {"part": NOTHING, "differences": ()}, {"part": EXACT_PART})
    assert found.text == "These 3 models cannot be ranked: no figure may be compared between all of them."
