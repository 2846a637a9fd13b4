"""Networks beside each other: figures by transformers' own logits, and what cannot be compared said in a line."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import ModelFileError
from lmgauge.models import NeuralModel
from lmgauge.settings import ScoringOptions

torch = pytest.importorskip("torch", reason="the extra neural is not installed")
tiny = pytest.importorskip("tests.integrations.tiny", reason="the extra neural is not installed")

LINES = tiny.make_lines()[:20]


def changed(network: Any, seed: int = 3, size: float = 0.05) -> Any:
    """The network with noise on its weights, as quantizing makes it."""
    torch.manual_seed(seed)
    other = copy.deepcopy(network)
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(size * weight.abs().mean() * torch.randn_like(weight))
    return other


@pytest.fixture(scope="module")
def networks() -> tuple[Any, Any, Any]:
    """A network, the same with noise, and their tokenizer."""
    network = tiny.make_network().eval()
    return network, changed(network), tiny.make_tokenizer()


def wrapped(network: Any, tokenizer: Any, **options: Any) -> NeuralModel:
    return NeuralModel.wrap(network, tokenizer, ScoringOptions(**options))


def test_figures_are_those_of_the_logits(networks: tuple[Any, Any, Any]) -> None:
    base, other, tokenizer = networks
    text = Corpus.from_strings(LINES)
    found = lmgauge.divergence(wrapped(base, tokenizer), wrapped(other, tokenizer), text, events=None)
    assert found.kl_ab_nats.value is not None
    assert 0 < found.kl_ab_nats.value < 0.1
    model = wrapped(base, tokenizer)
    candidate = wrapped(other, tokenizer)
    kl = []
    for batch in model.score(text):
        ids, at = batch.token_ids, 0
        for count in batch.segment_events.tolist():
            for i in range(count):
                context = np.concatenate(([1], ids[at : at + i])).astype(np.uint32)
                p, q = (m.log_distribution(context) for m in (model, candidate))
                kl.append(float(np.sum(np.exp(p[p > -np.inf]) * (p[p > -np.inf] - q[p > -np.inf]))))
            at += count
    assert found.events == len(kl)
    assert found.kl_ab_nats.value == pytest.approx(np.mean(kl), rel=1e-3)
    assert found.kl_ab_quantiles_nats["100"] == pytest.approx(max(kl), rel=1e-3)


@pytest.mark.parametrize("options", [{}, {"stream": True, "context": 16}, {"first_token": "unscored"}])
def test_a_sample_is_part_of_the_whole(networks: tuple[Any, Any, Any], options: dict[str, Any]) -> None:
    base, other, tokenizer = networks
    models = wrapped(base, tokenizer, **options), wrapped(other, tokenizer, **options)
    text = Corpus.from_strings(LINES)
    whole = lmgauge.divergence(*models, text, events=None, examples=10_000)
    part = lmgauge.divergence(*models, text, events=30, examples=10_000)
    assert 30 <= part.events < whole.events == part.total_events
    by_place = {(token.segment, token.position): token.kl_nats for token in whole.worst_tokens}
    for token in part.worst_tokens:
        expected = by_place.get((token.segment, token.position))
        assert expected is None or token.kl_nats == pytest.approx(expected, rel=1e-3, abs=1e-7)
    assert len(by_place.keys() & {(token.segment, token.position) for token in part.worst_tokens}) > 10


def test_what_cannot_be_compared_is_said(networks: tuple[Any, Any, Any]) -> None:
    base, _, tokenizer = networks
    text, model = Corpus.from_strings(LINES), wrapped(base, tokenizer)
    broken = copy.deepcopy(base)
    with torch.no_grad():
        broken.transformer.ln_f.weight.fill_(float("nan"))
    with pytest.raises(ModelFileError, match="gives NaN in segment 1"):
        lmgauge.divergence(model, wrapped(broken, tokenizer), text)


def test_a_padded_network_is_compared_over_the_common_tokens(networks: tuple[Any, Any, Any]) -> None:
    base, _, tokenizer = networks
    padded = copy.deepcopy(base)
    padded.resize_token_embeddings(len(tokenizer) + 5, mean_resizing=False)
    text, model = Corpus.from_strings(LINES), wrapped(base, tokenizer)
    found = lmgauge.divergence(model, wrapped(padded, tokenizer), text, events=200)
    assert found.missing_mass_a == pytest.approx(0, abs=1e-5)
    assert 1e-4 < found.missing_mass_b < 0.1
    assert found.kl_ab_nats.value == pytest.approx(0, abs=1e-6)  # the rest is the same network
    assert any("5 rows" in note for note in found.notes)
    assert any(f"on average to {1 - found.missing_mass_b:.6g}" in note for note in found.notes)
