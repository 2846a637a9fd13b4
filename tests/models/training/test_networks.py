"""Which precision a network trains in."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch

from lmgauge.models.training import networks
from lmgauge.models.training.networks import computable, mixed_precision
from lmgauge.models.training.settings import NEURAL_KINDS, NeuralKind, NeuralTrainingSettings

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def bfloat16(kind: NeuralKind) -> NeuralTrainingSettings:
    return NeuralTrainingSettings(kind=kind, precision="bfloat16", embedding_size=8, hidden_size=8, batch_size=2)


pytestmark = pytest.mark.usefixtures("bfloat16_products")


@pytest.mark.parametrize("kind", ["ffnn", "rnn", "gru", "transformer"])
def test_a_network_that_trains_in_bfloat16_stays_so(kind: NeuralKind) -> None:
    assert computable(bfloat16(kind), CPU) == bfloat16(kind)


@pytest.mark.parametrize("kind", NEURAL_KINDS)
def test_a_layer_that_the_processor_does_not_have(kind: NeuralKind, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: Any) -> None:
        raise RuntimeError("could not create a primitive descriptor for the LSTM forward propagation primitive")

    monkeypatch.setattr(networks, "output_loss", missing)
    assert computable(bfloat16(kind), CPU).precision == "float32"


def test_float32_is_not_tried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "in_bfloat16", None)
    settings = NeuralTrainingSettings(kind="lstm")
    assert computable(settings, CPU) is settings


def test_on_a_gpu_recurrent_layers_are_not_rounded_to_float16() -> None:
    assert isinstance(mixed_precision(bfloat16("gru"), CPU), torch.autocast)
    assert isinstance(mixed_precision(bfloat16("gru"), GPU), nullcontext)
