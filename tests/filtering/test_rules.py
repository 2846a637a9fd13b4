"""Rules that are read, refused and described."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.filtering.filtered import scores_of

from lmgauge.base.errors import UsageError
from lmgauge.filtering.documents import DocumentScores, Groups
from lmgauge.filtering.options import FilterRules
from lmgauge.filtering.percentile_sample import PercentileSample, SampleSettings, document_keys
from lmgauge.filtering.percentiles import Percentiles
from lmgauge.filtering.rules import BUCKETS, REASONS, judge, rule_lines


def percentiles_of(models: int = 1) -> Percentiles:
    """Groups a (perplexities 1 to 200), b (201 to 400), and c, which is too small."""
    values = np.arange(1.0, 406.0)[:, None].repeat(models, axis=1)
    groups = Groups.of(["a"] * 200 + ["b"] * 200 + ["c"] * 5)
    sample = PercentileSample(models, SampleSettings(group="lang"))
    keys = document_keys("x", np.arange(1, 406), 1)
    sample.add(keys, groups, values[sample.wanted(keys, groups)])
    return Percentiles.learn(sample, {f"m{k}": f"model:m{k}" for k in range(models)})


def figures_of(*perplexity: float, models: tuple[str, ...] = ("m0",)) -> DocumentScores:
    return scores_of(np.array(perplexity)[:, None], models)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"max_perplexity": 0.5}, "a number from 1"),
        ({"min_perplexity": math.nan}, "a number from 1"),
        ({"min_bytes": -1}, "0 or more"),
        ({"max_unseen": 1.5}, "a number from 0 to 1"),
        ({"min_perplexity": 20, "max_perplexity": 10}, "no document would be kept"),
        ({"min_bytes": 20, "max_bytes": 10}, "no document would be kept"),
        ({"keep": "p10"}, "is not a range"),
        ({"keep": ".."}, "is not a range"),
        ({"keep": "p10..p10"}, "below the second"),
        ({"keep": "p10..p101"}, "p101: percentiles are"),
        ({"keep": "p33.3.."}, r"p33\.3: percentiles are"),
        ({"keep": "p1\x1b[31m..p2"}, r"p1\\x1b"),
        ({"buckets": "p33"}, "not two percentiles"),
        ({"buckets": "p67,p33"}, "that rise"),
        ({"buckets": "p0,p33"}, "above p0"),
    ],
    ids=str,
)
def test_rules_out_of_range_are_refused(rules: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as refusal:
        FilterRules(**rules)  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)


def test_rules_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="percentiles are needed for this rule: name a file with --percentiles"):
        judge(FilterRules(keep="p10.."), figures_of(3.0))
    with pytest.raises(UsageError, match="name model 'x'; there are 'm0'"):
        judge(FilterRules(max_perplexity=9, judged_by="x"), figures_of(3.0))
    with pytest.raises(UsageError, match="buckets are made by one model"):
        judge(FilterRules(buckets="p33,p67"), figures_of(3.0, models=("m0", "m1")), None, percentiles_of(2))
    with pytest.raises(UsageError, match="has percentiles of 'm0', not of model 'm1'"):
        judge(FilterRules(keep="p10..", judged_by="m1"), figures_of(3.0, models=("m0", "m1")), None, percentiles_of())


def test_percentiles_are_those_of_the_group_and_all_stand_in() -> None:
    figures = figures_of(20.0, 21.0, 220.0, 221.0, 41.0, 42.0, 42.0, 42.0)
    groups = Groups.of(["a", "a", "b", "b", "c", "unknown", None, None])
    reasons, buckets, stand_in = judge(FilterRules(keep="p10..p70", buckets="p33,p67"), figures, groups, percentiles_of())
    below = REASONS.index("percentile below")
    assert reasons.tolist() == [below, 0, below, 0, below, 0, 0, 0]
    assert stand_in.tolist() == [False] * 4 + [True] * 4
    assert [BUCKETS[code] for code in buckets] == ["head"] * 8


def test_documents_without_a_score_stay_where_no_rule_asks_for_one() -> None:
    figures = figures_of(math.nan, 5.0)
    assert judge(FilterRules(min_bytes=1), figures).reasons.tolist() == [0, 0]
    assert judge(FilterRules(max_perplexity=1000), figures).reasons.tolist() == [REASONS.index("nothing to score"), 0]


def test_one_model_can_count_of_several() -> None:
    figures = scores_of([[50.0, 5000.0]], ("x", "y"))
    assert REASONS[judge(FilterRules(max_perplexity=100), figures).reasons[0]] == "perplexity above"
    assert REASONS[judge(FilterRules(max_perplexity=100, judged_by="x"), figures).reasons[0]] == "stays"


def test_the_rules_say_which_numbers_apply() -> None:
    rules = FilterRules(
        *(1000.0, 2.0), keep="p10..p70", min_bytes=200, max_bytes=10**6, min_tokens=5, max_unseen=0.25, buckets="p33,p67"
    )
    assert list(rule_lines(rules, ["m0"], percentiles_of())) == [
        "at least 200 bytes",
        "at most 1,000,000 bytes",
        "at least 5 tokens",
        "at most 25 % unseen words",
        "perplexity of at least 2",
        "perplexity of at most 1,000",
        "lang 'a': perplexity above 20 (p10), at most 140 (p70), buckets cut at 66 and 134 (p33,p67)",
        "lang 'b': perplexity above 220 (p10), at most 340 (p70), buckets cut at 266 and 334 (p33,p67)",
        "all other documents: perplexity above 41 (p10), at most 284 (p70), buckets cut at 134 and 272 (p33,p67)",
    ]
    assert list(rule_lines(FilterRules(keep="p0..p100", judged_by="m1"), ["m0", "m1"], percentiles_of(2))) == [
        "lang 'a': perplexity of any height",
        "lang 'b': perplexity of any height",
        "all other documents: perplexity of any height",
        "model 'm1' counts",
    ]


def test_many_groups_are_described_in_few_lines() -> None:
    sample = PercentileSample(1, SampleSettings(group="site"))
    keys, groups = document_keys("x", np.arange(1, 61), 1), Groups.of([f"s{k % 30:02}" for k in range(60)])
    sample.add(keys, groups, np.arange(1.0, 61.0)[:, None][sample.wanted(keys, groups)])
    lines = list(rule_lines(FilterRules(keep="..p50"), ["m"], Percentiles.learn(sample, {"m": "model:m"}, least=2)))
    assert (len(lines), lines[0], lines[-1]) == (21, "site 's00': perplexity at most 1 (p50)", "and 11 more")
