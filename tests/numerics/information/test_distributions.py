"""Entropies and divergences of distributions: figures by hand, SciPy, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.numerics import information
from lmgauge.numerics.information import (
    branching_factor,
    cross_entropy,
    entropy,
    jensen_shannon_divergence,
    kl_divergence,
    relative_frequencies,
)

INF = math.inf


class TestDistributions:
    def test_entropy_by_hand(self) -> None:
        # Cover & Thomas, example 2.1.1: 1/2, 1/4, 1/8, 1/8 has 7/4 bits.
        assert entropy([0.5, 0.25, 0.125, 0.125], unit="bits") == pytest.approx(1.75, rel=1e-15)
        assert entropy([0.5, 0.25, 0.125, 0.125], unit="nats") == pytest.approx(1.75 * math.log(2), rel=1e-15)
        assert entropy([1.0], unit="bits") == 0.0
        assert math.copysign(1.0, entropy([1.0, 0.0], unit="nats")) == 1.0

    def test_divergence_by_hand(self) -> None:
        # Cover & Thomas, example 2.3.1: r = 1/2, s = 1/4: 1 - (log2 3) / 2 = 0.2075, and 3/4 log2 3 - 1.
        p, q = [0.5, 0.5], [0.75, 0.25]
        assert kl_divergence(p, q, unit="bits") == pytest.approx(1 - math.log2(3) / 2, rel=1e-14)
        assert kl_divergence(q, p, unit="bits") == pytest.approx(0.75 * math.log2(3) - 1, rel=1e-14)
        assert round(kl_divergence(p, q, unit="bits"), 4) == 0.2075

    def test_jensen_shannon_by_hand(self) -> None:
        # p = (1, 0), q = (1/2, 1/2), m = (3/4, 1/4):
        # 1/2 log2(4/3) + 1/2 (1/2 log2(2/3) + 1/2 log2 2) = 0.311278
        wanted = 0.5 * math.log2(4 / 3) + 0.25 * math.log2(2 / 3) + 0.25
        assert jensen_shannon_divergence([1, 0], [0.5, 0.5], unit="bits") == pytest.approx(wanted, rel=1e-14)

    def test_zero_where_it_matters_is_infinite_and_elsewhere_nothing(self) -> None:
        assert cross_entropy([0.5, 0.5], [1.0, 0.0], unit="nats") == INF
        assert kl_divergence([0.5, 0.5], [1.0, 0.0], unit="bits") == INF
        assert kl_divergence([1.0, 0.0], [0.5, 0.5], unit="bits") == 1.0
        assert jensen_shannon_divergence([0.5, 0.5], [1.0, 0.0], unit="bits") < 1.0

    def test_the_smallest_numbers(self) -> None:
        tiny = 5e-324
        assert jensen_shannon_divergence([1.0, tiny], [1.0, 0.0], unit="nats") == 0.0
        assert math.isfinite(kl_divergence([1.0, 0.0], [tiny, 1.0], unit="nats"))

    def test_equal_distributions_diverge_by_exactly_nothing(self) -> None:
        p = np.random.default_rng(1).dirichlet(np.ones(1000))
        assert kl_divergence(p, p, unit="nats") == 0.0
        assert jensen_shannon_divergence(p, p, unit="nats") == pytest.approx(0.0, abs=1e-15)

    def test_rounding_of_float32_is_divided_out(self) -> None:
        p = np.full(30_000, 1 / 30_000, dtype=np.float32)
        assert entropy(p, unit="nats") == pytest.approx(math.log(30_000), rel=1e-12)

    @pytest.mark.parametrize(
        ("p", "message"),
        [
            ([0.5, 0.4], "p sums to 0.9, not to 1: divide counts or weights by their sum"),
            ([1.5, -0.5], "p value 2 of 2 is -0.5, negative"),
            ([3.0, 1.0], "p value 1 of 2 is 3.0, above 1"),
            ([0.5, math.nan], "p value 2 of 2 is nan"),
            ([], "no p value given"),
            ([[1.0]], "p values must be a list"),
        ],
    )
    def test_refused(self, p: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            entropy(p, unit="nats")

    def test_different_outcomes_are_refused(self) -> None:
        for measure in (cross_entropy, kl_divergence, jensen_shannon_divergence):
            with pytest.raises(InputError, match="p has 2 outcomes, q has 1"):
                measure([0.5, 0.5], [1.0], unit="bits")
            with pytest.raises(InputError, match="q sums to"):
                measure([0.5, 0.5], [0.5, 0.2], unit="bits")

    def test_the_unit_is_bits_unless_named(self) -> None:
        assert entropy([0.5, 0.5]) == entropy([0.5, 0.5], unit="bits") == 1.0
        with pytest.raises(UsageError, match="'bit' is unknown: it is bits or nats"):
            entropy([1.0], unit="bit")  # type: ignore[arg-type]


class TestBranching:
    def test_a_fair_and_a_loaded_die(self) -> None:
        assert branching_factor([1 / 6] * 6) == pytest.approx(6.0, rel=1e-14)
        # 0.99 for one face, 0.002 for each of five: H = -0.99 ln 0.99 - 0.01 ln 0.002 = 0.0720959
        loaded = branching_factor([0.99] + [0.002] * 5)
        assert loaded == pytest.approx(math.exp(-0.99 * math.log(0.99) - 0.01 * math.log(0.002)), rel=1e-14)
        assert 1.07 < loaded < 1.08

    def test_one_branch(self) -> None:
        assert branching_factor([0.0, 1.0]) == 1.0

    def test_contexts_weigh_by_how_often_they_occur(self) -> None:
        # Three times out of four a free choice of four (2 bits), once no choice: 1.5 bits.
        rows = [[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]]
        assert branching_factor(rows, weights=[3, 1]) == pytest.approx(2**1.5, rel=1e-14)
        assert branching_factor(rows, weights=[3e300, 1e300]) == pytest.approx(2**1.5, rel=1e-14)
        assert branching_factor(rows, weights=[0, 7]) == 1.0

    @pytest.mark.parametrize(
        ("rows", "weights", "error", "message"),
        [
            ([[0.5, 0.5]], None, UsageError, "need weights"),
            ([0.5, 0.5], [1.0], UsageError, "weights belong to several contexts"),
            ([[0.5, 0.5], [0.5, 0.4]], [1, 1], InputError, "context 2 sums to 0.9"),
            ([[0.5, 0.5]], [1, 1], InputError, "2 weights for 1 contexts"),
            ([[0.5, 0.5]], [-1], InputError, "context weight 1 of 1 is -1.0"),
            ([[0.5, 0.5]], [INF], InputError, "context weight 1 of 1 is inf"),
            ([[0.5, 0.5]], [0], InputError, "all context weights are 0"),
            ([2, 3], None, InputError, "value 1 of 2 is 2.0, above 1: divide counts"),
            ([], None, InputError, "no branch distribution value given"),
        ],
    )
    def test_refused(self, rows: Any, weights: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            branching_factor(rows, weights=weights)


class TestRelativeFrequencies:
    def test_of_one_sample(self) -> None:
        (p,) = relative_frequencies(["to", "be", "or", "not", "to", "be"])
        assert p.tolist() == [2 / 6, 2 / 6, 1 / 6, 1 / 6]
        assert entropy(p) == pytest.approx(2 / 3 * math.log2(3) + 1 / 3 * math.log2(6), rel=1e-14)

    def test_of_two_samples_over_the_same_outcomes(self) -> None:
        p, q = relative_frequencies(["a", "a", "b", "b"], ["b", "c"])
        assert p.tolist() == [0.5, 0.5, 0.0]
        assert q.tolist() == [0.0, 0.5, 0.5]
        assert jensen_shannon_divergence(p, q) == 0.5
        assert kl_divergence(p, q) == INF

    def test_numbers_and_words_are_different_outcomes(self) -> None:
        assert relative_frequencies([1, "1"])[0].tolist() == [0.5, 0.5]

    def test_refused(self) -> None:
        with pytest.raises(InputError, match="sample 2 of 2 has no outcomes"):
            relative_frequencies("a", [])
        with pytest.raises(InputError, match="outcomes that can be counted"):
            relative_frequencies([[1], [2]])  # type: ignore[list-item]


def test_scipy_agrees() -> None:
    stats = pytest.importorskip("scipy.stats")
    distance = pytest.importorskip("scipy.spatial.distance")
    p, q = np.random.default_rng(3).dirichlet(np.ones(50), size=2)
    assert entropy(p, unit="bits") == pytest.approx(stats.entropy(p, base=2), rel=1e-12)
    assert kl_divergence(p, q, unit="nats") == pytest.approx(stats.entropy(p, q), rel=1e-12)
    squared = distance.jensenshannon(p, q, base=2) ** 2
    assert jensen_shannon_divergence(p, q, unit="bits") == pytest.approx(squared, rel=1e-12)


def test_the_namespace_is_reached_from_the_package() -> None:
    assert lmgauge.numerics.information is information
    assert information.__all__ == sorted(information.__all__, key=lambda name: (name.islower(), name))
    assert all(hasattr(information, name) for name in information.__all__)
