"""Which precision a network trains in."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch.nn import functional

from lmgauge.models.training import networks
from lmgauge.models.training import networks as module
from lmgauge.models.training.networks import computable, mixed_precision, output_loss
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


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize("with_bias", [True, False])
def test_loss_and_gradients_are_those_of_autograd(rows: int, with_bias: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_LOGITS", rows * 17)
    monkeypatch.setattr(module, "_CPU_BLOCK", 2 * 17)
    generator = torch.Generator().manual_seed(5)
    hidden, weight, bias = (torch.randn(shape, generator=generator) for shape in ((10, 4), (17, 4), (17,)))
    targets = torch.randint(0, 17, (10,), generator=generator)
    targets[[2, 7]] = -100
    found, expected = [], []
    for results, fused in ((found, True), (expected, False)):
        h, w, b = (tensor.clone().requires_grad_() for tensor in (hidden, weight, bias))
        used = b if with_bias else None
        if fused:
            loss = output_loss(h, w, used, targets, torch.float32)
        else:
            loss = functional.cross_entropy(functional.linear(h, w, used), targets, ignore_index=-100, reduction="sum")
        (loss / 3).backward()
        results += [loss.detach(), h.grad, w.grad] + ([b.grad] if with_bias else [])
    torch.testing.assert_close(found, expected)


def test_bfloat16_is_near() -> None:
    generator = torch.Generator().manual_seed(6)
    hidden, weight = torch.randn(50, 8, generator=generator), torch.randn(30, 8, generator=generator)
    targets = torch.randint(0, 30, (50,), generator=generator)
    exact = output_loss(hidden, weight, None, targets, torch.float32)
    torch.testing.assert_close(output_loss(hidden, weight, None, targets, torch.bfloat16), exact, rtol=0.01, atol=0.0)


def test_hopeless_targets_are_no_nan() -> None:
    hidden = torch.tensor([[100.0]], requires_grad=True)
    weight = torch.tensor([[0.0], [100.0]], requires_grad=True)
    loss = output_loss(hidden, weight, None, torch.tensor([0]), torch.float32)
    loss.backward()
    assert loss.item() == 10_000
    assert weight.grad is not None
    assert bool(torch.isfinite(weight.grad).all())
