"""Intervals: against a twin that draws one segment at a time, by hand, by simulation, and what is refused."""

from __future__ import annotations

import math
import random
import time
from statistics import NormalDist, fmean

import numpy as np
import pytest
from scipy import stats

from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.statistics import (
    Interval,
    bootstrap_weights,
    ratio_interval,
    student_t_p_value,
    student_t_quantile,
)

INF = math.inf


def obvious_interval(
    numerators: list[float], denominators: list[float], level: float, resamples: int, seed: int
) -> tuple[float, float]:
    """Draw n segments at a time, divide the sums, sort, count off the tails."""
    n = len(numerators)
    generator = np.random.default_rng(seed)
    ratios = []
    for _ in range(resamples):
        drawn = [int(generator.integers(0, n)) for _ in range(n)]
        ratios.append(math.fsum(numerators[i] for i in drawn) / math.fsum(denominators[i] for i in drawn))
    ratios.sort()
    tail = int((resamples + 1) * (1 - level) / 2 + 1e-9)
    return ratios[tail - 1], ratios[-tail]


def obvious_linearised(numerators: list[float], denominators: list[float], level: float) -> tuple[float, float]:
    """Cochran (1977) eq. 6.13, term by term."""
    n = len(numerators)
    ratio = sum(numerators) / sum(denominators)
    squares = sum((u - ratio * v) ** 2 for u, v in zip(numerators, denominators, strict=True)) / (n - 1)
    error = math.sqrt(squares / n) / fmean(denominators)
    reach = NormalDist().inv_cdf(0.5 + level / 2) * error
    return ratio - reach, ratio + reach


def segments(n: int, seed: int) -> tuple[list[float], list[float]]:
    """Nats and events of n segments of very different length; about 5 nats an event."""
    generator = random.Random(seed)
    events = [generator.randint(1, 60) for _ in range(n)]
    return [sum(generator.expovariate(0.2) for _ in range(count)) for count in events], [float(e) for e in events]


class TestBootstrap:
    @pytest.mark.parametrize(("n", "level", "resamples", "seed"), [(2, 0.95, 39, 0), (7, 0.9, 199, 1), (50, 0.8, 99, 2)])
    def test_equals_the_obvious_twin(self, n: int, level: float, resamples: int, seed: int) -> None:
        nats, events = segments(n, seed)
        found = ratio_interval(nats, events, level=level, resamples=resamples, seed=seed)
        low, high = obvious_interval(nats, events, level, resamples, seed)
        assert found is not None
        assert found.low == pytest.approx(low, rel=1e-14)
        assert found.high == pytest.approx(high, rel=1e-14)

    def test_says_how_it_was_made(self) -> None:
        found = ratio_interval([3.0, 5.0], [1.0, 2.0], level=0.9, resamples=99, seed=7)
        assert found is not None
        assert (found.level, found.method, found.resamples, found.seed) == (0.9, "bootstrap", 99, 7)

    def test_every_ratio_the_same(self) -> None:
        found = ratio_interval([2.0, 4.0, 8.0], [1.0, 2.0, 4.0])
        assert found is not None
        assert (found.low, found.high) == (2.0, 2.0)

    def test_by_hand(self) -> None:
        # Two segments, ratios 1 and 3. A resample is (1, 1), (1, 3) or (3, 3) with chances 1/4, 1/2, 1/4, so its ratio
        # is 1, 2 or 3: the 80 % interval runs from 1 to 3, the 40 % one from 2 to 2.
        wide = ratio_interval([1.0, 3.0], [1.0, 1.0], level=0.8)
        narrow = ratio_interval([1.0, 3.0], [1.0, 1.0], level=0.4)
        assert wide is not None
        assert narrow is not None
        assert (wide.low, wide.high, narrow.low, narrow.high) == (1.0, 3.0, 2.0, 2.0)

    def test_more_confidence_is_wider_and_seeds_differ_little(self) -> None:
        nats, events = segments(300, 3)
        found = [ratio_interval(nats, events, level=level) for level in (0.5, 0.9, 0.95, 0.99)]
        widths = [interval.high - interval.low for interval in found if interval]
        assert len(widths) == 4
        assert widths == sorted(widths)
        other = ratio_interval(nats, events, seed=1)
        assert other is not None
        assert found[2] is not None
        assert (other.low, other.high) != (found[2].low, found[2].high)
        assert other.low == pytest.approx(found[2].low, rel=0.02)

    def test_about_one_standard_error_as_the_formula_says(self) -> None:
        nats, events = segments(400, 4)
        drawn = ratio_interval(nats, events, resamples=4000)
        formula = ratio_interval(nats, events, limit=0)
        assert drawn is not None
        assert formula is not None
        assert drawn.low == pytest.approx(formula.low, rel=0.005)
        assert drawn.high == pytest.approx(formula.high, rel=0.005)

    def test_holds_the_truth_as_often_as_it_says(self) -> None:
        # 95 % intervals of 100 segments: the truth is 5 nats an event, whatever the lengths. With so few segments both
        # are known to fall a little short of their level.
        trials, hits = 400, {"bootstrap": 0, "cluster-robust": 0}
        generator = np.random.default_rng(2024)
        for trial in range(trials):
            events = generator.integers(1, 60, size=100).astype(np.float64)
            # A difficulty of each segment's own: its events are not independent, so events as units would be too sure.
            nats = events * generator.gamma(4.0, 1.25, size=100)
            for limit in (0, 100):
                found = ratio_interval(nats, events, resamples=399, seed=trial, limit=limit)
                assert found is not None
                hits[found.method] += found.low <= 5.0 <= found.high
        assert 0.92 <= hits["bootstrap"] / trials <= 0.97
        assert 0.92 <= hits["cluster-robust"] / trials <= 0.97

    def test_fast_enough_to_be_always_on(self) -> None:
        nats, events = segments(5000, 5)
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            ratio_interval(nats, events)
            seconds.append(time.perf_counter() - start)
        assert min(seconds) < 0.6  # about 0.03 on a quiet machine; ten times the promise, so that a busy one passes


