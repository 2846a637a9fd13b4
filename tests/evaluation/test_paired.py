"""Is a difference real: against all signs written out, SciPy, R, and simulations of no difference and of a known one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.reference import resample as twin

from lmgauge import UsageError
from lmgauge.evaluation import paired
from lmgauge.evaluation.paired import bootstrap_sums, difference_intervals, holm, segments_needed, sign_flip_p_value
from lmgauge.evaluation.statistics import BOOTSTRAP, CLUSTER_ROBUST


def lengths(generator: np.random.Generator, size: int) -> np.ndarray:
    return generator.integers(5, 60, size).astype(float)


# -- intervals ----------------------------------------------------------------------------------------------------------


def test_the_interval_is_the_twin_s_order_statistics() -> None:
    generator = np.random.default_rng(1)
    differences, sizes = generator.normal(0.3, 1, 30), lengths(generator, 30)
    (found,) = difference_intervals(differences, sizes[:, None], resamples=199, seed=9, threads=2)
    sums = twin.bootstrap_sums(np.column_stack((differences, sizes)).tolist(), 199, 9)
    ratios = sorted(a / b for a, b in sums)
    assert found is not None
    assert (found.low, found.high) == (ratios[4], ratios[199 - 5])  # the 5th of 200 * 0.025 from either end
    assert (found.method, found.resamples, found.seed, found.level) == (BOOTSTRAP, 199, 9, 0.95)


def test_several_denominators_share_their_draws() -> None:
    generator = np.random.default_rng(2)
    differences = generator.normal(0.3, 1, 50)
    sizes = np.column_stack((lengths(generator, 50), lengths(generator, 50)))
    both = difference_intervals(differences, sizes, resamples=1000, seed=3)
    alone = [difference_intervals(differences, sizes[:, [k]], resamples=1000, seed=3)[0] for k in range(2)]
    assert both == alone


def test_the_interval_agrees_with_scipy() -> None:
    generator = np.random.default_rng(3)
    differences, sizes = generator.normal(0.5, 2, 400), lengths(generator, 400)
    (found,) = difference_intervals(differences, sizes[:, None], resamples=20_000, seed=4)
    theirs = stats.bootstrap(
        (differences, sizes),
        lambda d, n, axis: d.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        method="percentile",
        random_state=np.random.default_rng(5),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert found is not None
    assert found.low == pytest.approx(theirs.low, abs=0.03 * width)
    assert found.high == pytest.approx(theirs.high, abs=0.03 * width)


def test_the_interval_holds_the_true_difference_about_95_times_in_100() -> None:
    held = 0
    for seed in range(300):
        generator = np.random.default_rng(seed)
        sizes = lengths(generator, 60)
        differences = 0.1 * sizes + generator.normal(0, 3, 60)
        (found,) = difference_intervals(differences, sizes[:, None], resamples=400, seed=seed)
        assert found is not None
        held += found.low <= 0.1 <= found.high
    assert 0.90 <= held / 300 <= 0.98  # 0.95 but for chance (sd 0.013) and what a percentile interval of 60 lacks


@pytest.mark.parametrize("shift", [0.0, 5.0, -5.0])
def test_a_huge_input_takes_the_normal_curve_which_says_the_same(monkeypatch: pytest.MonkeyPatch, shift: float) -> None:
    generator = np.random.default_rng(6)
    differences, sizes = generator.normal(shift, 1, 3000), lengths(generator, 3000)
    (drawn,) = difference_intervals(differences, sizes[:, None], resamples=10_000)
    monkeypatch.setattr(paired, "_MOST_DRAWS", 1)
    (curve,) = difference_intervals(differences, sizes[:, None], resamples=10_000)
    assert drawn is not None
    assert curve is not None
    assert (curve.method, curve.resamples, curve.seed) == (CLUSTER_ROBUST, None, None)
    width = drawn.high - drawn.low
    assert curve.low == pytest.approx(drawn.low, abs=0.06 * width)
    assert curve.high == pytest.approx(drawn.high, abs=0.06 * width)


def test_the_normal_curve_does_not_stop_at_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference may be of either sign, though every segment's is of one: two of three segments without any."""
    monkeypatch.setattr(paired, "_MOST_DRAWS", 1)
    differences = np.array([0.0, 0.0, 3.0])
    (above,) = difference_intervals(differences, np.ones((3, 1)))
    (below,) = difference_intervals(-differences, np.ones((3, 1)))
    assert above is not None
    assert below is not None
    assert above.low < 0 < 1 < above.high
    assert (below.low, below.high) == pytest.approx((-above.high, -above.low), rel=1e-12)
    # by hand: mean 1, residuals (-1, -1, 2), error sqrt(3 / 2 * 6 / 9) = 1
    assert (above.low, above.high) == pytest.approx((1 - 1.959964, 1 + 1.959964), rel=1e-6)


