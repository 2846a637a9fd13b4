"""The fused output layer: the loss and the gradients of `torch.nn.functional.cross_entropy`."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from lmgauge.models.training import loss as module
from lmgauge.models.training.loss import output_loss


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
