"""Weights by EM: the maximum, by an independent optimiser and by its own bound; the same for any number of threads."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.api.mix import mix
from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.combined.mixture.mixing import MixtureFit, find_weights, fit_weights
from lmgauge.models.combined.mixture.model import MixtureModel


def by_scipy(logprob: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The best weights and their mean log-likelihood, by sequential quadratic programming."""
    p = np.exp(logprob)

    def loss(weights: NDArray[np.float64]) -> float:
        return float(-np.mean(np.log(np.maximum(weights @ p, 1e-300))))

    count = len(p)
    found = minimize(
        loss,
        np.full(count, 1 / count),
        jac=lambda weights: -(p / np.maximum(weights @ p, 1e-300)).mean(axis=1),
        bounds=[(0, 1)] * count,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1, "jac": lambda weights: np.ones(count)},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x, -found.fun


def plain_em(logprob: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """The slow and obvious way: responsibilities, then their means (Dempster et al. 1977)."""
    p = np.exp(logprob)
    weights = np.full(len(p), 1 / len(p))
    for _ in range(steps):
        weights = (weights[:, None] * p / (weights @ p)).mean(axis=1)
    return weights


@st.composite
def probabilities(draw: st.DrawFn) -> NDArray[np.float64]:
    """float64 [components, events], natural logs; some events impossible to some components."""
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    components, events = draw(st.integers(2, 5)), draw(st.integers(1, 200))
    logprob = -generator.exponential(draw(st.sampled_from([0.01, 1.0, 30.0])), size=(components, events))
    logprob[generator.random(logprob.shape) < draw(st.sampled_from([0.0, 0.1]))] = -np.inf
    logprob[draw(st.integers(0, components - 1))] = -generator.exponential(3.0, events)
    return logprob


@given(probabilities())
def test_the_maximum_is_reached_and_the_likelihood_never_falls(logprob: NDArray[np.float64]) -> None:
    fit = fit_weights(logprob)
    assert math.fsum(fit.weights) == pytest.approx(1, abs=1e-12)
    assert min(fit.weights) >= 0
    assert all(later <= earlier for earlier, later in pairwise(fit.perplexities))
    mean = -math.log(fit.perplexities[-1])
    with np.errstate(divide="ignore"):
        assert mean == pytest.approx(float(np.mean(np.log(np.array(fit.weights) @ np.exp(logprob)))), abs=1e-9)
    _, best = by_scipy(logprob)
    assert mean >= best - 1e-9
    assert best - mean <= fit.gap + 1e-9
    assert fit.perplexities[-1] <= min(fit.component_perplexities) * (1 + 1e-15)


def test_weights_are_those_of_scipy_and_of_plain_em() -> None:
    generator = np.random.default_rng(5)
    logprob = -generator.exponential([[1.0], [1.1], [1.3]], size=(3, 4000))
    fit = fit_weights(logprob)
    assert fit.gap < 1e-8
    assert fit.weights == pytest.approx(by_scipy(logprob)[0], abs=1e-4)
    assert fit.weights == pytest.approx(plain_em(logprob, 3000), abs=1e-4)


def test_two_events_by_hand() -> None:
    # Component 1 is sure of two events of three, component 2 of the other: weights 2/3 and 1/3.
    with np.errstate(divide="ignore"):
        fit = fit_weights(np.log([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    assert fit.weights == pytest.approx((2 / 3, 1 / 3), abs=1e-4)
    assert fit.perplexity == pytest.approx((2 / 3) ** (-2 / 3) * (1 / 3) ** (-1 / 3))
    assert fit.perplexities[0] == pytest.approx(2.0)
    assert fit.component_perplexities == (math.inf, math.inf)
    assert fit.component_zeros == (1, 2)


def test_a_component_that_is_always_better_gets_all() -> None:
    logprob = np.array([[-1.0, -2.0, -1.5], [-1.1, -2.2, -1.5]])
    fit = fit_weights(logprob)
    assert fit.weights == (1.0, 0.0)
    assert fit.perplexity == min(fit.component_perplexities)


def test_impossible_events_are_skipped_and_counted() -> None:
    logprob = np.array([[-1.0, -np.inf, -np.inf, -2.0], [-2.0, -np.inf, -1.0, -1.0]])
    fit = fit_weights(logprob)
    assert (fit.events, fit.skipped, fit.component_zeros) == (4, 1, (2, 1))
    assert fit.perplexity == math.inf
    assert fit.perplexity_without_zeros == fit_weights(logprob[:, [0, 2, 3]]).perplexity
    assert json.dumps(fit.to_dict(), allow_nan=False)
    assert fit.to_dict()["perplexity"] == "inf"
    with pytest.raises(InputError, match="no model gives any held-out event"):
        fit_weights(np.full((2, 3), -np.inf))
    with pytest.raises(InputError, match="no events"):
        fit_weights(np.zeros((2, 0)))


def test_probabilities_far_below_float64() -> None:
    fit = fit_weights(np.array([[-5000.0, -5001.0], [-5001.0, -5000.0]]))
    assert fit.weights == pytest.approx((0.5, 0.5))
    assert fit.perplexity == math.inf  # exp(5000) leaves float64
    given = fit_weights(np.array([[-5000.0, -5001.0], [-1.0, -1.0]]), start=(1.0, 0.0), max_iterations=0)
    assert given.gap == math.inf
    assert given.weights == (1.0, 0.0)


def test_weights_of_zero_that_cost_an_event_could_gain_without_bound() -> None:
    given = fit_weights(np.array([[-np.inf, -1.0], [-1.0, -1.0]]), start=(1.0, 0.0), max_iterations=0)
    assert (given.skipped, given.gap, given.perplexity) == (1, math.inf, math.inf)
    assert given.perplexity_without_zeros == pytest.approx(math.e)


def test_iterations_are_limited() -> None:
    logprob = -np.random.default_rng(1).exponential(1.0, size=(3, 100))
    assert fit_weights(logprob, max_iterations=2).iterations == 2
    assert fit_weights(logprob, max_iterations=0).weights == pytest.approx((1 / 3,) * 3)


# -- models -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parts(data: Path) -> list[NgramModel]:
    """Two models that complement one another: of plays, and of an encyclopedia."""
    plays = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")[:1500]
    wiki = (data / "pud.en.txt").read_text(encoding="utf-8").split("\n")
    words = sorted({word for line in plays + wiki for word in line.split()})
    options: dict[str, Any] = {"words": words, "reserved": "escape"}
    return [
        lmgauge.train("kneser-ney", Corpus.from_strings(plays), order=3, **options),
        lmgauge.train("witten-bell", Corpus.from_strings(wiki), order=2, **options),
    ]


@pytest.fixture(scope="module")
def held_out(data: Path) -> list[str]:
    return (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")[1500:1900]


def test_a_mixture_is_better_than_its_components(parts: list[NgramModel], held_out: list[str]) -> None:
    fit = find_weights(parts, None, Corpus.from_strings(held_out))
    logprob = np.array([[v for b in m.score(Corpus.from_strings(held_out)) for v in b.logprob.tolist()] for m in parts])
    assert fit.weights == pytest.approx(by_scipy(logprob)[0], abs=1e-4)
    mixture = MixtureModel(parts, fit.weights)
    whole = lmgauge.evaluate([*parts, mixture], Corpus.from_strings(held_out))
    assert [e.perplexity for e in whole][:2] == pytest.approx(fit.component_perplexities, rel=1e-14)
    assert whole[2].perplexity == pytest.approx(fit.perplexity, rel=1e-12)
    assert fit.perplexity < min(fit.component_perplexities)
    assert fit.events == whole[2].events
    assert fit.held_out_sha256 == whole[2].fingerprints["text"]
    assert repr(fit).startswith(f"<MixtureFit: weights {fit.weights[0]:.4f}, {fit.weights[1]:.4f}: perplexity")


def test_weights_do_not_depend_on_threads_or_blocks(parts: list[NgramModel], held_out: list[str]) -> None:
    def fit(threads: int, block_bytes: int) -> MixtureFit:
        return find_weights(parts, None, Corpus.from_strings(held_out, block_bytes=block_bytes), threads=threads)

    first = fit(1, 1 << 20)
    assert fit(2, 1 << 20) == first
    assert fit(3, 100) == first


def test_weights_for_streams_and_other_orders_of_ids(parts: list[NgramModel], held_out: list[str]) -> None:
    words = [word for word in reversed(parts[0].vocabulary.tokens) if not word.startswith("<")]
    corpus = Corpus.from_strings(held_out)
    stream = lmgauge.train("laplace", corpus, order=1, words=words, context="stream", reserved="escape")
    fit = find_weights([parts[0], stream], None, corpus)
    evaluated = lmgauge.evaluate(MixtureModel([parts[0], stream], fit.weights), corpus)
    assert evaluated.perplexity == pytest.approx(fit.perplexity, rel=1e-12)
    assert evaluated.context == "stream"


def test_mix_keeps_how_the_weights_were_found(parts: list[NgramModel], held_out: list[str], tmp_path: Path) -> None:
    mixture = mix(parts, Corpus.from_strings(held_out))
    mixture.save(tmp_path / "mixed")
    loaded = lmgauge.load_model(tmp_path / "mixed")
    assert isinstance(loaded, MixtureModel)
    assert loaded.weights == mixture.weights
    fit = find_weights(parts, None, Corpus.from_strings(held_out))
    assert loaded.estimation == json.loads(json.dumps(fit.to_dict()))
    assert loaded.estimation["held_out_sha256"] == fit.held_out_sha256


def test_given_weights_are_measured(parts: list[NgramModel], held_out: list[str]) -> None:
    fit = find_weights(parts, [0.5, 0.5], Corpus.from_strings(held_out))
    expected = lmgauge.evaluate(MixtureModel(parts, [0.5, 0.5]), Corpus.from_strings(held_out)).perplexity
    assert fit.perplexity == pytest.approx(expected, rel=1e-12)
    assert (fit.weights, fit.iterations, fit.measured) == ((0.5, 0.5), 0, True)
    best = find_weights(parts, None, Corpus.from_strings(held_out))
    assert 0 < math.log(fit.perplexity / best.perplexity) <= fit.gap
    with pytest.raises(UsageError, match="sum to"):
        find_weights(parts, [0.5, 0.6], Corpus.from_strings(held_out))


def test_held_out_text_without_events(parts: list[NgramModel]) -> None:
    with pytest.raises(InputError, match="no events"):
        find_weights(parts, None, Corpus.from_strings([]))


def test_the_last_bit_of_a_probability_moves_no_digit_of_the_weights() -> None:
    """Another processor's logarithms differ by as much; where the likelihood is flat, EM alone stops at another step."""
    random = np.random.default_rng(0)
    logprob = np.log(random.dirichlet(np.full(50, 0.3), size=(3000, 2))[:, :, 0].T + 1e-9)
    nearby = logprob * (1 + random.choice([0.0, 2**-52, -(2**-52)], size=logprob.shape))
    assert fit_weights(nearby).weights == pytest.approx(fit_weights(logprob).weights, rel=1e-13)


def test_alike_components_share_their_weight() -> None:
    logprob = np.log([[0.8, 0.1, 0.8], [0.8, 0.1, 0.8], [0.2, 0.9, 0.2]])
    first, second, third = fit_weights(logprob).weights
    assert first == pytest.approx(second)
    assert third == pytest.approx(fit_weights(logprob[1:]).weights[1], abs=1e-9)
