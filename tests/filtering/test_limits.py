"""Limits in numbers are those by which documents are judged."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from tests.filtering.filtered import scores_of

import lmgauge
from lmgauge.decoding import decode
from lmgauge.filtering.documents import Groups
from lmgauge.filtering.options import FilterRules
from lmgauge.filtering.percentile_sample import PercentileSample, document_keys
from lmgauge.filtering.rules import PerplexityLimits, judge, limits_of
from lmgauge.json_text import plain


def learned() -> lmgauge.results.Percentiles:
    """Percentiles of perplexities 1 to 200: those of group "a" are 1 to 150, and 50 of "b" are too few."""
    sample, keys = PercentileSample(1), document_keys("x", np.arange(1, 201), seed=1)
    groups = Groups.of(["a"] * 150 + ["b"] * 50)
    sample.wanted(keys, groups)
    sample.add(keys, groups, np.arange(1.0, 201.0)[:, None])
    return lmgauge.results.Percentiles.learn(sample, {"m": "doc|v:1"})


def test_a_rule_without_perplexity_sets_no_limit() -> None:
    assert limits_of(FilterRules(min_bytes=9), ["m"]) == ()


def test_only_models_that_count_have_limits() -> None:
    limits = limits_of(FilterRules(min_perplexity=2, judged_by="b"), ["a", "b"])
    assert limits == (PerplexityLimits("b", None, 2, None),)


def test_groups_with_percentiles_of_their_own_have_their_own_limits() -> None:
    rules = FilterRules(keep="p10..p70", buckets="p33,p67")
    limits = limits_of(rules, ["m"], learned())
    assert limits == (
        PerplexityLimits("m", "a", 15.0, 105.0, (50.0, 101.0)),
        PerplexityLimits("m", None, 20.0, 140.0, (66.0, 134.0)),
    )


def test_the_narrower_limit_counts() -> None:
    rules = FilterRules(keep="p10..p70", min_perplexity=30, max_perplexity=1000)
    assert limits_of(rules, ["m"], learned())[-1] == PerplexityLimits("m", None, 30, 140.0)


@pytest.mark.parametrize("group", ["a", "b", None])
def test_documents_between_the_limits_stay(group: str | None) -> None:
    rules, percentiles = FilterRules(keep="p10..p70"), learned()
    perplexity = np.arange(1.0, 201.0)
    stays = judge(rules, scores_of(perplexity[:, None], ["m"]), Groups.of([group] * 200), percentiles).reasons == 0
    limits = {one.group: one for one in limits_of(rules, ["m"], percentiles)}
    own = limits.get(group, limits[None])
    assert own.low is not None
    assert own.high is not None
    assert np.array_equal(stays, (perplexity > own.low) & (perplexity <= own.high))


def test_limits_come_back_from_plain_values() -> None:
    for one in limits_of(FilterRules(keep="p10..p70", buckets="p33,p67"), ["m"], learned()):
        assert decode(plain(asdict(one)), PerplexityLimits, "x", "limits", "again") == one
