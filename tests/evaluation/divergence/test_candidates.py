"""Candidates are paired segment by segment."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.evaluation.divergence.test_events import pair_events

from lmgauge.evaluation.divergence.candidates import KL, LOG_LOSS, CandidateSums, candidate_tests
from lmgauge.numerics.intervals import spread


def sums(name: str, kl: list[list[float]], **options: object) -> CandidateSums:
    return CandidateSums.of(name, pair_events(kl, **options))


def test_the_difference_is_that_of_paired_segments() -> None:
    random = np.random.default_rng(2)
    near = random.random((20, 3))
    far = near + random.random((20, 3)) * 0.2
    tests = candidate_tests([sums("near", near.tolist()), sums("far", far.tolist())])
    assert [(test.first, test.second, test.measure) for test in tests] == [("near", "far", KL), ("near", "far", LOG_LOSS)]
    expected = spread((far - near).sum(axis=1), np.full(20, 3.0))
    assert expected is not None
    test = tests[0]
    assert test.difference == pytest.approx(float((far - near).mean()))
    assert test.interval is not None
    assert test.interval.high == pytest.approx(expected.interval().high)
    assert test.p_value == test.p_value_holm == pytest.approx(expected.p_value)
    assert (test.first_value, test.second_value) == (pytest.approx(near.mean()), pytest.approx(far.mean()))
    assert test.significant
    assert (test.segments, test.left_out) == (20, 0)
    assert (tests[1].difference, tests[1].significant) == (0.0, False)


def test_known_documents_are_what_varies() -> None:
    documents = [f"d{i // 2}" for i in range(20)]
    near, far = [[1.0]] * 20, [[1.0 + i / 10] for i in range(20)]
    (test, _) = candidate_tests([sums("n", near, documents=documents), sums("f", far, documents=documents)])
    expected = spread(np.array([(4 * i + 1) / 10 for i in range(10)]), np.full(10, 2.0), np.arange(10))
    assert expected is not None
    assert test.p_value == pytest.approx(expected.p_value)
    assert test.interval is not None
    assert (test.interval.unit, test.interval.units) == ("documents", 10)


def test_segments_with_infinite_values_are_left_out_and_counted() -> None:
    first = [[1.0, math.inf], [2.0], [1.0], [math.nan]]
    second = [[1.0, 1.0], [3.0], [2.5], [1.0]]
    (test, log_loss) = candidate_tests([sums("a", first), sums("b", second, logprob=(-1.0, -math.inf))])
    assert (test.segments, test.left_out) == (2, 2)
    assert (test.first_value, test.second_value, test.difference) == (1.5, 2.75, 1.25)
    assert (log_loss.segments, log_loss.difference, log_loss.p_value, log_loss.significant) == (0, None, None, None)
    assert (log_loss.first_value, log_loss.second_value) == (None, None)


def test_several_candidates_are_adjusted() -> None:
    random = np.random.default_rng(3)
    candidates = [
        sums(name, (random.random((12, 2)) + shift).tolist()) for name, shift in zip("abc", (0, 0, 1), strict=True)
    ]
    tests = [test for test in candidate_tests(candidates) if test.measure == KL]
    assert [(test.first, test.second) for test in tests] == [("a", "b"), ("a", "c"), ("b", "c")]
    for test in tests:
        assert test.p_value is not None
        assert test.p_value_holm is not None
        assert test.p_value <= test.p_value_holm <= 1
    assert [test.significant for test in tests] == [False, True, True]
