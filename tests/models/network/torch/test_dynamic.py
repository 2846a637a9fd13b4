"""Dynamic evaluation: scored before learned, the same each time, and the network stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluation.audit.auditing import audit

import lmgauge
from lmgauge import Corpus
from lmgauge.errors import UsageError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

TEXT = ["the cat sat on the mat .", "it was a long day", "the mat sat on the cat ."] * 2


@pytest.fixture(scope="module")
def network(checkpoint: Callable[..., Path]) -> Any:
    return lmgauge.load_model(checkpoint("gpt2"), end="eos", stream=False, dtype="float32")


def test_each_segment_is_scored_before_it_is_learned(network: Any) -> None:
    """By hand: the first segment as the network has it, the second after one step against the gradient of the first."""
    model = lmgauge.dynamic_evaluation(network, 0.3)
    (batch,) = model.score(Corpus.from_strings(TEXT))
    (plain,) = network.score(Corpus.from_strings(TEXT))
    first, second = batch.segment_events[0], sum(batch.segment_events[:2])
    np.testing.assert_allclose(batch.logprob[:first], plain.logprob[:first], atol=1e-5)
    import copy

    pupil = copy.deepcopy(network.network).requires_grad_(True)

    def logprob(ids: np.ndarray) -> Any:  # type: ignore[type-arg]
        sequence = torch.from_numpy(np.concatenate(([network.tokens.bos], network.tokens.network_ids[ids]))).to(pupil.device)
        scores = torch.log_softmax(pupil(input_ids=sequence[None, :-1]).logits[0], -1)
        return scores[torch.arange(len(ids)), sequence[1:]]

    (-logprob(batch.token_ids[:first]).mean()).backward()
    with torch.no_grad():
        for weight in pupil.parameters():
            if weight.grad is not None:
                weight -= 0.3 * weight.grad
        expected = logprob(batch.token_ids[first:second]).cpu().numpy()
    np.testing.assert_allclose(batch.logprob[first:second], expected, atol=1e-4)
    assert np.abs(batch.logprob[first:second] - plain.logprob[first:second]).max() > 0.01


def test_the_same_text_gets_the_same_numbers_and_the_network_stays(network: Any) -> None:
    before = network.fingerprint
    model = lmgauge.dynamic_evaluation(network, 0.3)
    passes = [np.concatenate([b.logprob for b in model.score(Corpus.from_strings(TEXT, block_bytes=n))]) for n in (10, 900)]
    np.testing.assert_array_equal(*passes)
    del network.__dict__["fingerprint"]
    assert network.fingerprint == before
    assert model.fingerprint != lmgauge.dynamic_evaluation(network, 0.2).fingerprint


def test_score_is_what_log_distribution_says(network: Any) -> None:
    model = lmgauge.dynamic_evaluation(network, 0.3)
    (batch,) = model.score(Corpus.from_strings(TEXT[:3]))
    context = [1]
    for token, logprob in zip(batch.token_ids.tolist(), batch.logprob.tolist(), strict=True):
        distribution = model.log_distribution(np.array(context, np.uint32))
        assert distribution[token] == pytest.approx(logprob, abs=1e-4)
        assert np.exp(distribution).sum() == pytest.approx(1, abs=1e-5)
        context.append(token)
    early = model.log_distribution(np.array(context[:4], np.uint32))
    assert early[context[4]] == pytest.approx(batch.logprob[3], abs=1e-4)


def test_it_learns_a_text_that_repeats_itself_and_passes_the_audit(network: Any) -> None:
    model = lmgauge.dynamic_evaluation(network, 0.3)
    text = TEXT * 3
    assert lmgauge.evaluate(model, texts=text).perplexity < 0.6 * lmgauge.evaluate(network, texts=text).perplexity
    found = audit(model, Corpus.from_strings(TEXT[:3]), contexts=5, levels=("coverage", "normalization", "causality"))
    assert not found.failures, str(found)
    assert model.label == "dynamic0.3(gpt2)"
    assert "context:stream" in lmgauge.evaluate(model, texts=text).signature


def test_a_cache_beside_a_network_passes_the_audit(network: Any) -> None:
    model = lmgauge.cache(network, weight=0.2)
    assert model.tolerance == network.tolerance > 0
    found = audit(model, Corpus.from_strings(TEXT[:3]), contexts=5, levels=("coverage", "normalization", "causality"))
    assert found.passed, str(found)
    both = lmgauge.cache(lmgauge.dynamic_evaluation(network, 0.3), weight=0.2)
    assert lmgauge.evaluate(both, texts=TEXT * 3).perplexity < lmgauge.evaluate(network, texts=TEXT * 3).perplexity


def test_refused(network: Any, checkpoint: Callable[..., Path]) -> None:
    for rate in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="rate must be"):
            lmgauge.dynamic_evaluation(network, rate)
    with pytest.raises(UsageError, match="end with </s>"):
        lmgauge.dynamic_evaluation(lmgauge.load_model(checkpoint("gpt2"), end="newline", stream=False))
    with pytest.raises(UsageError, match="contexts of their own"):
        lmgauge.dynamic_evaluation(lmgauge.load_model(checkpoint("gpt2"), end="eos", stream=True))
    with pytest.raises(UsageError, match="a network that torch computes"):
        lmgauge.dynamic_evaluation(lmgauge.train("laplace", Corpus.from_strings(["a b"])))


def test_a_rate_that_leads_nowhere_is_said(network: Any) -> None:
    with pytest.raises(lmgauge.errors.ModelFileError, match=r"NaN|smaller rate"):
        lmgauge.evaluate(lmgauge.dynamic_evaluation(network, 1e12), texts=TEXT)