def test_nothing_to_draw_from_and_nothing_to_divide_by() -> None:
    sizes = np.column_stack((np.ones(4), np.zeros(4)))
    one, none = difference_intervals(np.arange(4.0), sizes, resamples=100)
    assert one is not None
    assert none is None
    assert difference_intervals(np.ones(1), np.ones((1, 2)), resamples=100) == [None, None]
    assert difference_intervals(np.zeros(0), np.zeros((0, 2)), resamples=100) == [None, None]


def test_segments_that_have_nothing_of_a_unit_do_not_make_the_interval_nan() -> None:
    """Nearly all segments are empty lines: some resamples have no word at all."""
    sizes = np.array([0.0, 0.0, 0.0, 2.0])[:, None]
    (found,) = difference_intervals(np.array([0.0, 0.0, 0.0, 3.0]), sizes, resamples=500)
    assert found is not None
    assert (found.low, found.high) == (0.0, 1.5)
    (found,) = difference_intervals(np.array([0.5, 0.0, 0.0, 3.0]), sizes, resamples=500)
    assert found is not None
    assert not math.isnan(found.low)
    assert found.low <= 1.75 <= found.high


def test_too_few_resamples_are_refused() -> None:
    with pytest.raises(UsageError, match="too few"):
        difference_intervals(np.ones(3), np.ones((3, 1)), resamples=38)
    assert difference_intervals(np.ones(3), np.ones((3, 1)), resamples=39) != [None]


# -- the sign-flip test -------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=12), st.integers(0, 2**32))
def test_p_values_are_those_of_all_assignments_of_signs(values: list[int], seed: int) -> None:
    exact = twin.exact_sign_flip_p_value(values)
    found = sign_flip_p_value(np.array(values, float), resamples=20_000, seed=seed)
    assert found == pytest.approx(exact, abs=1 / 20_001 + 5 * math.sqrt(exact * (1 - exact) / 20_000))


@pytest.mark.parametrize("shift", [0.0, 0.2, 0.5])
def test_p_values_agree_with_scipy(shift: float) -> None:
    differences = np.random.default_rng(7).normal(shift, 1, 60)
    theirs = stats.permutation_test(
        (differences, np.zeros(60)),
        lambda a, b, axis: (a - b).sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        random_state=np.random.default_rng(8),
    ).pvalue
    found = sign_flip_p_value(differences, resamples=20_000, seed=9)
    assert found == pytest.approx(theirs, abs=1e-4 + 6 * math.sqrt(2 * theirs * (1 - theirs) / 20_000))


def test_a_false_alarm_one_time_in_twenty() -> None:
    """400 pairs of models that do not differ, of segments of very different length."""
    alarms = 0
    for seed in range(400):
        generator = np.random.default_rng(seed)
        differences = generator.standard_t(3, 80) * lengths(generator, 80)
        found = sign_flip_p_value(differences, resamples=500, seed=seed)
        assert found is not None
        alarms += found < 0.05
    assert 0.02 <= alarms / 400 <= 0.085  # 0.05, sd 0.011


def test_tied_sums_count_as_far_also_where_additions_round() -> None:
    """Tenths are not exact in binary; of the 8 sums of three the two whole ones are as far, and no other."""
    values = np.array([0.1, 0.2, 0.3])
    assert sign_flip_p_value(values, resamples=40_000) == pytest.approx(0.25, abs=0.01)
    assert sign_flip_p_value(values[::-1].copy(), resamples=40_000) == pytest.approx(0.25, abs=0.01)
    assert sign_flip_p_value(np.full(1000, 0.1), resamples=1000) == 1 / 1001


def test_no_difference_and_no_segments() -> None:
    assert sign_flip_p_value(np.zeros(10)) == 1.0
    assert sign_flip_p_value(np.array([1.0, -1.0])) == 1.0
    assert sign_flip_p_value(np.ones(1)) is None
    assert sign_flip_p_value(np.zeros(0)) is None


