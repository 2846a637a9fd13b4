"""Divergences of two tiles: the sums that keep their digits, beside the definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lmgauge.scores.distributions.reductions import Divergences, KullbackLeibler, direct
from lmgauge.scores.distributions.tile import Tile

logits = arrays.arrays(np.float64, (3, 5), elements=st.one_of(st.floats(-30, 0), st.just(-math.inf)))


def tile(values: np.ndarray) -> Tile:
    return Tile(lambda: values, np.zeros(len(values), np.int64))


def normalized(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return values - np.log(np.exp(values).sum(axis=1, keepdims=True))


@given(logits, logits)
def test_figures_are_the_definitions(a: np.ndarray, b: np.ndarray) -> None:
    """Also where a token is impossible to one, where all are, and where probabilities do not sum to one."""
    columns = Divergences(())(tile(a), tile(b))
    alone = KullbackLeibler()(tile(a), tile(b))["kl_ab"]
    for row in range(len(a)):
        expected = direct(a[row], b[row])
        for name, value in zip(("kl_ab", "kl_ba", "js", "tv"), expected, strict=True):
            assert columns[name][row] == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)
        assert alone[row] == pytest.approx(expected[0], rel=1e-9, abs=1e-12, nan_ok=True)


def test_close_distributions_keep_their_digits() -> None:
    """Of ln p scaled by 1 + h, KL is h^2 / 2 times the variance of ln p, and Jensen-Shannon a quarter of it."""
    logprob = normalized(np.random.default_rng(3).normal(0, 2, (4, 1000)))
    other = normalized((1 + 1e-6) * logprob)
    p = np.exp(logprob)
    variance = (p * logprob**2).sum(axis=1) - (p * logprob).sum(axis=1) ** 2
    columns = Divergences(())(tile(logprob), tile(other))
    np.testing.assert_allclose(columns["kl_ab"], 0.5e-12 * variance, rtol=1e-3)
    np.testing.assert_allclose(columns["kl_ba"], 0.5e-12 * variance, rtol=1e-3)
    np.testing.assert_allclose(columns["js"], 0.125e-12 * variance, rtol=1e-3)


@pytest.mark.parametrize("mass", [1 + 1e-5, 1 - 1e-5, 2.0])
def test_masses_are_divided_out(mass: float) -> None:
    a, b = (normalized(np.random.default_rng(seed).normal(0, 1, (2, 50))) for seed in (1, 2))
    plain, scaled = Divergences(())(tile(a), tile(b)), Divergences(())(tile(a), tile(b + math.log(mass)))
    np.testing.assert_allclose(scaled["mass_b"], mass)
    for name in ("kl_ab", "kl_ba"):
        np.testing.assert_allclose(scaled[name], plain[name], rtol=1e-9)
