"""Runs of scores of items compared, beside other programs' numbers of the same rows, and what may not be compared."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from tests.tasks.items.scored import scored, solved

from lmgauge.base.errors import CheckFailedError, InputError, UsageError
from lmgauge.tasks import compare_items
from lmgauge.tasks.items.results import ItemComparisons, ItemDifference

SIZES = (3, 5, 2, 8, 4, 6, 1, 7, 3, 5)
FIRST = [
    0.63, 0.9, 0.78, 0.23, 0.3, 0.87, 0.01, 0.82, 0.8, 0.47, 0.3, 0.28, 0.25, 0.45, 0.5, 0.55, 1.0, 0.79, 0.62, 0.99,
    0.22, 0.16, 0.61, 0.04, 0.04, 0.51, 0.47, 0.92, 0.63, 0.51, 0.5, 0.25, 0.01, 0.19, 0.69, 0.2, 0.37, 0.0, 0.83,
    0.15, 0.27, 0.88, 0.51, 0.85,
]  # fmt: skip
SECOND = [
    0.85, 0.97, 1.0, 0.45, 0.67, 1.0, 0.11, 1.0, 0.65, 0.44, 0.25, 0.35, 0.4, 0.82, 0.91, 0.47, 1.0, 1.0, 0.33, 1.0,
    0.31, 0.52, 0.78, 0.01, 0.0, 0.5, 0.81, 0.87, 0.87, 0.76, 0.65, 0.39, 0.0, 0.36, 0.78, 0.61, 0.48, 0.0, 0.94, 0.19,
    0.59, 0.99, 0.73, 0.7,
]  # fmt: skip
CLUSTERS = [f"passage {i}" for i, size in enumerate(SIZES) for _ in range(size)]


def pair(first: Any, second: Any, **more: Any) -> ItemDifference:
    """The comparison of two runs."""
    (difference,) = compare_items([scored("a", first, **more), scored("b", second, **more)]).differences
    return difference


def half(difference: ItemDifference) -> float:
    """Half of the width of its interval."""
    assert difference.interval is not None
    return (difference.interval.high - difference.interval.low) / 2


# -- beside other programs ----------------------------------------------------------------------------------------------
def test_items_on_their_own_are_tested_as_scipy_tests_pairs() -> None:
    theirs = stats.ttest_rel(SECOND, FIRST)
    ours = pair(FIRST, SECOND)
    ends = theirs.confidence_interval(0.95)
    assert ours.interval is not None
    assert (ours.interval.low, ours.interval.high) == pytest.approx((ends.low, ends.high), rel=1e-9)
    assert (ours.test, ours.unit, ours.units) == ("Student's t", "items", 44)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9)


def test_zeros_and_ones_are_tested_as_scipy_tests_coins() -> None:
    ours = pair(*solved(52, 7, 18, 23))
    assert ours.p_value == pytest.approx(stats.binomtest(7, 25).pvalue, rel=1e-12)
    assert (ours.test, ours.only_first, ours.only_second, ours.difference) == ("McNemar's exact test", 7, 18, 0.11)


def test_an_unpaired_test_misses_what_the_paired_one_shows() -> None:
    """A script of a harness tests two runs on the same items as if they were of two lots of items: 0.080 for 0.008."""
    first, second = solved(130, 14, 33, 73)
    shares = np.mean(first), np.mean(second)
    unpaired = 2 * stats.norm.sf((shares[1] - shares[0]) / math.sqrt(sum(p * (1 - p) / 250 for p in shares)))
    assert round(float(unpaired), 3) == 0.080
    assert round(pair(first, second).p_value or 1, 3) == 0.008


def test_clusters_are_beside_those_of_statsmodels() -> None:
    """`statsmodels` 0.15.0, OLS(b - a, 1).fit(cov_type="cluster", groups) of these rows: the error that it calls CR1.

    CR1 scales the squares by G / (G - 1); the jackknife leaves each cluster out instead. They are the same for clusters of
    one size; where a cluster is large, the jackknife is larger, as the mean without it moves by more.
    """
    ours = pair(FIRST, SECOND, clusters=CLUSTERS)
    sizes = np.array(SIZES, float)
    freedom = math.floor(sizes.sum() ** 2 / (sizes**2).sum()) - 1
    error = half(ours) / stats.t.ppf(0.975, freedom)
    assert ours.difference == pytest.approx(0.11727272727272728)
    assert 1.0 < error / 0.0208927561349675 < 1.08
    assert (ours.unit, ours.units, freedom) == ("clusters", 10, 7)
    # Each cluster left out in turn, in the slow way.
    apart, codes = np.array(SECOND) - FIRST, np.repeat(np.arange(10), SIZES)
    without = np.array([apart[codes != i].mean() for i in range(10)])
    assert error == pytest.approx(math.sqrt(0.9 * ((without - apart.mean()) ** 2).sum()), rel=1e-9)


def test_clusters_of_one_size_have_the_error_of_statsmodels() -> None:
    """`statsmodels` 0.15.0 of the first 40 rows in clusters of four, and Miller (2024), equation 4."""
    first, second = np.array(FIRST[:40]), np.array(SECOND[:40])
    ours = pair(first, second, clusters=[str(i // 4) for i in range(40)])
    apart = second - first
    totals = (apart - apart.mean()).reshape(10, 4).sum(axis=1)
    miller = math.sqrt((totals**2).sum()) / 40
    error = half(ours) / stats.t.ppf(0.975, 9)
    assert error == pytest.approx(miller * math.sqrt(10 / 9), rel=1e-9)
    assert error == pytest.approx(0.029345168067143348, rel=1e-9)


def test_variances_within_and_between_items_are_those_of_statsmodels() -> None:
    """`statsmodels` 0.15.0, MixedLM(y, 1, groups=item).fit(reml=True) of these rows."""
    values = np.random.Generator(np.random.PCG64(3)).normal(size=(12, 4)) * 0.1 + np.linspace(0, 1, 12)[:, None]
    values = values.round(3)
    run = compare_items([scored("a", values), scored("b", values)]).systems[0]
    assert run.variance_within == pytest.approx(0.012240948629705465, rel=1e-4)
    assert run.variance_between == pytest.approx(0.11260965, rel=1e-4)


# -- what is said -------------------------------------------------------------------------------------------------------
def test_more_samples_help_as_far_as_sampling_is_the_error() -> None:
    """Answers drawn by a coin say nothing of items: all of the error is from sampling. The same answer each time: none."""
    coins = np.random.Generator(np.random.PCG64(5)).integers(2, size=(2, 400, 4))
    assert (pair(coins[0], coins[1]).sampling_share or 0) > 0.9
    steady = np.repeat(coins[:, :, :1], 4, axis=2)
    assert pair(steady[0], steady[1]).sampling_share == 0.0
    assert pair(coins[0, :, 0], coins[1]).sampling_share is None


def test_p_values_are_adjusted_for_runs_and_in_subsets_for_both() -> None:
    runs = [
        scored(name, FIRST if name == "a" else np.roll(SECOND, i), subsets=["x", "y"] * 22) for i, name in enumerate("abc")
    ]
    result = compare_items(runs)
    assert [(one.second, one.subset) for one in result.by_subset] == [("b", "x"), ("c", "x"), ("b", "y"), ("c", "y")]
    for tests in (result.differences, result.by_subset):
        smallest = min(tests, key=lambda one: one.p_value or 0)
        assert smallest.p_value_holm == pytest.approx(min(1.0, len(tests) * (smallest.p_value or 0)))
    half, whole = result.by_subset[0], result.differences[0]
    assert (half.items, whole.items) == (22, 44)
    assert (half.detectable or 0) > (whole.detectable or 0)


def test_a_difference_of_the_detectable_size_is_found_in_four_of_five_draws() -> None:
    generator = np.random.Generator(np.random.PCG64(11))
    detectable = pair(np.zeros(200), generator.normal(size=200)).detectable or 0
    draws = generator.normal(detectable, 1, (100, 200))
    found = sum((pair(np.zeros(200), one).p_value or 1) < 0.05 for one in draws)
    assert 70 <= found <= 90


@pytest.mark.parametrize("clusters", [None, CLUSTERS])
def test_neither_the_order_of_items_nor_that_of_runs_matters(clusters: list[str] | None) -> None:
    names, order = [str(i) for i in range(44)], np.random.Generator(np.random.PCG64(2)).permutation(44)
    first = scored("a", FIRST, items=names, clusters=clusters)
    mixed = None if clusters is None else [clusters[i] for i in order]
    second = scored("b", np.array(SECOND)[order], items=[names[i] for i in order], clusters=mixed)
    (one,), (other,) = (compare_items(runs).differences for runs in ([first, second], [second, first]))
    assert one.difference == pytest.approx(float(np.mean(SECOND) - np.mean(FIRST)))
    assert (one.difference, one.p_value, one.detectable) == pytest.approx(
        (-other.difference, other.p_value, other.detectable)
    )


def test_few_items_that_differ_have_no_interval() -> None:
    five = pair(*solved(40, 0, 5, 55))
    assert (five.interval, five.detectable, five.significant) == (None, None, False)
    assert pair(*solved(40, 0, 0, 60)).p_value == 1.0
    few = compare_items([scored("a", [0.5, 0.2, 0.1]), scored("b", [0.4, 0.3, 0.3])])
    assert (few.differences[0].p_value, few.differences[0].significant) == (None, None)
    clustered = pair(*solved(40, 0, 5, 55), clusters=[f"c{i}" for i in range(100)])
    assert clustered.p_value == 2.0**-4


def test_clusters_below_six_tell_nothing_of_how_clusters_vary() -> None:
    clusters = [str(i // 9) for i in range(44)]
    result = compare_items([scored("a", FIRST, clusters=clusters), scored("b", SECOND, clusters=clusters)])
    assert result.differences[0].unit == "unknown"
    assert "more items of the same clusters" in result.independence


def test_scores_of_runs_have_wilsons_interval_only_where_it_holds() -> None:
    first, second = solved(30, 5, 9, 16)
    plain = compare_items([scored("a", first), scored("b", second)]).systems[0]
    assert plain.interval is not None
    assert (plain.interval.method, plain.interval.unit) == ("Wilson", "items")
    codes = [str(i // 3) for i in range(60)]
    clustered = compare_items([scored(name, of, clusters=codes) for name, of in (("a", first), ("b", second))]).systems[0]
    assert clustered.interval is not None
    assert (clustered.interval.method, clustered.interval.unit) == ("jackknife", "clusters")


def test_items_to_look_at_are_those_missed_lost_and_won() -> None:
    result = compare_items([scored("a", [0, 0, 1, 1, 1, 0, 1]), scored("b", [0, 1, 1, 0, 1, 0, 1])], examples=1)
    assert [(one.why, one.item) for one in result.examples] == [
        ("most runs miss it", "0"),
        ("lost by b", "3"),
        ("won by b", "1"),
    ]
    worse = [scored(name, of, higher_is_better=False) for name, of in (("a", [0.9, 0.1]), ("b", [0.9, 0.2]))]
    assert [(one.why, one.item) for one in compare_items(worse).examples] == [("most runs miss it", "0"), ("lost by b", "1")]


def test_rows_and_plain_values_have_what_is_shown() -> None:
    result = compare_items([scored("a", FIRST), scored("b", SECOND)])
    assert result.to_rows()[0]["interval_unit"] == "items"
    assert result.to_dict()["differences"][0]["significant"] is True
    assert {row["system"]: row["score"] for row in result.to_dict()["systems"]} == {
        "a": pytest.approx(np.mean(FIRST)), "b": pytest.approx(np.mean(SECOND))
    }  # fmt: skip
    assert result.signature.startswith("items|score:acc|n:44|samples:1|independent:44-items|items:")


# -- what may not be compared -------------------------------------------------------------------------------------------
def refused(*runs: Any, **options: Any) -> str:
    """What is said of runs that may not be compared."""
    with pytest.raises((InputError, UsageError)) as caught:
        compare_items(runs[0] if isinstance(runs[0], str) else runs, **options)
    return str(caught.value)


def test_other_items_are_refused_with_counts_and_the_first_three() -> None:
    message = refused(scored("a", [0] * 9), scored("b", [1] * 5 + [0], items=[*"01234", "x"]))
    assert "4 items of a not in b ('5', '6', '7' and 1 more); 1 item of b not in a ('x')" in message
    other = refused(scored("a", [0] * 3, prompts=["p", "q", ""]), scored("b", [1] * 3, prompts=["p", "r", "s"]))
    assert "1 item with another question or prompt in b ('1')" in other
    assert "--common" in other


def test_the_same_question_may_be_asked_in_another_chat_template() -> None:
    asked = {"contents": list("wxyz"), "prompts": list("pqrs")}
    result = compare_items([scored("a", [0, 1] * 2, **asked), scored("b", [1, 1] * 2, **asked | {"prompts": list("tqrs")})])
    assert (result.matched_by, result.not_shared) == ("id and content", ())
    assert any("1 item asked with another prompt in b ('0')" in note for note in result.notes)
    others = scored("c", [0, 1] * 2, **asked | {"contents": list("vxyz")})
    assert "1 item with another question or prompt in c ('0')" in refused(scored("a", [0, 1] * 2, **asked), others)


def test_common_items_are_compared_on_request_and_that_is_said() -> None:
    runs = [scored("a", [0] * 9), scored("b", [1] * 8), scored("c", [0, 1] * 4, prompts=["p"] * 8)]
    result: ItemComparisons = compare_items(runs, common=True)
    assert (result.items, result.matched_by) == (8, "id")
    with pytest.raises(CheckFailedError, match="1 item of a not in b"):
        result.require()
    assert compare_items([runs[1], runs[2]]).require().not_shared == ()


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"score": "exact_match", "program": "harness"}, "compare one score"),
        ({"higher_is_better": False}, "the direction differs (a: higher is better, b: lower): import both with"),
        ({"subsets": ["s"] * 6}, "no item is in all runs; ids are shared, but subsets differ ('', 's'): if"),
        ({"items": list("xyzuvw")}, "no item is in all runs"),
        ({"clusters": ["k", "l"] * 3}, "6 items of another cluster in b ('0', '1', '2' and 3 more)"),
    ],
)
def test_runs_of_other_things_are_refused(second: dict[str, Any], said: str) -> None:
    first = scored("a", [0, 1] * 3, clusters=["m", "n"] * 3, program="harness")
    words = refused(first, scored("b", [0, 1] * 3, **second), common=True)
    assert said in words
    assert ("subsets differ" in words) == ("subsets" in second)


def test_columns_of_tables_may_be_called_as_they_like() -> None:
    result = compare_items([scored("a", [0, 1] * 3, score="correct"), scored("b", [1, 1] * 3, score="right")])
    assert result.score == "correct/right"


def test_damaged_runs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    for content, said in ((b"PAR1 and no more", "damaged"), (None, "lmgauge wrote")):
        if content is None:
            pq.write_table(pa.table({"item": ["a"]}), path)
        else:
            path.write_bytes(content)
        assert said in refused(tmp_path, tmp_path)


def test_lists_that_are_none_are_refused() -> None:
    one = scored("a", [0, 1])
    assert "two runs" in refused(one)
    assert "two runs are called 'a'" in refused(one, one)
    assert "not str" in refused("run")
