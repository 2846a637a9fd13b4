"""Is a difference real: against all signs written out, SciPy, R, and simulations of no difference and of a known one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.reference import resample as twin

from lmgauge.numerics import significance as paired
from lmgauge.numerics.significance import holm, sign_flip_p_value


def lengths(generator: np.random.Generator, size: int) -> np.ndarray:
    return generator.integers(5, 60, size).astype(float)


# -- the sign-flip test -------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=12))
def test_few_units_have_the_p_value_of_all_assignments_of_signs(values: list[int]) -> None:
    assert sign_flip_p_value(np.array(values, float)) == pytest.approx(twin.exact_sign_flip_p_value(values), rel=1e-12)


@settings(max_examples=25)
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=12), st.integers(0, 2**32))
def test_drawn_signs_have_the_p_value_of_all(values: list[int], seed: int) -> None:
    exact = twin.exact_sign_flip_p_value(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paired, "_ALL_SIGNS", 0)
        found = sign_flip_p_value(np.array(values, float), resamples=20_000, seed=seed)
    assert found == pytest.approx(exact, abs=1 / 20_001 + 5 * math.sqrt(exact * (1 - exact) / 20_000))


@pytest.mark.parametrize("units", [16, 17])
def test_counted_and_drawn_signs_say_the_same(units: int) -> None:
    differences = np.random.default_rng(1).normal(0.4, 1, units)
    found = sign_flip_p_value(differences, resamples=40_000)
    exact = float(
        stats.permutation_test(
            (differences, np.zeros(units)), lambda a, b, axis: (a - b).sum(axis=axis), permutation_type="samples",
            vectorized=True, n_resamples=np.inf,
        ).pvalue
    )  # fmt: skip
    assert found == pytest.approx(exact, abs=1e-12 if units == 16 else 5 * math.sqrt(exact / 40_000))


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
    assert sign_flip_p_value(values, resamples=40_000) == 0.25
    assert sign_flip_p_value(values[::-1].copy(), resamples=40_000) == 0.25
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
    differences = generator.normal(0.1, 1, 101)
    alone = sign_flip_p_value(differences, resamples=997, threads=1)
    assert sign_flip_p_value(differences, resamples=997, threads=threads) == alone


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
