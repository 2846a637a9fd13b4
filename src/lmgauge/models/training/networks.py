"""Models from settings."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from lmgauge.models.network.torch.architectures import (
    FeedForwardConfig,
    FeedForwardForCausalLM,
    RecurrentConfig,
    RecurrentForCausalLM,
)
from lmgauge.models.network.torch.runtime import in_bfloat16
from lmgauge.models.training.settings import RECURRENT, NeuralTrainingSettings
from lmgauge.text.vocabulary import BOS, EOS

_FEW_TOKENS = 8


def build_model(settings: NeuralTrainingSettings, vocabulary_size: int) -> Any:
    """Return a new model with random parameters, from torch's generator as it stands."""
    # The Transformer is the library's GPT-2: of its decoders the one with dropout on embeddings, attention and residuals,
    # without which a text of a million words is learned by heart.
    common: dict[str, Any] = {
        "vocab_size": vocabulary_size,
        "initializer_range": settings.initializer_range,
        "tie_word_embeddings": settings.tie_embeddings,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
    }
    if settings.kind == "transformer":
        sizes: dict[str, Any] = {"n_embd": settings.embedding_size, "n_layer": settings.num_layers, "n_head": settings.heads}
        dropout: dict[str, Any] = dict.fromkeys(("embd_pdrop", "attn_pdrop", "resid_pdrop"), settings.dropout)
        config = GPT2Config(n_positions=settings.steps, n_inner=settings.hidden_size, **sizes, **dropout, **common)
        return GPT2LMHeadModel(config)
    common |= {"embedding_size": settings.embedding_size, "hidden_size": settings.hidden_size, "dropout": settings.dropout}
    if settings.kind == "ffnn":
        return FeedForwardForCausalLM(
            FeedForwardConfig(order=settings.order, direct_connections=settings.direct_connections, **common)
        )
    return RecurrentForCausalLM(
        RecurrentConfig(cell=settings.kind, num_layers=settings.num_layers, nonlinearity=settings.nonlinearity, **common)
    )


def computable(settings: NeuralTrainingSettings, device: torch.device) -> NeuralTrainingSettings:
    """Return the settings, in float32 where such a network does not train in bfloat16 on this device."""
    # settings: of the run; batches have the shape [batch_size, steps].

    def try_update() -> bool:
        model = build_model(settings, _FEW_TOKENS).to(device)
        ids = torch.zeros((settings.batch_size, min(2, settings.steps)), dtype=torch.int64, device=device)
        with mixed_precision(settings, device):
            states = model.base_model(ids).last_hidden_state
        head = model.get_output_embeddings()
        output_loss(states.flatten(0, 1), head.weight, head.bias, ids.flatten(), torch.bfloat16).backward()
        return True

    if settings.precision == "float32" or in_bfloat16(try_update, device):
        return settings
    return replace(settings, precision="float32")


def mixed_precision(settings: NeuralTrainingSettings, device: torch.device) -> AbstractContextManager[Any]:
    """Return the context in which the layers below the output layer compute in training."""
    # settings: precision of 16 or 32 bits, and kind.
    # On a GPU autocast would run recurrent layers in float16, whose range is too small for gradients that nobody scales.
    if settings.precision == "float32" or (device.type == "cuda" and settings.kind in RECURRENT):
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def parameter_count(model: torch.nn.Module) -> int:
    """Return the number of trained values."""
    return sum(parameter.numel() for parameter in model.parameters())


# -- The output layer and its cross-entropy in one step, gradients included -------------------------------------------

# Gradients of a cross-entropy are known as soon as its probabilities are: making them in the forward pass, in the memory of
# the logits, spares autograd's second and third array of [tokens, vocabulary].

IGNORED = -100
_MOST_LOGITS = 1 << 26
# Logits to work on at a time: on a processor, as many as stay in a core's own cache through all passes over them.
_CPU_BLOCK = 1 << 18


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, dtype: torch.dtype
    ) -> Tensor:
        states, matrix = hidden.detach().to(dtype), weight.detach().to(dtype)
        rows = max(1, _MOST_LOGITS // len(weight))
        total = torch.zeros((), dtype=torch.float64, device=hidden.device)
        of_matrix = None
        of_bias = None if bias is None else torch.zeros_like(bias)
        of_states = []
        for part, wanted in zip(states.split(rows), targets.split(rows), strict=True):
            logits = part @ matrix.t()
            total += _to_gradient(logits, None if bias is None else bias.detach(), wanted, of_bias)
            of_states.append(logits @ matrix)
            in_part = (logits.t() @ part).to(weight.dtype)
            of_matrix = in_part if of_matrix is None else of_matrix.add_(in_part)
        ctx.gradients = (torch.cat(of_states).to(hidden.dtype), of_matrix, of_bias)
        return total.float()

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        scaled = tuple(None if gradient is None else gradient.mul_(outer[0]) for gradient in ctx.gradients)
        return (*scaled, None, None)


def _to_gradient(logits: Tensor, bias: Tensor | None, targets: Tensor, of_bias: Tensor | None) -> Tensor:
    # Turn logits [rows, vocabulary] into the gradient of their summed loss, in place; return that loss, float64.
    # The gradient by the bias is added to `of_bias`.
    rows = max(1, _CPU_BLOCK // logits.shape[1]) if logits.device.type == "cpu" else len(logits)
    total = torch.zeros((), dtype=torch.float64, device=logits.device)
    counted, index = (targets != IGNORED)[:, None], targets.clamp_min(0)[:, None]
    for block, is_counted, wanted in zip(logits.split(rows), counted.split(rows), index.split(rows), strict=True):
        work = block.float()  # the block itself where it is float32
        if bias is not None:
            work += bias
        work -= work.amax(1, keepdim=True)
        own = work.gather(1, wanted)
        work.exp_()
        sums = work.sum(1, keepdim=True)
        total += ((sums.log() - own) * is_counted).sum(dtype=torch.float64)
        work *= is_counted / sums
        work.scatter_add_(1, wanted, -is_counted.float())
        if of_bias is not None:
            of_bias += work.sum(0)
        if work.dtype != block.dtype:
            block.copy_(work)
    return total


def output_loss(hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, dtype: torch.dtype) -> Tensor:
    """Return sum of cross-entropies in nats, with gradients for the states, the weight and the bias."""
    # hidden: [n, width], what the output layer takes; weight: [vocabulary, width]; bias: [vocabulary], or None; targets:
    # int64 [n]; -100 is not counted; dtype: of the matrix products; softmax and sums are float32.
    # -> float32 [], the sum over the targets that count.
    apply: Any = _CrossEntropy.apply
    loss: Tensor = apply(hidden, weight, bias, targets, dtype)
    return loss
