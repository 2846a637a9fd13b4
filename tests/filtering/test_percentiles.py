"""Percentiles: their intervals, what they refuse, and where those of all documents stand in."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmgauge.base.errors import InputError, UsageError
from lmgauge.filtering.documents import Groups
from lmgauge.filtering.options import PERCENTS, check_percent
from lmgauge.filtering.percentile_sample import PercentileSample, SampleSettings, document_keys
from lmgauge.filtering.percentiles import Percentiles


def learn(values: np.ndarray, size: int | None = None, seed: int = 1, label: str = "x") -> Percentiles:
    sample, groups = PercentileSample(1, SampleSettings(size, seed)), Groups.none(len(values))
    keys = document_keys(label, np.arange(1, len(values) + 1), seed)
    mask = sample.wanted(keys, groups)
    sample.add(keys[mask], groups.where(mask), values[mask][:, None])
    return Percentiles.learn(sample, {"m": "model:m|order:3"}, {"field": "text"})


def test_intervals_hold_the_percentile_as_often_as_they_say() -> None:
    population = np.random.default_rng(5).lognormal(5, 1, 4000).clip(min=1)
    exact = learn(population)
    missed = np.zeros(len(PERCENTS))
    for seed in range(200):
        percentiles = learn(population, 400, seed)
        for place, percent in enumerate(PERCENTS):
            low, high = percentiles.row("m", None, percent)[1:]
            assert low is None or high is None or low <= percentiles.value("m", None, percent) <= high
            missed[place] += not (low or 0) <= exact.value("m", None, percent) <= (high or math.inf)
    assert missed.max() <= 20  # of 200; 5 % are 10, and 20 or more of 200 happen once in 500
    assert missed.mean() <= 10


def test_of_everything_a_percentile_is_exact() -> None:
    percentiles = learn(np.arange(1.0, 1001.0))
    assert (percentiles.value("m", None, 10), percentiles.row("m", None, 10)[1:]) == (100.0, (100.0, 100.0))
    assert [percentiles.value("m", None, percent) for percent in (0, 0.1, 99.9, 100)] == [1.0, 1.0, 999.0, 1000.0]


def test_a_sample_does_not_bound_the_extremes() -> None:
    percentiles = learn(np.arange(1.0, 1001.0), 100)
    assert percentiles.row("m", None, 0)[1] is None
    assert percentiles.row("m", None, 100)[2] is None
    low, high = percentiles.row("m", None, 50)[1:]
    assert low is not None
    assert high is not None
    assert low < percentiles.value("m", None, 50) < high


def test_small_and_unknown_groups_have_those_of_all() -> None:
    sample, groups = PercentileSample(1, SampleSettings(group="lang")), Groups.of(["a"] * 100 + ["b"] * 99 + [None])
    keys = document_keys("x", np.arange(1, 201), 1)
    sample.add(keys, groups, np.arange(1.0, 201.0)[sample.wanted(keys, groups)][:, None])
    percentiles = Percentiles.learn(sample, {"m": "model:m"})
    assert [percentiles.value("m", name, 50) for name in ("a", "b", "unknown", None)] == [50.0, 100.0, 100.0, 100.0]
    assert [percentiles.has_own("m", name) for name in ("a", "b", "unknown", None)] == [True, False, False, False]
    assert (percentiles.groups["b"].documents, percentiles.groups["b"].scored("m")) == (99, 99)
    assert (percentiles.overall.documents, percentiles.overall.sampled) == (200, 200)


def test_documents_without_a_score_are_counted_and_left_out() -> None:
    percentiles = learn(np.array([math.nan, 5.0, math.inf, math.nan]))
    assert (percentiles.overall.sampled, percentiles.overall.scored("m")) == (4, 2)
    assert [percentiles.value("m", None, percent) for percent in (50, 51)] == [5.0, math.inf]


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(InputError, match="model 'm' gave no document a perplexity"):
        learn(np.array([math.nan]))


@pytest.mark.parametrize(
    ("signatures", "settings", "group", "message"),
    [
        ({"m": "model:m|order:5"}, {"field": "text"}, None, "another model 'm': order was '3', and here it is '5'"),
        ({"m": "model:m"}, {"field": "text"}, None, "order was '3', and here it is not set"),
        ({"n": "model:m|order:3"}, {"field": "text"}, None, "has percentiles of 'm', not of model 'n'"),
        ({"m": "model:m|order:3"}, {"field": "body"}, None, "learned with field 'text', and here it is 'body'"),
        ({"m": "model:m|order:3"}, {}, None, "learned with field 'text', and here it is not set"),
        ({"m": "model:m|order:3"}, {"field": "text", "lines": "yes"}, None, "lines not set, and here it is 'yes'"),
        ({"m": "model:m|order:3"}, {"field": "text"}, "lang", "learned with group not set, and here it is 'lang'"),
    ],
    ids=str,
)
def test_what_scores_otherwise_is_refused(
    signatures: dict[str, str], settings: dict[str, str], group: str | None, message: str
) -> None:
    percentiles = learn(np.array([5.0]))
    percentiles.check({"m": "model:m|order:3"}, {"field": "text"})
    percentiles.check({"m": "model:m|order:3|v:99.0"}, {"field": "text"})  # of another version of lmgauge
    with pytest.raises(UsageError, match=message) as refusal:
        percentiles.check(signatures, settings, group)
    assert "learn them again with 'lmgauge percentiles'" in str(refusal.value)


def test_only_percentiles_that_are_learned_can_be_asked_for() -> None:
    with pytest.raises(UsageError, match=r"p33\.3: percentiles are p0"):
        learn(np.array([5.0])).value("m", None, 33.3)
    with pytest.raises(UsageError, match="percentiles of 'm', not of model 'n'"):
        learn(np.array([5.0])).value("n", None, 33)
    assert check_percent(99.5) == 99.5


def test_in_a_line() -> None:
    assert repr(learn(np.array([5.0, 6.0]))) == "<Percentiles: percentiles of m: 2 of 2 documents>"
