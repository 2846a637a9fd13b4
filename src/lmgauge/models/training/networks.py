"""Models from settings."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from lmgauge.models.network.torch.architectures import (
    FeedForwardConfig,
    FeedForwardForCausalLM,
    RecurrentConfig,
    RecurrentForCausalLM,
)
from lmgauge.models.network.torch.precision import in_bfloat16
from lmgauge.models.training.loss import output_loss
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
    common |= {
        "embedding_size": settings.embedding_size,
        "hidden_size": settings.hidden_size,
        "dropout": settings.dropout,
    }
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