class TestLinearised:
    def test_equals_the_obvious_twin(self) -> None:
        nats, events = segments(200, 6)
        found = ratio_interval(nats, events, level=0.9, limit=199)
        low, high = obvious_linearised(nats, events, 0.9)
        assert found is not None
        assert found.low == pytest.approx(low)
        assert found.high == pytest.approx(high)
        assert (found.level, found.method, found.resamples, found.seed) == (0.9, "cluster-robust", None, None)

    def test_begins_above_the_limit(self) -> None:
        nats, events = segments(10_001, 7)
        above = ratio_interval(nats, events)
        at = ratio_interval(nats[:-1], events[:-1], resamples=39)
        assert above is not None
        assert at is not None
        assert (above.method, at.method) == ("cluster-robust", "bootstrap")

    def test_one_outlier_does_not_make_nats_negative(self) -> None:
        found = ratio_interval([0.0] * 99 + [7.0], [1.0] * 100, limit=0)
        assert found is not None
        assert found.low == 0.0
        assert found.high == pytest.approx(0.07 * (1 + 1.959964))
        below = ratio_interval([0.0] * 99 + [-7.0], [1.0] * 100, limit=0)
        assert below is not None
        assert below.low == -found.high

    def test_huge_sums_stay_finite(self) -> None:
        found = ratio_interval([1e200, 2e200, 3e200], [1.0, 1.0, 1.0], limit=0)
        assert found is not None
        assert math.isfinite(found.low)
        assert math.isfinite(found.high)


