"""Standard errors, intervals and tests: against slow twins and SciPy, by hand, by simulation, and what is refused."""

from __future__ import annotations

import math
import random
import time
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.reference import statistics as twin

from lmgauge.base.errors import InputError
from lmgauge.numerics.intervals import (
    JACKKNIFE,
    WAVES,
    Interval,
    binomial_cumulative,
    mcnemar_p_value,
    ratio_interval,
    spread,
    student_t_p_value,
    student_t_quantile,
    wilson_interval,
)

INF = math.inf
Floats = np.ndarray


def segments(n: int, seed: int) -> tuple[Floats, Floats]:
    """Nats and events of n segments of very different length; about 5 nats per event."""
    generator = random.Random(seed)
    events = [generator.randint(1, 60) for _ in range(n)]
    nats = [sum(generator.expovariate(0.2) for _ in range(count)) for count in events]
    return np.array(nats), np.array(events, float)


def in_documents(documents: int, lines: int, seed: int, strength: float = 0.3) -> tuple[Floats, Floats, Floats]:
    """Nats, events and documents of a text whose documents differ in difficulty; 5 nats per event over all."""
    generator = np.random.default_rng(seed)
    of_line = np.repeat(np.arange(documents), lines)
    events = generator.integers(1, 60, documents * lines).astype(float)
    level = 5.0 + strength * generator.normal(size=documents)[of_line]
    return events * (level + generator.normal(size=len(events))), events, of_line