def test_a_huge_input_takes_the_normal_curve_for_p(monkeypatch: pytest.MonkeyPatch) -> None:
    for shift in (0.01, 0.03, 0.05):
        differences = np.random.default_rng(10).normal(shift, 1, 2000)
        drawn = sign_flip_p_value(differences, resamples=20_000)
        with monkeypatch.context() as patch:
            patch.setattr(paired, "_MOST_DRAWS", 1)
            curve = sign_flip_p_value(differences)
        assert curve == pytest.approx(drawn, abs=0.012)
        z = abs(differences.sum()) / math.sqrt((differences**2).sum())
        assert curve == pytest.approx(2 * stats.norm.sf(z), rel=1e-9)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_change_nothing(threads: int) -> None:
    generator = np.random.default_rng(11)
    differences, sizes = generator.normal(0.1, 1, 101), lengths(generator, 101)
    one = difference_intervals(differences, sizes[:, None], resamples=997, threads=1)
    assert difference_intervals(differences, sizes[:, None], resamples=997, threads=threads) == one
    alone = sign_flip_p_value(differences, resamples=997, threads=1)
    assert sign_flip_p_value(differences, resamples=997, threads=threads) == alone
    columns = np.column_stack((differences, sizes))
    assert np.array_equal(bootstrap_sums(columns, 50, 1, threads), bootstrap_sums(columns, 50, 1, 1))


def test_the_seed_moves_the_numbers_a_little() -> None:
    differences = np.random.default_rng(12).normal(0.1, 1, 100)
    values = [sign_flip_p_value(differences, resamples=2000, seed=seed) for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


# -- Holm ---------------------------------------------------------------------------------------------------------------


def test_holm_as_published() -> None:
    """Four p-values worked through in Wikipedia's "Holm-Bonferroni method", Example (0.01, 0.04, 0.03, 0.005)."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.05])), max_size=12))
def test_holm_is_r_s(p_values: list[float]) -> None:
    assert holm(p_values) == twin.holm(p_values)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=8))
def test_holm_passes_over_what_was_not_tested(p_values: list[float | None]) -> None:
    known = [p for p in p_values if p is not None]
    adjusted = holm(p_values)
    assert [p is None for p in adjusted] == [p is None for p in p_values]
    assert [p for p in adjusted if p is not None] == twin.holm(known)
    assert all(p is None or q is None or p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))


# -- how much text would be needed --------------------------------------------------------------------------------------


def test_the_segments_needed_give_that_power() -> None:
    """Of so many segments the test finds the difference four times in five; of a third of them far more seldom."""
    sample = np.random.default_rng(13).normal(0, 1, 400)
    sample = (sample - sample.mean()) / sample.std(ddof=1) + 0.3
    needed = segments_needed(sample)
    # ((1.959964 + 0.841621) / 0.3)^2 = 87.2 (Cohen 1988, the formula of section 2.4 for one sample)
    assert needed == 88

    def power(size: int) -> float:
        found = 0
        for seed in range(300):
            drawn = np.random.default_rng(seed).choice(sample, size)
            p_value = sign_flip_p_value(drawn, resamples=400, seed=seed)
            found += p_value is not None and p_value < 0.05
        return found / 300

    assert 0.72 <= power(needed) <= 0.88  # 0.8, sd 0.023
    assert power(needed // 3) < 0.55


def test_fewer_segments_than_any_test_can_tell_are_never_enough() -> None:
    """Of five segments even five signs alike have p = 2 / 2^5 = 0.0625; of six 0.03125."""
    assert sign_flip_p_value(np.ones(5), resamples=50_000) == pytest.approx(0.0625, abs=0.006)
    assert segments_needed(np.array([1.0, 1.0, 1.001])) == 6
    assert segments_needed(np.ones(3)) == 6


def test_no_number_of_segments_where_there_is_no_difference() -> None:
    assert segments_needed(np.array([1.0, -1.0])) is None
    assert segments_needed(np.zeros(5)) is None
    assert segments_needed(np.ones(1)) is None
    assert segments_needed(np.zeros(0)) is None
    assert segments_needed(np.array([1.0, -1.0 + 1e-12])) is None  # more than there is text in the world