class TestEdges:
    @pytest.mark.parametrize("limit", [0, 100])
    @pytest.mark.parametrize(
        ("nats", "events"),
        [([], []), ([1.0], [1.0]), ([1.0, 0.0], [3.0, 0.0]), ([0.0, 0.0], [0.0, 0.0]), ([1.0, 2.0], [0.0, 0.0])],
    )
    def test_no_interval(self, nats: list[float], events: list[float], limit: int) -> None:
        assert ratio_interval(nats, events, limit=limit) is None

    @pytest.mark.parametrize("limit", [0, 100])
    def test_zero_probability(self, limit: int) -> None:
        found = ratio_interval([1.0, INF, 2.0], [1.0, 2.0, 1.0], limit=limit)
        assert found is not None
        assert (found.low, found.high) == (INF, INF)
        below = ratio_interval([1.0, -INF], [1.0, 2.0], limit=limit)
        assert below is not None
        assert (below.low, below.high) == (-INF, -INF)

    @pytest.mark.parametrize("nats", [[1.0, 2.0, 3.0], [1.0, -1.0, 3.0]])
    def test_resamples_without_a_denominator_are_infinite_never_nan(self, nats: list[float]) -> None:
        found = ratio_interval(nats, [0.0, 0.0, 5.0])
        assert found is not None
        assert not math.isnan(found.low)
        assert found.high == INF

    def test_a_mapped_interval(self) -> None:
        found = Interval(0.0, INF, 0.95, "cluster-robust", None, None).mapped(lambda nats: float(np.exp(nats)))
        assert found == Interval(1.0, INF, 0.95, "cluster-robust", None, None)

    @pytest.mark.parametrize(
        ("nats", "events", "message"),
        [
            ([1.0, math.nan], [1.0, 1.0], "numerator 2 of 2 is nan"),
            ([1.0, 1.0], [1.0, math.nan], "denominator 2 of 2 is nan"),
            ([1.0, 1.0], [-1.0, 1.0], "denominator 1 of 2 is -1.0"),
            ([1.0, 1.0], [INF, 1.0], "denominator 1 of 2 is inf"),
            ([INF, -INF], [1.0, 1.0], "both inf and -inf"),
            ([1.0, 1.0], [1.0], r"shapes \(2,\) and \(1,\)"),
            ([[1.0]], [[1.0]], r"shapes \(1, 1\)"),
        ],
    )
    def test_data_refused(self, nats: list[float], events: list[float], message: str) -> None:
        with pytest.raises(InputError, match=message):
            ratio_interval(nats, events)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"level": 1.0}, "level: 1.0 is not between 0 and 1"),
            ({"level": 0.0}, "level"),
            ({"level": math.nan}, "level"),
            ({"resamples": 38}, "resamples: 38 are too few for level 0.95; give at least 39"),
            ({"resamples": 0}, "too few"),
            ({"level": 0.9, "resamples": 10}, "give at least 19"),
            ({"seed": -1}, "seed: -1 is negative"),
        ],
    )
    def test_options_refused(self, options: dict[str, float], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            ratio_interval([1.0, 2.0], [1.0, 1.0], **options)  # type: ignore[arg-type]

    @pytest.mark.parametrize(("level", "least"), [(0.95, 39), (0.9, 19), (0.99, 199), (0.5, 3)])
    def test_the_least_number_of_resamples_is_accepted(self, level: float, least: int) -> None:
        assert ratio_interval([1.0, 2.0], [1.0, 1.0], level=level, resamples=least) is not None


class TestWeights:
    def test_batches_are_bounded(self) -> None:
        batches = list(bootstrap_weights(10, 25, seed=1, batch_draws=100))
        assert [batch.shape for batch in batches] == [(10, 10), (10, 10), (5, 10)]
        assert [batch.shape for batch in bootstrap_weights(1000, 2, seed=1, batch_draws=100)] == [(1, 1000)] * 2

    def test_each_segment_is_drawn_as_often(self) -> None:
        total = sum(batch.sum(axis=0) for batch in bootstrap_weights(5, 20_000, seed=1))
        assert total.sum() == 100_000
        assert np.abs(total / 20_000 - 1).max() < 0.02

    @pytest.mark.parametrize(("n", "resamples", "seed"), [(0, 1, 1), (1, 0, 1), (1, 1, -1)])
    def test_refused_at_the_call(self, n: int, resamples: int, seed: int) -> None:
        with pytest.raises(UsageError):
            bootstrap_weights(n, resamples, seed)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 10, 29, 30, 99, 200])
def test_student_t_is_that_of_scipy(freedom: int) -> None:
    for t in (0.0, 0.01, 0.7, 1.96, 4.0, 30.0):
        assert student_t_p_value(-t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-9, abs=1e-14)
    assert student_t_quantile(0.95, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)


def test_student_t_goes_over_into_the_normal_curve() -> None:
    assert student_t_p_value(1.96, 201) == pytest.approx(2 * stats.t.sf(1.96, 201), abs=2e-3)
    assert student_t_quantile(0.95, 10**6) == pytest.approx(stats.norm.ppf(0.975))
