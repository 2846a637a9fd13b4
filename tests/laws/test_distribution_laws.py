"""Laws of whole distributions: every reduction is the slow sum over `log_distribution`, whatever the blocks and events.

Over random n-gram models of every kind, mixtures, models that have only `log_distribution`, and tiny networks in float32.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.evaluation.audit.gallery import Sound, SoundStream
from tests.laws.test_model_laws import WORDS, models, texts
from tests.reference import distributions as slow

import lmgauge
from lmgauge.scores.distributions import Divergences, Entropy, Mass, Moments, Rank, TopK, reduce, reduce_pair
from lmgauge.scores.distributions.reductions import Forecasts, direct
from lmgauge.text.documents import Corpus

EXACT, FLOAT32 = 1e-9, 2e-5
REDUCTIONS = [Entropy(), Rank(), TopK(3), Moments(), Mass(), Mass((0, 2), "some"), Forecasts()]
Columns = dict[str, NDArray[Any]]


def columns_of(model: Any, lines: list[str], *, block_bytes: int = 1 << 20, **options: Any) -> Columns:
    """The columns of all reductions, the log-probabilities, and the segment of each row."""
    text = Corpus.from_strings(lines, block_bytes=block_bytes)
    return slow.joined(
        {**batch.extra, "logprob": batch.logprob, "segment": batch.row_segments()}
        for batch in reduce(model, text, REDUCTIONS, **options)
    )


def assert_slow_sums(model: Any, lines: list[str], tolerance: float) -> None:
    """Every column is what the definition says of what the model says event by event."""
    columns = columns_of(model, lines)
    expected = slow.slow_distributions(model, model.score(Corpus.from_strings(lines)))
    assert len(columns["logprob"]) == len(expected)
    for row, (logprob, token, scored) in enumerate(expected):
        found = {name: values[row] for name, values in columns.items()}
        close = {"rel": tolerance, "abs": tolerance}
        assert found["logprob"] == pytest.approx(scored, **close)
        assert found["came"] == pytest.approx(logprob[token], **close)
        assert found["entropy"] == pytest.approx(slow.entropy(logprob), **close)
        assert found["mean_logprob"] == pytest.approx(slow.mean(logprob), **close)
        assert found["logprob_deviation"] ** 2 == pytest.approx(slow.variance(logprob), rel=10 * tolerance, abs=tolerance)
        assert found["mass"] == pytest.approx(slow.mass(logprob, range(len(logprob))), **close)
        assert found["some"] == pytest.approx(slow.mass(logprob, (0, 2)), **close)
        assert found["confidence"] == pytest.approx(math.exp(max(logprob)), **close)
        assert found["brier"] == pytest.approx(
            math.fsum((math.exp(value) - (i == token)) ** 2 for i, value in enumerate(logprob)), **close
        )
        assert found["decades"][:, 0].sum() + found["impossible"] == found["tenths"][:, 0].sum() + found["impossible"]
        assert found["decades"][:, 0].sum() + found["impossible"] == len(logprob)
        lowest, highest = slow.ranks(logprob, token, 2 * tolerance)
        assert lowest <= found["rank"] <= highest
        best = sorted(logprob, reverse=True)[:3]
        assert found["top_logprobs"].tolist() == pytest.approx(best, **close)
        assert [logprob[i] for i in found["top_ids"].tolist()] == pytest.approx(best, **close)


def assert_one_answer(model: Any, lines: list[str], chosen: NDArray[np.int64], tolerance: float) -> None:
    """Neither blocks nor threads nor the events asked for change what a row says."""
    whole = columns_of(model, lines, threads=1)
    chosen = chosen[chosen < len(whole["logprob"])]
    others = [columns_of(model, lines, block_bytes=20, threads=3)]
    if len(chosen):
        others.append(columns_of(model, lines, block_bytes=20, threads=2, events=chosen))
    for other, rows in zip(others, (slice(None), chosen), strict=False):
        for name, values in whole.items():
            if name in ("rank", "top_ids", "decades", "tenths", "right") and tolerance > EXACT:
                continue  # where rounding may move a value over an edge; the other columns hold the values
            np.testing.assert_allclose(other[name], values[rows], rtol=tolerance, atol=tolerance, err_msg=name)


numbers = st.lists(st.integers(0, 40), max_size=6, unique=True).map(lambda rows: np.array(sorted(rows), np.int64))


# -- n-gram models, mixtures, models of one's own -------------------------------------------------------------------------


@given(models(), texts(unseen=True))
def test_reductions_of_ngram_models_are_the_slow_sums(model: Any, lines: list[str]) -> None:
    assert_slow_sums(model, lines, EXACT)


@given(models(), texts(unseen=True), numbers)
def test_columns_of_ngram_models_have_one_answer(model: Any, lines: list[str], chosen: NDArray[np.int64]) -> None:
    assert_one_answer(model, lines, chosen, EXACT)


kinds = st.sampled_from(["kneser-ney", "witten-bell", "laplace", "mle"])
orders = st.integers(1, 4)


@settings(max_examples=15)
@given(texts(), texts(unseen=True), kinds, kinds, st.sampled_from([0.2, 0.5]), texts(unseen=True), numbers)
def test_mixtures(
    one: list[str], other: list[str], a: Any, b: Any, weight: float, lines: list[str], chosen: NDArray[np.int64]
) -> None:
    """Mostly over the union of different words."""
    both = [lmgauge.train(kind, Corpus.from_strings(text), order=n) for kind, text, n in ((a, one, 3), (b, other, 2))]
    mixture = lmgauge.mix(both, weights=[weight, 1 - weight])
    assert_slow_sums(mixture, lines, EXACT)
    assert_one_answer(mixture, lines, chosen, EXACT)


@settings(max_examples=15)
@given(st.sampled_from([Sound, SoundStream]), texts(), numbers)
def test_models_that_have_only_log_distribution(kind: type[Sound], lines: list[str], chosen: NDArray[np.int64]) -> None:
    model = kind([" ".join(WORDS), *lines])
    assert_slow_sums(model, lines, EXACT)
    assert_one_answer(model, lines, chosen, EXACT)


# -- networks -------------------------------------------------------------------------------------------------------------


@cache
def parts(kind: str) -> tuple[Any, Any]:
    """A network and its tokenizer, made once."""
    pytest.importorskip("transformers")
    from tests.models.network.conftest import TOKENIZERS, network

    tokenizer = TOKENIZERS["byte-level"]()
    return network(kind, len(tokenizer)), tokenizer


def neural(kind: str, policy: dict[str, Any]) -> Any:
    pytest.importorskip("torch")
    from lmgauge.models.network.options import ScoringOptions
    from lmgauge.models.network.torch.model import NeuralModel

    return NeuralModel.wrap(*parts(kind), ScoringOptions(**policy))


networks = st.tuples(
    st.sampled_from(["gpt2", "llama"]),
    st.sampled_from(
        [
            {},
            {"context": 8, "stride": 3},
            {"stream": True, "context": 16, "stride": 8},
            {"first_token": "uniform", "context": 5},
        ]
    ),
)
short = st.lists(st.text(st.sampled_from("the cat sat.é"), max_size=15), min_size=1, max_size=4)


@settings(max_examples=8)
@given(networks, short, numbers)
def test_networks(kind: tuple[str, dict[str, Any]], lines: list[str], chosen: NDArray[np.int64]) -> None:
    model = neural(*kind)
    assert_slow_sums(model, lines, FLOAT32)
    assert_one_answer(model, lines, chosen, FLOAT32)


# -- two models -----------------------------------------------------------------------------------------------------------


def assert_slow_divergences(a: Any, b: Any, lines: list[str], tolerance: float) -> None:
    """The divergences are those of the definitions, and inf where the second rules out what the first holds possible."""
    text = Corpus.from_strings(lines, block_bytes=20)
    found = slow.joined(dict(columns) for _, _, columns in reduce_pair(a, b, text, Divergences((1,))))
    whole = Corpus.from_strings(lines)
    ours, theirs = (slow.slow_distributions(model, model.score(whole)) for model in (a, b))
    for row, ((one, _, _), (other, _, _)) in enumerate(zip(ours, theirs, strict=True)):
        expected = direct(np.array(one), np.array(other))
        for name, value in zip(("kl_ab", "kl_ba", "js", "tv"), expected, strict=True):
            assert found[name][row] == pytest.approx(value, rel=tolerance, abs=tolerance, nan_ok=True), (row, name)


@settings(max_examples=20)
@given(texts(), kinds, kinds, orders, texts(unseen=True))
def test_divergences_of_ngram_models_are_the_slow_sums(
    train: list[str], a: Any, b: Any, order: int, lines: list[str]
) -> None:
    corpus = Corpus.from_strings(train)
    both = lmgauge.train(a, corpus, order=order), lmgauge.train(b, corpus, order=2)
    assert_slow_divergences(*both, lines, 1e-7)  # tables hold float32: the definitions divide by sums that are not quite one


@settings(max_examples=5)
@given(short)
def test_divergences_of_networks_are_the_slow_sums(lines: list[str]) -> None:
    assert_slow_divergences(neural("gpt2", {}), neural("llama", {}), lines, 1e-4)
