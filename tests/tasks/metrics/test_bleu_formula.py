"""BLEU from sums: against sacreBLEU's own formula, a twin by logarithms, and the textbook's example, which is exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.task_rows import BLEU_OF_COUNTS, COUNTS, WMT17
from tests.reference import bleu as twin

from lmgauge.base.errors import UsageError
from lmgauge.tasks.metrics.bleu import BLEU, bleu_scores, brevity_penalties, ngram_precisions

CAT = [6, 6, 5, 3, 1, 6, 5, 4]
"""'The cat sat on the mat' against 'The cat sits on the mat': 5/6, 3/5, 1/4."""


@st.composite
def sums(draw: st.DrawFn, order: int) -> list[int]:
    """A sum of statistics as texts give them: totals fall, and there are no more matches than n-grams."""
    totals = sorted(draw(st.lists(st.integers(0, 30), min_size=order, max_size=order)), reverse=True)
    counts = [draw(st.integers(0, total)) for total in totals]
    return [totals[0], draw(st.integers(0, 40)), *counts, *totals]


smoothings = st.one_of(
    st.tuples(st.sampled_from(["exp", "none"]), st.none()),
    st.tuples(st.sampled_from(["floor", "add-k"]), st.none() | st.sampled_from([0.0, 0.01, 0.5, 1.0, 3.0])),
)


@given(st.data(), st.integers(1, 6), smoothings, st.booleans())
def test_scores_are_sacrebleu_s(data: st.DataObject, order: int, smoothing: tuple[str, Any], effective: bool) -> None:
    compute_bleu = pytest.importorskip("sacrebleu.metrics").BLEU.compute_bleu
    rows = data.draw(st.lists(sums(order), min_size=1, max_size=5))
    formula = BLEU(order, *smoothing, effective_order=effective)
    found, precisions = bleu_scores(rows, formula), ngram_precisions(rows, formula)
    for row, score, parts in zip(rows, found, precisions, strict=True):
        options = {"smooth_method": smoothing[0], "smooth_value": smoothing[1], "effective_order": effective}
        counts, totals = [float(c) for c in row[2 : 2 + order]], [float(t) for t in row[2 + order :]]
        theirs = compute_bleu(counts, totals, row[0], row[1], max_ngram_order=order, **options)
        assert score == pytest.approx(theirs.score, abs=1e-9)
        assert parts.tolist() == pytest.approx(theirs.precisions, abs=1e-9)
        assert brevity_penalties([row[0]], [row[1]])[0] == pytest.approx(theirs.bp, abs=1e-12)


@given(st.data(), st.integers(1, 5), smoothings, st.booleans())
def test_scores_are_the_twin_s(data: st.DataObject, order: int, smoothing: tuple[str, Any], effective: bool) -> None:
    rows = data.draw(st.lists(sums(order), min_size=1, max_size=5))
    formula = BLEU(order, *smoothing, effective_order=effective)
    expected = [100 * twin.score(row, smoothing[0], formula.value, effective) for row in rows]
    assert bleu_scores(rows, formula).tolist() == pytest.approx(expected, abs=1e-9)


def test_the_textbook_s_example_is_exactly_one_half() -> None:
    """The 0.545 printed in one post is a slip: the logarithms sum to -2.0794, a third of which is -0.6931 = ln 0.5."""
    assert bleu_scores([CAT], BLEU(order=3))[0] == 50.0
    assert math.log(5 / 6) + math.log(3 / 5) + math.log(1 / 4) == pytest.approx(-2.0794, abs=1e-4)


def test_no_4_gram_and_no_smoothing_is_zero() -> None:
    assert bleu_scores([[6, 6, 5, 3, 1, 0, 6, 5, 4, 3]], BLEU(smoothing="none"))[0] == 0.0


@given(st.integers(1, 64), st.integers(64, 10**9))
def test_a_perfect_match_is_exactly_100(order: int, words: int) -> None:
    totals = [words - n for n in range(order)]
    for smoothing in ("exp", "floor", "add-k", "none"):
        assert bleu_scores([[words, words, *totals, *totals]], BLEU(order, smoothing=smoothing))[0] == 100.0


def test_golden_counts() -> None:
    row = [*COUNTS["lengths"], *COUNTS["correct"], *COUNTS["total"]]
    assert bleu_scores([row], BLEU())[0] == pytest.approx(BLEU_OF_COUNTS, abs=1e-8)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_system_of_wmt17(order: int) -> None:
    row = [*WMT17["lengths"], *WMT17["correct"][:order], *WMT17["total"][:order]]
    assert bleu_scores([row], BLEU(order))[0] == pytest.approx(WMT17["scores"][order - 1], abs=1e-9)


def test_a_product_too_small_for_a_float() -> None:
    """64 precisions of a millionth: their product is 1e-384."""
    row = [10**6, 10**6, *[1] * 64, *[10**6] * 64]
    assert bleu_scores([row], BLEU(64))[0] == pytest.approx(1e-4, rel=1e-12)


def test_sums_are_not_changed() -> None:
    rows = np.array([[11, 11, 9, 7, 5, 3, 10, 8, 6, 4]], dtype=np.float64)
    kept = rows.copy()
    for smoothing in ("exp", "floor", "add-k", "none"):
        bleu_scores(rows, BLEU(smoothing=smoothing))
        ngram_precisions(rows, BLEU(smoothing=smoothing))
    assert (rows == kept).all()


def test_no_rows() -> None:
    assert bleu_scores(np.zeros((0, 10)), BLEU()).shape == (0,)


def test_brevity_penalty() -> None:
    penalties = brevity_penalties([0, 0, 5, 5, 10], [0, 5, 10, 5, 5])
    assert penalties.tolist() == pytest.approx([1.0, 0.0, math.exp(-1), 1.0, 1.0], rel=1e-15)  # NumPy 1.26 rounds otherwise


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": 0}, "order must be .* got 0"),
        ({"order": 65}, "from 1 to 64; got 65"),
        ({"order": True}, "order must be .* got True"),
        ({"order": 2.5}, "order must be .* got 2.5"),
        ({"smoothing": "chen"}, "choose one of exp, floor, add-k, none"),
        ({"smoothing_value": 1.0}, "exp takes no value"),
        ({"smoothing": "floor", "smoothing_value": -1.0}, "smoothing-value must be a number from 0"),
        ({"smoothing": "add-k", "smoothing_value": math.nan}, "must be a number from 0 .* got nan"),
        ({"smoothing": "add-k", "smoothing_value": "1"}, "must be a number from 0 .* got '1'"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        BLEU(**options)


def test_columns_must_belong_to_the_order() -> None:
    with pytest.raises(UsageError, match=r"\(1, 8\) are not BLEU statistics of order 4"):
        bleu_scores([CAT], BLEU())