class TestKnownUnits:
    @pytest.mark.parametrize(("n", "seed"), [(6, 0), (7, 1), (50, 2)])
    def test_the_error_is_that_of_leaving_one_out(self, n: int, seed: int) -> None:
        nats, events = segments(n, seed)
        found = spread(nats, events, np.arange(n))
        assert found is not None
        assert found.ratio == pytest.approx(nats.sum() / events.sum())
        assert found.error == pytest.approx(twin.jackknife_error(nats.tolist(), events.tolist()), rel=1e-9)
        assert found.freedom == twin.freedom(events.tolist())
        interval = found.interval()
        reach = twin.half_width(found.error, found.freedom)
        assert (interval.low, interval.high) == pytest.approx((found.ratio - reach, found.ratio + reach))
        assert (interval.method, interval.unit, interval.units) == (JACKKNIFE, "segments", n)

    def test_by_hand(self) -> None:
        """Ratios 1 and 3 by turns: without one of six, the mean of 2 moves by 1/5; error sqrt(5/6 6/25) = sqrt(1/5)."""
        found = spread(np.array([1.0, 3.0] * 3), np.ones(6), np.arange(6))
        assert found is not None
        assert (found.ratio, found.error, found.freedom) == (2.0, pytest.approx(math.sqrt(0.2)), 5)
        assert found.p_value == 1 / 32  # t = 4.47 has p = 0.007, but six signs agree by chance in 2 of 2^6 cases

    def test_documents_are_the_units_of_their_sums(self) -> None:
        nats, events, documents = in_documents(9, 20, 3)
        found = spread(nats, events, documents)
        sums = spread(np.bincount(documents, nats), np.bincount(documents, events), np.arange(9))
        assert found is not None
        assert sums is not None
        assert (found.unit, found.units) == ("documents", 9)
        assert (found.ratio, found.error) == pytest.approx((sums.ratio, sums.error), rel=1e-12)

    def test_numbers_of_documents_are_names_only(self) -> None:
        nats, events, documents = in_documents(9, 20, 4)
        assert spread(nats, events, documents) == spread(nats, events, documents * 1_000_000_007 + 5)

    def test_one_document_that_is_half_of_the_text_counts_as_few(self) -> None:
        sizes = np.array([100.0] + [1.0] * 100)
        found = spread(sizes * 2 + np.linspace(-1, 1, 101), sizes, np.arange(101))
        assert found is not None
        assert found.units == 101
        assert found.freedom == 2  # (200)^2 / (100^2 + 100) = 3.96

    def test_a_document_that_outweighs_all_others_counts_for_most(self) -> None:
        """Signs of 41 documents all alike would be beyond doubt; the figure is that of one of them."""
        sizes = np.array([3000.0] + [1.0] * 40)
        found = spread(sizes * 0.01 + 0.001, sizes, np.arange(41))
        assert found is not None
        assert (found.units, found.effective) == (41, 2)

    @pytest.mark.parametrize("count", [1, 2, 5])
    def test_fewer_than_six_documents_are_as_unknown(self, count: int) -> None:
        """Two documents gave intervals such as 1.00 to 1.5e+07, by Student's t of one degree of freedom."""
        nats, events = segments(60, 5)
        found = spread(nats, events, np.arange(60) * count // 60)
        assert found is not None
        assert found == spread(nats, events)
        assert (found.unit, found.units) == ("unknown", 60)
        six = spread(nats, events, np.arange(60) // 10)
        assert six is not None
        assert (six.unit, six.units) == ("documents", 6)

    @pytest.mark.parametrize("documents", [None, [0, 0, 0, 0, 0], [0, 1, 2, 3, 4]])
    def test_below_six_units_there_is_neither_interval_nor_test(self, documents: list[int] | None) -> None:
        assert spread(np.arange(1.0, 6.0), np.ones(5), None if documents is None else np.array(documents)) is None

    def test_no_p_value_is_below_that_of_all_signs_alike(self) -> None:
        for values in (np.ones(6) + 1e-9 * np.arange(6), np.ones(6)):
            found = spread(values, np.ones(6), np.arange(6))
            assert found is not None
            assert found.p_value == 2 / 64


class TestUnknownUnits:
    def test_independent_segments_are_taken_as_such(self) -> None:
        nats, events = segments(400, 6)
        found = spread(nats, events)
        alone = spread(nats, events, np.arange(400))
        assert found is not None
        assert alone is not None
        assert (found.error, found.method, found.unit, found.alike) == (alone.error, JACKKNIFE, "unknown", 1.0)

    def test_neighbors_alike_are_found_and_the_error_is_that_of_the_slow_waves(self) -> None:
        nats, events, _ = in_documents(40, 25, 7, strength=1.0)
        found = spread(nats, events)
        expected = twin.slow_waves(nats.tolist(), events.tolist())
        assert found is not None
        assert expected is not None
        assert (found.error, found.freedom) == pytest.approx(expected, rel=1e-9)
        assert (found.method, found.units) == (WAVES, 1000)
        lines = twin.half_width(twin.jackknife_error(nats.tolist(), events.tolist()), twin.freedom(events.tolist()))
        assert found.alike == pytest.approx(twin.half_width(*expected) / lines, rel=5e-3)
        assert found.alike > 2

    @pytest.mark.parametrize("n", [1, 2, 9, 24, 25, 33, 100, 257])
    def test_the_choice_of_waves_is_the_twin_s_at_any_length(self, n: int) -> None:
        for seed in range(6):
            generator = np.random.default_rng(seed)
            values = generator.normal(size=n) + (seed % 3) * 0.4 * np.cumsum(generator.normal(size=n))
            found, expected = spread(values, np.ones(n)), twin.slow_waves(values.tolist(), [1.0] * n) if n > 1 else None
            if expected is None or found is None:
                assert found is None or found.method == JACKKNIFE
            elif found.method == WAVES:
                assert (found.error, found.freedom) == pytest.approx(expected, rel=1e-9)

    def test_a_long_text_is_pooled_and_says_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        nats, events, _ = in_documents(60, 100, 8, strength=1.0)
        whole = spread(nats, events)
        monkeypatch.setattr("lmgauge.numerics.intervals._MOST_POINTS", 2000)
        pooled = spread(nats, events)
        assert whole is not None
        assert pooled is not None
        assert pooled.error == pytest.approx(whole.error, rel=0.01)

    def test_fast_enough_to_be_always_on(self) -> None:
        nats, events, _ = in_documents(100, 1000, 9)
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            ratio_interval(nats, events)
            seconds.append(time.perf_counter() - start)
        assert min(seconds) < 1.0  # about 0.03 on a quiet machine


class TestIntervals:
    def test_more_confidence_is_wider(self) -> None:
        nats, events = segments(300, 3)
        found = [ratio_interval(nats, events, level=level) for level in (0.5, 0.9, 0.95, 0.99)]
        widths = [interval.high - interval.low for interval in found if interval]
        assert len(widths) == 4
        assert widths == sorted(widths)

    def test_every_ratio_the_same(self) -> None:
        found = ratio_interval([2.0, 4.0, 8.0] * 2, [1.0, 2.0, 4.0] * 2)
        assert found is not None
        assert (found.low, found.high) == (2.0, 2.0)

    def test_one_outlier_does_not_make_nats_negative(self) -> None:
        found = ratio_interval([0.0] * 99 + [7.0], [1.0] * 100)
        assert found is not None
        assert found.low == 0.0
        below = ratio_interval([0.0] * 99 + [-7.0], [1.0] * 100)
        assert below is not None
        assert below.low == -found.high

    def test_huge_sums_stay_finite(self) -> None:
        found = ratio_interval([1e200, 2e200, 3e200] * 2, [1.0] * 6)
        assert found is not None
        assert math.isfinite(found.low)
        assert math.isfinite(found.high)

    def test_a_mapped_interval(self) -> None:
        found = Interval(0.0, INF, 0.95, JACKKNIFE, "documents", 7).mapped(lambda nats: float(np.exp(nats)))
        assert found == Interval(1.0, INF, 0.95, JACKKNIFE, "documents", 7)

    @pytest.mark.parametrize(
        ("nats", "events"),
        [
            ([], []),
            ([1.0], [1.0]),
            ([1.0, 0.0], [3.0, 0.0]),
            ([0.0, 0.0], [0.0, 0.0]),
            ([1.0, 2.0], [0.0, 0.0]),
            ([1.0, 2.0, 3.0], [0.0, 0.0, 5.0]),
            ([1.0] * 5, [1.0] * 5),
            ([1.0] * 6, [1.0] * 5 + [0.0]),
            ([1.0] * 6, [1e300] + [1.0] * 5),
        ],
    )
    def test_no_interval(self, nats: list[float], events: list[float]) -> None:
        assert ratio_interval(nats, events) is None

    def test_zero_probability(self) -> None:
        found = ratio_interval([1.0, INF, 2.0] * 2, [1.0, 2.0, 1.0] * 2)
        assert found is not None
        assert (found.low, found.high) == (INF, INF)
        documents = ratio_interval([1.0, INF] * 6, [1.0, 2.0] * 6, np.repeat(np.arange(6), 2))
        assert documents is not None
        assert (documents.high, documents.unit, documents.units) == (INF, "documents", 6)
        below = ratio_interval([1.0, -INF] * 3, [1.0, 2.0] * 3)
        assert below is not None
        assert (below.low, below.high) == (-INF, -INF)

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


class TestUnitsNeeded:
    def test_so_many_units_have_that_power(self) -> None:
        sample = np.random.default_rng(13).normal(0, 1, 400)
        sample = (sample - sample.mean()) / sample.std(ddof=1) + 0.3
        found = spread(sample, np.ones(400), np.arange(400))
        assert found is not None
        # ((1.959964 + 0.841621) / 0.3)^2 = 87.2 (Cohen 1988, the formula of section 2.4 for one sample)
        assert found.units_needed() == 88

        def power(size: int) -> float:
            hits = 0
            for seed in range(400):
                drawn = spread(np.random.default_rng(seed).choice(sample, size), np.ones(size), np.arange(size))
                hits += drawn is not None and drawn.p_value < 0.05
            return hits / 400

        assert 0.72 <= power(88) <= 0.88  # 0.8, sd 0.02
        assert power(29) < 0.55

    def test_fewer_than_six_are_never_enough(self) -> None:
        found = spread(np.array([1.0] * 5 + [1.001]), np.ones(6), np.arange(6))
        assert found is not None
        assert found.units_needed() == 6

    def test_none_where_there_is_no_difference(self) -> None:
        found = spread(np.array([1.0, -1.0] * 3), np.ones(6), np.arange(6))
        assert found is not None
        assert found.units_needed() is None


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 10, 29, 30, 99, 200])
def test_student_t_is_that_of_scipy(freedom: int) -> None:
    for t in (0.0, 0.01, 0.7, 1.96, 4.0, 30.0):
        assert student_t_p_value(-t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-9, abs=1e-14)
    assert student_t_quantile(0.95, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)


