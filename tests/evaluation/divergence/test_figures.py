"""Columns of blocks become columns of the text, and figures of these are as the formulas, written out."""

from __future__ import annotations

import math
from statistics import mean as average
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError
from lmgauge.evaluation.divergence.figures import (
    QUANTILES,
    PairEvents,
    PairRows,
    collect,
    figures_of,
    quantiles,
    token_errors,
    worst_tokens,
)
from lmgauge.scores import ScoreBatch, Strings


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40))
def test_quantiles_are_numpy_s(values: list[float]) -> None:
    found = quantiles(np.array([*values, math.nan]))
    assert list(found.values()) == pytest.approx(np.percentile(values, QUANTILES).tolist(), abs=1e-12)


def test_quantiles_between_infinities() -> None:
    assert quantiles(np.array([1.0, math.inf, math.inf]))["75"] == math.inf
    assert quantiles(np.array([math.nan])) == {}


def some_events(n: int = 50) -> PairEvents:
    random = np.random.default_rng(5)
    events = pair_events([random.random(n // 2).tolist(), random.random(n - n // 2).tolist()])
    for name in ("logprob_a", "logprob_b"):
        events.columns[name][:] = -random.random(n) * 3
    events.columns["overlap_1"][:] = random.random(n) > 0.5
    return events


def test_token_errors_are_those_of_llama_cpp() -> None:
    """As tools/perplexity/perplexity.cpp computes them: sums of squares, n - 1 under the root."""
    events = some_events()
    errors = token_errors(events)
    assert errors is not None
    base, q = (-values for values in events.logprob)

    def uncertainty(values: np.ndarray) -> float:  # type: ignore[type-arg]
        n = len(values)
        return math.sqrt((float((values * values).sum()) / n - (float(values.sum()) / n) ** 2) / (n - 1))

    n = len(base)
    covariance = (average((base * q).tolist()) - average(base.tolist()) * average(q.tolist())) / (n - 1)
    assert errors.log_perplexity_a == pytest.approx(uncertainty(base))
    assert errors.log_perplexity_b == pytest.approx(uncertainty(q))
    assert errors.correlation == pytest.approx(covariance / (uncertainty(base) * uncertainty(q)))
    ratio = math.sqrt(uncertainty(q) ** 2 + uncertainty(base) ** 2 - 2 * covariance)
    assert errors.log_probability_change == pytest.approx(ratio)
    assert errors.kl_ab == pytest.approx(uncertainty(events.kl))
    change = np.exp(-q) - np.exp(-base)
    assert errors.probability_change == pytest.approx(uncertainty(change))
    assert errors.squared_probability_change == pytest.approx(uncertainty(change**2))
    same = float(events.columns["overlap_1"].mean())
    assert errors.top_1 == pytest.approx(math.sqrt(same * (1 - same) / (n - 1)))


@pytest.mark.parametrize("kl", [[[0.5]], [[0.5, math.inf]], [[0.5, math.nan]]])
def test_token_errors_need_finite_events(kl: list[list[float]]) -> None:
    assert token_errors(pair_events(kl)) is None


def test_undefined_events_are_in_no_mean() -> None:
    found = figures_of(pair_events([[1.0, math.nan], [3.0]], overlap_1=[0.0, 0.0][0]), (1,))
    assert found["kl_ab_nats"].value == 2.0
    assert found["undefined_events"] == 1
    assert found["top_1_agreement"].value == 0.0
    assert found["kl_ab_without_infinite_nats"] == 2.0


def test_mass_that_is_missing_is_a_mean() -> None:
    found = figures_of(pair_events([[1.0, 1.0]], mass_b=0.75), (1,))
    assert (found["missing_mass_a"], found["missing_mass_b"]) == (0.0, 0.25)


def test_the_worst_tokens_come_once_in_a_context() -> None:
    text = lmgauge.Corpus.from_strings(["a b", "a b", "b b", "b a"])
    base, other = (lmgauge.train("witten-bell", text, order=order) for order in (2, 1))
    found = lmgauge.divergence(base, other, text, events=None, examples=20)
    shown = [(token.context, token.token) for token in found.worst_tokens]
    assert len(shown) == len(set(shown)) == 8
    assert [token.kl_nats for token in found.worst_tokens] == sorted((t.kl_nats for t in found.worst_tokens), reverse=True)
    assert {token.context + token.text for token in found.worst_tokens if token.token != "</s>"} == {
        "a", "b", "a b", "b b", "b a",
    }  # fmt: skip
    assert worst_tokens(pair_events([[0.0, math.nan]]), np.array([0.0, math.nan]), 5, base) == ()


STRINGS = Strings(["a", "b"])


def pair_rows(
    kl: list[list[float]], logprob: tuple[float, float] = (-1.0, -2.0), documents: list[str] | None = None, **columns: Any
) -> list[PairRows]:
    """Rows of segments, each a block: KL of their events, and the same log-probabilities at each."""
    found = []
    for block, values in zip(Corpus.from_strings(["a"] * len(kl), documents=documents, block_bytes=1), kl, strict=True):
        n = len(values)
        a, b = (
            ScoreBatch(
                np.array([block.first]),
                np.array([n]),
                np.zeros(n, np.uint32),
                STRINGS,
                np.full(n, value),
                np.zeros(n, np.uint8),
                np.minimum(np.arange(1, n + 1), 1),
            )
            for value in logprob
        )
        far = np.array(values, np.float64)
        zero = np.zeros(n)
        known = {"kl_ab": far, "kl_ba": far, "js": zero, "tv": zero, "mass_a": zero + 1, "mass_b": zero + 1}
        known |= {"overlap_1": zero + 1} | {name: np.full(n, value) for name, value in columns.items()}
        found.append(PairRows(block, a, b, known))
    return found


def pair_events(kl: list[list[float]], **options: Any) -> PairEvents:
    return collect(pair_rows(kl, **options), ("base", "q"))


def test_blocks_are_joined() -> None:
    events = collect(
        pair_rows([[0.5, 0.25], [], [2.0]], documents=["x", "x", "y"]), ("base", "q"), numbers=np.array([3, 5, 9])
    )
    assert len(events) == 3
    assert events.kl.tolist() == [0.5, 0.25, 2.0]
    assert events.sizes.tolist() == [2, 0, 1]
    assert events.owner.tolist() == [0, 0, 2]
    assert events.numbers.tolist() == [3, 5, 9]
    assert events.documents is not None
    assert events.documents.tolist() == [0, 0, 1]
    assert [tally.nats() for tally in events.tallies] == [-3.0, -6.0]
    assert events.p[1].tolist() == [np.exp(-2.0)] * 3


@pytest.mark.parametrize("mass", [np.nan, np.inf])
def test_what_is_not_a_distribution_is_refused(mass: float) -> None:
    with pytest.raises(InputError, match="q: log_distribution returned a value that is not a log-probability"):
        pair_events([[0.5]], mass_b=mass)


def test_without_events_there_is_nothing_to_compare() -> None:
    with pytest.raises(InputError, match="no event"):
        pair_events([[]])
