"""The exact perplexity of ids under a model that is being trained: float32 log-softmax, float64 sums, each token once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lmgauge.models.network.torch.output_layer import OutputLayer
from lmgauge.models.network.torch.runtime import exact_float32
from lmgauge.models.training.data import Window, WindowSource
from lmgauge.models.training.networks import IGNORED
from lmgauge.models.training.settings import RECURRENT, NeuralTrainingSettings

_STREAM_WINDOW = 512
_SIDE_BY_SIDE = 64


def perplexity_of(nats: float, events: float) -> float:
    """Return exp(nats / events); infinite where that is beyond a float."""
    try:
        return math.exp(nats / events)
    except OverflowError:
        return math.inf


@torch.inference_mode()
def validate(model: Any, ids: NDArray[np.int64], settings: NeuralTrainingSettings) -> tuple[float, int]:
    """Return the surprise at a text, by the context policy the model is trained for."""
    # A recurrent model reads a stream from its beginning to its end in one go, a Transformer in windows one after another,
    # as `lmgauge eval` does without a stride.
    # ids: int64 [n], as in training.
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    head = model.get_output_embeddings()
    layer = OutputLayer(head.weight, head.bias)
    nats, events, state = 0.0, 0, None
    with _one_thread(device, settings), exact_float32(device):
        for window in _windows(ids, settings):
            options = {"use_cache": False} if settings.kind == "transformer" else {"state": None if window.fresh else state}
            output = model.base_model(window.inputs.to(device), **options)
            state = getattr(output, "state", None)
            counted = (window.targets != IGNORED).to(device)
            surprises = -layer.log_probabilities(output.last_hidden_state[counted], window.targets.to(device)[counted])
            nats += float(surprises.sum(dtype=torch.float64))
            events += int(counted.sum())
    model.train(training)
    return nats, events


@contextmanager
def _one_thread(device: torch.device, settings: NeuralTrainingSettings) -> Iterator[None]:
    # Read a running text with one thread: on a busy machine those that share its small steps wait for each other.
    # Measured with an LSTM of 200 units on two cores: 11 ms for 512 steps with one thread, with two 5,600 ms.
    before = torch.get_num_threads()
    if device.type == "cpu" and settings.kind in RECURRENT and settings.context == "stream":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _windows(ids: NDArray[np.int64], settings: NeuralTrainingSettings) -> Iterator[Window]:
    stream, last = torch.from_numpy(ids), len(ids) - 1
    if settings.context == "sentence":
        yield from WindowSource(ids, replace(settings, batch_size=_SIDE_BY_SIDE)).windows(0)
    elif settings.kind == "transformer":
        whole = last // settings.steps * settings.steps
        inputs, targets = (stream[shift : shift + whole].view(-1, settings.steps) for shift in (0, 1))
        for side_by_side in zip(inputs.split(_SIDE_BY_SIDE), targets.split(_SIDE_BY_SIDE), strict=True):
            yield Window(*side_by_side, fresh=True)
        if whole < last:
            yield Window(stream[None, whole:-1], stream[None, whole + 1 :], fresh=True)
    else:
        yield from WindowSource(ids, replace(settings, batch_size=1, steps=_STREAM_WINDOW)).windows(0)
