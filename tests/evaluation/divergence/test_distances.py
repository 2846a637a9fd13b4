"""Distances between two distributions, against the general functions of `metrics` and against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from lmgauge.errors import InputError
from lmgauge.evaluation.divergence.distances import Distribution, distances, most_probable, normalized
from lmgauge.information import jensen_shannon_divergence, kl_divergence


def of(p: NDArray[np.float64] | list[float]) -> Distribution:
    with np.errstate(divide="ignore"):
        found = normalized(np.log(np.array(p, np.float64)), "model")
    assert found is not None
    return found


@st.composite
def pairs(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two distributions over 1 to 60 tokens: flat or peaked, with zeros, alike or not."""
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    size = draw(st.integers(1, 60))
    sharpness = draw(st.sampled_from([0.0, 1e-7, 1.0, 20.0, 150.0]))
    p = np.exp(sharpness * generator.standard_normal(size))
    q = p.copy() if draw(st.booleans()) else np.exp(sharpness * generator.standard_normal(size))
    q *= np.exp(draw(st.sampled_from([0.0, 1e-9, 1e-3])) * generator.standard_normal(size))
    for values in (p, q):
        values[generator.random(size) < draw(st.sampled_from([0.0, 0.3]))] = 0.0
        values[generator.integers(size)] = 1.0 if not values.any() else values.max()
        values /= values.sum()
    return p, q


@given(pairs())
def test_as_the_general_functions_say(pair: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    p, q = pair
    kl_pq, kl_qp, js, tv = distances(of(p), of(q))
    assert kl_pq == pytest.approx(kl_divergence(p, q, unit="nats"), rel=1e-9, abs=1e-13)
    assert kl_qp == pytest.approx(kl_divergence(q, p, unit="nats"), rel=1e-9, abs=1e-13)
    assert js == pytest.approx(jensen_shannon_divergence(p, q, unit="nats"), rel=1e-9, abs=1e-13)
    assert tv == pytest.approx(0.5 * np.abs(p - q).sum(), rel=1e-9, abs=1e-13)
    with np.errstate(divide="ignore"):
        assert kl_pq == pytest.approx(entropy(p, q), rel=1e-9, abs=1e-13)
    assert js == pytest.approx(float(np.nan_to_num(jensenshannon(p, q))) ** 2, rel=1e-7, abs=1e-13)


@given(pairs())
def test_laws(pair: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
    p, q = of(pair[0]), of(pair[1])
    kl_pq, kl_qp, js, tv = distances(p, q)
    assert min(kl_pq, kl_qp, js, tv) >= 0
    assert js <= math.log(2)
    assert tv <= 1
    assert distances(q, p) == pytest.approx((kl_qp, kl_pq, js, tv), rel=1e-12, abs=1e-15)
    assert tv <= math.sqrt(kl_pq / 2) + 1e-7  # Pinsker's inequality
    assert distances(p, p) == (0.0, 0.0, 0.0, 0.0)


def test_ruled_out_and_disjoint() -> None:
    kl_pq, kl_qp, js, tv = distances(of([0.5, 0.5, 0.0]), of([1.0, 0.0, 0.0]))
    assert (kl_pq, kl_qp, tv) == (math.inf, math.log(2), 0.5)
    assert js == pytest.approx(jensen_shannon_divergence([0.5, 0.5, 0.0], [1.0, 0.0, 0.0], unit="nats"))
    assert distances(of([1.0, 0.0]), of([0.0, 1.0])) == (math.inf, math.inf, pytest.approx(math.log(2)), 1.0)


def test_probabilities_below_float64_are_still_possible() -> None:
    tiny = normalized(np.array([0.0, -800.0]), "a")  # exp(-800) is 0 in float64, but not impossible
    certain = normalized(np.array([0.0, -np.inf]), "b")
    assert tiny is not None
    assert certain is not None
    assert distances(tiny, certain)[:2] == (math.inf, 0.0)
    assert distances(tiny, of([0.5, 0.5]))[0] == pytest.approx(math.log(2))


def test_distributions_are_divided_by_their_sum() -> None:
    scaled = normalized(np.log([0.5, 0.7]), "a")
    assert scaled is not None
    assert scaled.mass == pytest.approx(1.2)
    assert scaled.p.tolist() == pytest.approx([5 / 12, 7 / 12])
    assert np.exp(scaled.logprob).tolist() == pytest.approx([5 / 12, 7 / 12])
    assert normalized(np.full(3, -np.inf), "a") is None
    for bad in (np.nan, np.inf):
        with pytest.raises(InputError, match="theirs: log_distribution returned a value"):
            normalized(np.array([-1.0, bad]), "theirs")


@given(st.lists(st.sampled_from([-np.inf, -3.0, -2.0, -1.0]), min_size=1, max_size=30), st.integers(1, 40))
def test_most_probable_is_a_stable_sort(values: list[float], k: int) -> None:
    expected = [i for i in sorted(range(len(values)), key=lambda i: (-values[i], i)) if values[i] > -np.inf][:k]
    assert most_probable(np.array(values), k) == expected
