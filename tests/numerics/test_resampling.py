"""Draws against NumPy's own, sums against loops over segments, rules against sacreBLEU's words for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_rel
from tests.reference import agreement
from tests.reference import resample as twin

from lmgauge._kernels import _native
from lmgauge.base.errors import UsageError
from lmgauge.numerics import resampling
from lmgauge.numerics.resampling import (
    bootstrap_p_value,
    bootstrap_sums,
    holm,
    holm_adjusted,
    percentile_interval,
    randomization_p_value,
    randomized_sums,
    sacrebleu_coins,
    sacrebleu_draws,
    swap_p_values,
)

seeds = st.integers(0, 2**64)


def table(segments: int, columns: int = 3, seed: int = 1, largest: int = 1000) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, largest, (segments, columns))


# -- draws --------------------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.integers(1, 300), st.lists(st.integers(1, 5), min_size=1, max_size=6), seeds)
def test_counts_are_numpy_s_draws_whatever_the_blocks(n: int, blocks: list[int], seed: int) -> None:
    drawn = np.random.default_rng(seed).choice(n, (sum(blocks), n))
    state = resampling._generator_state(seed)
    parts = [np.empty((rows, n), dtype=np.uint8) for rows in blocks]
    for part in parts:
        _native.draw_counts(state, part)
    assert np.array_equal(np.concatenate(parts), [np.bincount(row, minlength=n) for row in drawn])


@pytest.mark.parametrize("n", [2, 3, 1000, 65_537, (1 << 20) - 1, 3 << 20])
def test_the_state_moves_on_as_numpy_s(n: int) -> None:
    """Also for sizes where numbers too many are common: of 3 << 20, one draw in 1,400 or so is drawn again."""
    generator = np.random.default_rng(7)
    drawn = generator.choice(n, (3, n))
    state, counts = resampling._generator_state(7), np.empty((3, n), dtype=np.uint8)
    _native.draw_counts(state, counts)
    assert np.array_equal(counts[2], np.bincount(drawn[2], minlength=n))
    kept = generator.bit_generator.state
    assert [int(x) for x in state[:2]] == [kept["state"]["state"] >> 64, kept["state"]["state"] & (1 << 64) - 1]
    assert int(state[4]) == kept["has_uint32"]


@given(st.integers(1, 40), st.integers(1, 200), st.integers(0, 2**32))
def test_sacrebleu_draws_are_numpy_s_choice(n: int, resamples: int, seed: int) -> None:
    drawn = np.random.default_rng(seed).choice(n, (resamples, n))
    counts = np.concatenate([block.copy() for block in sacrebleu_draws(n, resamples, seed)])
    assert np.array_equal(counts, [np.bincount(row, minlength=n) for row in drawn])


def test_the_kernel_checks_its_arrays() -> None:
    state = resampling._generator_state(3)
    with pytest.raises(ValueError, match="six"):
        _native.draw_counts(state[:5].copy(), np.empty((1, 3), dtype=np.uint8))
    with pytest.raises(ValueError, match="things to draw"):
        _native.draw_counts(state, np.empty((1, 0), dtype=np.uint8))


@settings(max_examples=100)
@given(st.integers(1, 300), st.integers(1, 200), st.integers(0, 2**32), st.sampled_from([1, 7, 64]))
def test_coins_are_numpy_s_whatever_the_blocks(n: int, trials: int, seed: int, rows: int) -> None:
    """Trials of an odd number of segments begin within a word; blocks begin with one."""
    whole = np.random.default_rng(seed).integers(2, size=(trials, n), dtype=bool)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resampling, "_MOST_TRIALS", rows)
        blocks = list(sacrebleu_coins(n, trials, seed))
    assert [begin for begin, _, _ in blocks] == [0, *(end for _, end, _ in blocks[:-1])]
    for begin, end, bits in blocks:
        coins = np.unpackbits(bits.view(np.uint8), bitorder="little")[: (end - begin) * n].reshape(end - begin, n)
        assert np.array_equal(coins, whole[begin:end])
    assert max(end - begin for begin, end, _ in blocks) <= max(rows, 64)


# -- sums ---------------------------------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(1, 150), st.integers(0, 2**32))
def test_bootstrap_sums_are_sums_over_the_drawn_segments(n: int, resamples: int, seed: int) -> None:
    first, second = table(n), table(n, columns=2, seed=2)
    drawn = np.random.default_rng(seed).choice(n, (resamples, n))
    sums = bootstrap_sums([first, second], resamples, seed)
    assert np.array_equal(sums[0], first[drawn].sum(axis=1))
    assert np.array_equal(sums[1], second[drawn].sum(axis=1))


def test_no_sum_depends_on_threads_or_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    first, others = table(700), [table(700, seed=2)]
    whole = randomized_sums(first, others, 500, 3, threads=1)
    monkeypatch.setattr(resampling, "_COINS_PER_THREAD", 1)
    monkeypatch.setattr(resampling, "_MOST_TRIALS", 130)
    assert np.array_equal(randomized_sums(first, others, 500, 3, threads=3), whole)


def test_bad_coins_are_refused() -> None:
    values, sums = np.ones((10, 2), dtype=np.int64), np.empty((20, 2), dtype=np.int64)
    with pytest.raises(ValueError, match="spare word"):
        _native.coin_sums(np.zeros(4, dtype=np.uint64), 0, values, sums)
    with pytest.raises(ValueError, match="columns"):
        _native.coin_sums(np.zeros(9, dtype=np.uint64), 0, values, np.empty((20, 1), dtype=np.int64))


@given(st.integers(1, 60), st.integers(1, 150), st.integers(0, 2**32))
def test_randomized_sums_are_sums_of_mixed_systems(n: int, trials: int, seed: int) -> None:
    first, others = table(n), [table(n, seed=2), table(n, seed=3)]
    coins = np.random.default_rng(seed).integers(2, size=(trials, n), dtype=bool)
    for (mine, theirs), other in zip(randomized_sums(first, others, trials, seed), others, strict=True):
        assert np.array_equal(mine, coins @ first + ~coins @ other)
        assert np.array_equal(theirs, ~coins @ first + coins @ other)


def test_many_segments_are_multiplied_in_parts_to_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = [table(1000), table(1000, seed=2)]
    whole = bootstrap_sums(statistics, 100, 5), randomized_sums(statistics[0], statistics[1:], 100, 5)
    monkeypatch.setattr(resampling, "_CHUNK", 33)
    monkeypatch.setattr(resampling, "_WHOLE", 100)
    assert np.array_equal(bootstrap_sums(statistics, 100, 5), whole[0])
    assert np.array_equal(randomized_sums(statistics[0], statistics[1:], 100, 5), whole[1])


def test_sums_are_exact_where_float32_is_not() -> None:
    """sacreBLEU resamples in float32: 2^24 + 1 is not one of its numbers."""
    sums = bootstrap_sums([np.full((10, 1), (1 << 24) + 1)], 50, 1)[0]
    assert sums.tolist() == [[10.0 * ((1 << 24) + 1)]] * 50


@pytest.mark.parametrize(("statistics", "draws", "seed"), [([], 9, 1), ([[1]], 0, 1), ([[1]], 9, -1)])
def test_nothing_to_draw_is_refused(statistics: list[list[int]], draws: int, seed: int) -> None:
    rows = np.array(statistics, dtype=np.int64).reshape(-1, 1)
    with pytest.raises(UsageError):
        bootstrap_sums([rows], draws, seed)
    with pytest.raises(UsageError):
        randomized_sums(rows, [rows], draws, seed)
    with pytest.raises(UsageError, match="same segments"):
        bootstrap_sums([table(3), table(4)], 9, 1)


# -- rules --------------------------------------------------------------------------------------------------------------


@given(st.integers(40, 400), st.randoms(use_true_random=False))
def test_the_interval_leaves_a_fortieth_outside_on_either_side(resamples: int, random: object) -> None:
    scores = np.arange(resamples, dtype=np.float64)
    found = percentile_interval(np.random.default_rng(3).permutation(scores), 3)
    assert (found.interval.low, found.interval.high) == (resamples // 40, resamples - resamples // 40 - 1)
    assert found.half_width == (found.interval.high - found.interval.low) / 2
    assert found.mean == pytest.approx((resamples - 1) / 2)


def test_too_few_resamples_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 40"):
        percentile_interval(np.zeros(39), 1)


def test_the_bootstrap_rule() -> None:
    """Absolute differences 1, 3, 2, 10, less their mean 4: -3, -1, -2, 6. One is above 2, so p = (1 + 1) / (4 + 1)."""
    first, second = np.array([5.0, 5.0, 5.0, 5.0]), np.array([6.0, 8.0, 3.0, 15.0])
    assert bootstrap_p_value(first, second, 2.0) == bootstrap_p_value(second, first, -2.0) == 2 / 5
    assert bootstrap_p_value(first, second, 6.0) == 1 / 5  # exceeds, not reaches


def test_the_randomization_rule() -> None:
    first, second = np.array([1.0, 5.0, 9.0]), np.array([2.0, 2.0, 2.0])
    assert [randomization_p_value(first, second, d, 99) for d in (0.5, 2.0, -3.0, 7.0)] == [1.0, 3 / 4, 2 / 4, 1 / 4]
    assert [randomization_p_value(first, second, 7.0, k) for k in (0, 1, 2, 3, 9)] == [1.0, 1.0, 0.5, 0.25, 0.25]


def test_how_often_chance_alone_is_called_a_difference() -> None:
    """400 texts with no difference, p <= 0.1: the randomisation's promise holds, and the bootstrap's rule is lenient.

    The rule compares absolute differences, less their mean, with the real one: of a large difference that counts one side
    only, so that p is half of what two sides give, and 20 % and more of chance passes at 10 %. sacreBLEU has the same.
    """
    generator = np.random.default_rng(11)
    found = []
    for trial in range(400):
        rows = generator.integers(0, 30, (2, 60, 1))
        real = float(rows[0].sum() - rows[1].sum())
        a, b = bootstrap_sums(list(rows), 200, trial)
        ((mine, theirs),) = randomized_sums(rows[0], [rows[1]], 200, trial)
        interval = percentile_interval(b[:, 0] - a[:, 0], trial).interval
        bootstrap = bootstrap_p_value(a[:, 0], b[:, 0], real)
        randomization = randomization_p_value(mine[:, 0], theirs[:, 0], real, 60)
        found.append((bootstrap <= 0.1, randomization <= 0.1, not interval.low <= 0 <= interval.high))
    bootstrap_share, randomization_share, outside = np.mean(found, axis=0)
    four_sd = 4 * math.sqrt(0.1 * 0.9 / 400)
    assert 0.1 + four_sd < bootstrap_share < 0.3
    assert abs(randomization_share - 0.1) < four_sd
    assert abs(outside - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 400)  # the interval of the difference is honest


# -- P-values adjusted for several tests: as published, and as R adjusts them -------------------------------------------
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


@dataclass(frozen=True)
class Outcome:
    """A result of a test."""

    p_value: float | None
    p_value_holm: float | None = None


def test_the_best_of_equal_models_is_seldom_better() -> None:
    """Six equal models on 40 documents: with the best by these very figures each other is compared, in 1,500 draws."""
    generator, models, alarms = np.random.default_rng(5), 6, np.zeros(2)
    for _ in range(1500):
        costs = generator.normal(size=(models, 40))
        best, *others = costs[np.argsort(costs.mean(axis=1))]
        tests = [Outcome(float(ttest_rel(best, other).pvalue)) for other in others]
        adjusted = [holm_adjusted(tests, best_of=count) for count in (2, models)]
        alarms += [min(test.p_value_holm or 0.0 for test in made) < 0.05 for made in adjusted]
    assert alarms[0] / 1500 > 0.08  # as if the first had been named beforehand
    assert alarms[1] / 1500 < 0.05


def test_results_are_adjusted_for_their_number() -> None:
    assert holm_adjusted(Outcome(p) for p in (0.01, None, 0.04)) == (Outcome(0.01, 0.02), Outcome(None), Outcome(0.04, 0.04))


@given(st.integers(1, 7), st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_swaps_of_few_units_are_all_of_them(units: int, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.5, 1.0, (units, 3)).round(1)
    assert swap_p_values(differences) == pytest.approx(agreement.swap_p_values(differences.tolist()))


def test_swaps_of_many_units_are_drawn_and_raise_false_alarms_as_often_as_they_say() -> None:
    generator = np.random.default_rng(5)
    noise = [generator.standard_t(3, (20, 2)) for _ in range(200)]
    alarms = [min(swap_p_values(one)) < 0.05 for one in noise]
    assert 2 <= sum(alarms) <= 19  # of 200 at 5 %: 10, and three standard errors
    assert max(swap_p_values(noise[0] + 3.0)) < 0.001