def test_student_t_goes_over_into_the_normal_curve() -> None:
    assert student_t_p_value(1.96, 201) == pytest.approx(2 * stats.t.sf(1.96, 201), abs=2e-3)
    assert student_t_quantile(0.95, 10**6) == pytest.approx(stats.norm.ppf(0.975))


# -----------------------------------------------------------------------------------------------------------------------
# Shares: Wilson's interval and McNemar's test, against published numbers, sums and the textbook's binomial.
@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    # Newcombe (1998), "Two-sided confidence intervals for the single proportion", table I, method 3.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_wilson_as_published(right: int, count: int, low: float, high: float) -> None:
    interval = wilson_interval(right / count, count, "pairs")
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)
    assert (interval.unit, interval.units) == ("pairs", count)


@given(st.integers(1, 400), st.data())
def test_wilson_holds_the_share_and_turns_with_it(count: int, data: st.DataObject) -> None:
    share = data.draw(st.integers(0, count)) / count
    interval, turned = wilson_interval(share, count, ""), wilson_interval(1 - share, count, "")
    assert interval.low - 1e-12 <= share <= interval.high + 1e-12
    assert interval.low == pytest.approx(1 - turned.high, abs=1e-12)


@given(st.integers(0, 300), st.floats(0.01, 0.99))
def test_the_binomial_is_the_textbook_sum(count: int, chance: float) -> None:
    terms = [comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]
    assert binomial_cumulative(count, chance).tolist() == pytest.approx(
        [sum(terms[: k + 1]) for k in range(count + 1)], abs=1e-9
    )


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial_test(first: int, second: int) -> None:
    n = first + second
    exact = min(1.0, 2 * sum(comb(n, k) for k in range(min(first, second) + 1)) / 2**n)
    assert mcnemar_p_value(first, second) == pytest.approx(exact, rel=1e-9)
    assert mcnemar_p_value(first, second) == mcnemar_p_value(second, first)


def test_mcnemar_of_many_items() -> None:
    assert mcnemar_p_value(50_000, 50_000) == 1.0
    assert mcnemar_p_value(49_000, 51_000) == pytest.approx(2.5887160383e-10, rel=1e-9)  # scipy.stats.binomtest


def test_an_interval_reads_well() -> None:
    known = Interval(1.5, 2.25, 0.95, JACKKNIFE, "documents", 1200)
    assert repr(known) == "<Interval: 1.5 to 2.25, level 0.95, of 1,200 documents>"
    assert repr(Interval(1.5, 2.25, 0.9, WAVES, "unknown", 80)) == "<Interval: 1.5 to 2.25, level 0.9, of 80 segments>"
