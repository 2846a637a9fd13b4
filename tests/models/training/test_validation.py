"""The perplexity that training looks at is the one a plain loop finds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from lmgauge.models.training import loop
from lmgauge.models.training.loop import perplexity_of, validate
from lmgauge.models.training.networks import build_model
from lmgauge.models.training.settings import NeuralTrainingSettings, preset_settings

SIZE = 20


def settings(kind: Any, context: str) -> NeuralTrainingSettings:
    sizes = {"embedding_size": 8, "hidden_size": 8, "heads": 2, "steps": 6, "dropout": 0.5}
    return preset_settings(kind, context=context, tie_embeddings=False, **sizes)


def text(context: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    random = np.random.default_rng(4)
    ids = [] if context == "sentence" else [1]
    for length in (3, 0, 9, 14, 1, 7):
        ids += ([1] if context == "sentence" else []) + random.integers(3, SIZE, length).tolist() + [2]
    return np.array(ids, np.int64)


def plainly(model: Any, ids: list[int], context: str, window: int | None) -> float:
    """One forward pass for each token."""
    nats = 0.0
    for t in range(1, len(ids)):
        if ids[t] == 1:
            continue
        begin = max(i for i in range(t) if ids[i] == 1)
        if window is not None:
            begin += (t - 1 - begin) // window * window
        row = model(torch.tensor([ids[begin:t]])).logits[0, -1]
        nats -= float(torch.log_softmax(row.double(), -1)[ids[t]])
    return nats


@pytest.mark.parametrize("context", ["stream", "sentence"])
@pytest.mark.parametrize("kind", ["ffnn", "rnn", "lstm", "gru", "transformer"])
def test_it_is_the_sum_of_single_predictions(kind: str, context: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_STREAM_WINDOW", 10)
    chosen = settings(kind, context)
    torch.manual_seed(1)
    model = build_model(chosen, SIZE).train()
    ids = text(context)
    nats, events = validate(model, ids, chosen)
    assert model.training
    assert events == int(np.count_nonzero(ids != 1))
    model.eval()
    with torch.inference_mode():
        expected = plainly(model, ids.tolist(), context, 6 if kind == "transformer" else None)
    assert nats == pytest.approx(expected, rel=1e-6)


def test_a_running_text_is_read_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watch(module: Any, inputs: Any, output: Any) -> None:
        seen.append(torch.get_num_threads())

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        for kind, context in (("lstm", "stream"), ("lstm", "sentence"), ("ffnn", "stream")):
            chosen = settings(kind, context)
            model = build_model(chosen, SIZE)
            model.base_model.register_forward_hook(watch)
            validate(model, text(context), chosen)
            assert torch.get_num_threads() == 2
        assert seen[0] == 1
        assert set(seen[1:]) == {2}
    finally:
        torch.set_num_threads(before)


def test_perplexity() -> None:
    assert perplexity_of(2 * math.log(7), 2) == pytest.approx(7)
    assert perplexity_of(1e6, 1) == math.inf
