"""Distributions one context after another: kept keys, values and states change nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.models.network.conftest import network, rounding  # noqa: E402

from lmgauge.base.errors import ModelFileError  # noqa: E402
from lmgauge.models.network.options import ScoringOptions  # noqa: E402
from lmgauge.models.network.torch.architectures import (  # noqa: E402
    FeedForwardConfig,
    FeedForwardForCausalLM,
    RecurrentConfig,
    RecurrentForCausalLM,
)
from lmgauge.models.network.torch.model import load_neural  # noqa: E402
from lmgauge.models.network.torch.split_network import SplitNetwork, Stepper  # noqa: E402
from lmgauge.text.documents import Corpus  # noqa: E402

VOCABULARY = 40
LIBRARY = ("gpt2", "llama", "mamba", "gemma2")
OWN = ("rnn", "lstm", "gru", "ffnn")


def made(kind: str) -> Any:
    """A random network of a kind, predictions far from uniform."""
    if kind in LIBRARY:
        return network(kind, VOCABULARY)
    torch.manual_seed(7)
    sizes = {"vocab_size": VOCABULARY, "embedding_size": 8, "hidden_size": 8, "initializer_range": 1.0}
    if kind == "ffnn":
        return FeedForwardForCausalLM(FeedForwardConfig(order=4, **sizes)).eval()
    return RecurrentForCausalLM(RecurrentConfig(cell=kind, **sizes)).eval()


@torch.inference_mode()
def from_scratch(model: Any, ids: np.ndarray) -> np.ndarray:
    found: np.ndarray = model(input_ids=torch.from_numpy(ids)[None]).logits[0, -1].double().log_softmax(0).numpy()
    return found


def walk() -> list[np.ndarray]:
    """Contexts as sampling, audits and divergences ask for them: longer ones, the same again, others, shorter ones."""
    ids = np.random.default_rng(3).integers(0, VOCABULARY, 40)
    other = ids.copy()
    other[5] = (other[5] + 1) % VOCABULARY
    one_by_one = [ids[:n] for n in range(1, 26)]
    return [*one_by_one, ids[:25], ids[:40], ids[:3], ids[:4], ids[:4], other[:7], other[:8], ids[:8], ids[3:20], ids[3:21]]


@pytest.mark.parametrize("kind", [*LIBRARY, *OWN])
def test_steps_are_as_from_scratch(kind: str) -> None:
    model = made(kind)
    step = Stepper(SplitNetwork(model))
    for ids in walk():
        found = step(ids)
        np.testing.assert_allclose(found, from_scratch(model, ids), atol=2e-5)
        assert np.exp(found).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kind", [*LIBRARY, *OWN])
def test_several_contexts_are_as_each_alone(kind: str) -> None:
    """Longer ones, the same again, fewer of them, others, some twice: whatever is kept of them."""
    model = made(kind)
    step = Stepper(SplitNetwork(model))
    ids = np.random.default_rng(4).integers(0, VOCABULARY, (5, 12))
    ids[:, 0] = 1
    asked = [ids[:1, :1], ids[:, :2], ids[:, :3], ids[:, :3], ids[[0, 2, 4], :5], ids[[2, 4], :6], ids[[0, 1], :7]]
    asked += [ids[[1, 1, 0], :9], ids[:, :4], ids]
    for contexts in asked:
        found = step.many(contexts)
        alone = [from_scratch(model, context) for context in contexts]
        np.testing.assert_allclose(found, alone, atol=1e-4)


@pytest.mark.parametrize("kind", OWN)
def test_states_are_carried(kind: str) -> None:
    hidden = SplitNetwork(made(kind))
    assert hidden.recurrent
    assert not hidden.caches
    shown: list[int] = []
    forward = hidden.network.model.forward

    def counting(input_ids: Any, **options: Any) -> Any:
        shown.append(input_ids.shape[1])
        return forward(input_ids=input_ids, **options)

    hidden.network.model.forward = counting
    step = Stepper(hidden)
    for ids in (np.arange(4), np.arange(5), np.arange(9)):
        step(ids)
    assert shown == [4, 1, 4]


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma2"])
def test_keys_and_values_are_kept(kind: str) -> None:
    assert SplitNetwork(made(kind)).caches


def test_the_contexts_given_are_not_held() -> None:
    """An array that its owner goes on writing to is a new context each time."""
    model = made("lstm")
    step = Stepper(SplitNetwork(model))
    ids = np.arange(6)
    step(ids)
    ids[2] = 30
    np.testing.assert_allclose(step(ids), from_scratch(model, ids), atol=1e-6)


@pytest.mark.parametrize("kind", ["llama", "lstm"])
def test_a_step_that_is_interrupted_leaves_nothing_half_done(kind: str) -> None:
    model = made(kind)
    hidden = SplitNetwork(model)
    step = Stepper(hidden)
    step(np.arange(4))
    last = model.model.norm if kind == "llama" else model.model.dropout

    def interrupt(module: Any, inputs: Any, output: Any) -> None:
        raise KeyboardInterrupt

    handle = last.register_forward_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        step(np.arange(5))
    handle.remove()
    # The keys and values of the fifth id may have been kept already: they must not be there twice.
    np.testing.assert_allclose(step(np.arange(5)), from_scratch(model, np.arange(5)), atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("gpt2", {"context": 7, "stride": 3}),
        ("gpt2", {"context": 16, "stride": 16, "stream": True}),
        ("gpt2", {"context": 5, "stride": 5, "first_token": "uniform"}),
        ("llama", {"end": "eos"}),
        ("mamba", {"context": 4}),
    ],
)
def test_distributions_are_the_scores(kind: str, options: dict[str, Any], checkpoint: Callable[..., Path]) -> None:
    """What is asked context by context is what batches of windows gave."""
    model = load_neural(checkpoint(kind), ScoringOptions(**options))
    lines = ["The cat sat on the mat .", "", "It was a day"]
    context = [1]
    for batch in model.score(Corpus.from_strings(lines)):
        rows = zip(batch.row_segments().tolist(), batch.token_ids.tolist(), batch.logprob.tolist(), strict=True)
        at = 0
        for segment, token, logprob in rows:
            if segment != at and not model.context_policy.runs_on:
                context = [1]
            at = segment
            alone = model.log_distribution(context)
            assert alone[token] == pytest.approx(logprob, abs=rounding(model))
            np.testing.assert_allclose(model.log_distributions(np.array([context] * 2)), [alone] * 2, atol=rounding(model))
            context.append(token)


@pytest.mark.parametrize("kind", OWN)
def test_nan_in_a_distribution_is_told(kind: str) -> None:
    model = made(kind)
    step = Stepper(SplitNetwork(model))
    with torch.no_grad():
        model.lm_head.bias[3] = float("nan")
    with pytest.raises(ModelFileError, match="NaN"):
        step(np.arange(4))


def test_older_code_in_a_model_folder_keeps_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders carry a copy of our code as it was when they were written: before the trait `takes_state`."""
    model = made("gru")
    monkeypatch.delattr(type(model).__mro__[1], "takes_state")
    assert not hasattr(model, "takes_state")
    assert SplitNetwork(model).recurrent
    assert not SplitNetwork(made("gpt2")).recurrent
