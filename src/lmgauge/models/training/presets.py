"""Presets: for each kind of model a small, a medium and a large one, with all settings and the paper they follow.

Where a paper leaves a setting open, or trained for weeks on one processor what here takes minutes in batches, the value is
ours and was chosen on the validation text of the Penn Treebank.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from lmgauge.errors import UsageError
from lmgauge.models.training.settings import NEURAL_KINDS, NeuralKind, NeuralTrainingSettings

PRESET_NAMES = ("small", "medium", "large")

_ZAREMBA = "Zaremba, Sutskever and Vinyals 2014, Recurrent neural network regularization"
_MIKOLOV = "Mikolov et al. 2010, Recurrent neural network based language model"
_MIKOLOV_BPTT = "Mikolov et al. 2011, Extensions of recurrent neural network language model"
_BENGIO = "Bengio et al. 2003, A neural probabilistic language model"
_CHUNG = "Chung et al. 2014, Empirical evaluation of gated recurrent neural networks on sequence modeling"
_VASWANI = "Vaswani et al. 2017, Attention is all you need"
_RADFORD_2018 = "Radford et al. 2018, Improving language understanding by generative pre-training"
_RADFORD_2019 = "Radford et al. 2019, Language models are unsupervised multitask learners"

_LSTM: dict[str, dict[str, Any]] = {
    "small": {"paper": _ZAREMBA, "embedding_size": 200, "hidden_size": 200, "num_layers": 2, "initializer_range": 0.1},
    "medium": {
        "paper": _ZAREMBA,
        "embedding_size": 650,
        "hidden_size": 650,
        "num_layers": 2,
        "dropout": 0.5,
        "initializer_range": 0.05,
        "steps": 35,
        "epochs": 39,
        "decay": 1 / 1.2,
        "decay_after": 6,
    },
    "large": {
        "paper": _ZAREMBA,
        "embedding_size": 1500,
        "hidden_size": 1500,
        "num_layers": 2,
        "dropout": 0.65,
        "initializer_range": 0.04,
        "steps": 35,
        "epochs": 55,
        "decay": 1 / 1.15,
        "decay_after": 14,
        "clip_norm": 10.0,
    },
}
# Chung et al. leave the recipe to RMSProp; Zaremba's with a lower rate, as a gated unit without a cell diverges at his.
_GATED: dict[str, Any] = {"paper": _CHUNG, "num_layers": 2, "learning_rate": 0.5, "epochs": 9}
_GRU: dict[str, dict[str, Any]] = {
    "small": {**_GATED, "embedding_size": 200, "hidden_size": 200, "dropout": 0.2},
    "medium": {**_LSTM["medium"], **_GATED, "epochs": 39, "decay": 1 / 1.2},
    "large": {**_LSTM["large"], **_GATED, "epochs": 55, "decay": 1 / 1.15},
}
# Mikolov halves the rate from the first epoch without improvement on; fixed epochs cost the same on every run.
_ELMAN: dict[str, Any] = {"nonlinearity": "sigmoid", "epochs": 10, "decay_after": 5, "learning_rate": 1.0}
_RNN: dict[str, dict[str, Any]] = {
    "small": {**_ELMAN, "paper": _MIKOLOV, "embedding_size": 200, "hidden_size": 200, "dropout": 0.15},
    "medium": {**_ELMAN, "paper": _MIKOLOV_BPTT, "embedding_size": 400, "hidden_size": 400, "dropout": 0.3},
    "large": {**_ELMAN, "paper": _MIKOLOV_BPTT, "embedding_size": 1000, "hidden_size": 1000, "dropout": 0.5, "epochs": 20},
}
# Bengio trained for weeks, a word at a time; AdamW on batches takes minutes.
_FEED_FORWARD: dict[str, Any] = {
    "paper": _BENGIO,
    "order": 5,
    "optimizer": "adamw",
    "sum_over_steps": False,
    "schedule": "cosine",
    "warmup": 200,
    "weight_decay": 0.01,
    "clip_norm": 1.0,
    "batch_size": 48,
    "epochs": 8,
}
_FFNN: dict[str, dict[str, Any]] = {
    "small": {**_FEED_FORWARD, "embedding_size": 100, "hidden_size": 200, "dropout": 0.2, "learning_rate": 3e-3},
    "medium": {**_FEED_FORWARD, "embedding_size": 200, "hidden_size": 500, "dropout": 0.4, "learning_rate": 1e-3},
    "large": {**_FEED_FORWARD, "embedding_size": 300, "hidden_size": 1000, "dropout": 0.5, "learning_rate": 1e-3},
}
_ATTENTION: dict[str, Any] = {
    "optimizer": "adamw",
    "sum_over_steps": False,
    "tie_embeddings": True,
    "initializer_range": 0.02,
    "schedule": "cosine",
    "clip_norm": 1.0,
    "weight_decay": 0.1,
}
_TRANSFORMER: dict[str, dict[str, Any]] = {
    "small": {
        **_ATTENTION,
        "paper": _RADFORD_2018,
        "embedding_size": 256,
        "hidden_size": 1024,
        "num_layers": 4,
        "heads": 4,
        "dropout": 0.3,
        "batch_size": 16,
        "steps": 64,
        "epochs": 12,
        "learning_rate": 1e-3,
        "warmup": 500,
    },
    "medium": {
        **_ATTENTION,
        "paper": _VASWANI,
        "embedding_size": 512,
        "hidden_size": 2048,
        "num_layers": 6,
        "heads": 8,
        "dropout": 0.3,
        "batch_size": 32,
        "steps": 256,
        "epochs": 40,
        "learning_rate": 5e-4,
        "warmup": 1000,
    },
    "large": {
        **_ATTENTION,
        "paper": _RADFORD_2019,
        "embedding_size": 768,
        "hidden_size": 3072,
        "num_layers": 12,
        "heads": 12,
        "dropout": 0.1,
        "batch_size": 32,
        "steps": 1024,
        "epochs": 10,
        "learning_rate": 2.5e-4,
        "warmup": 2000,
    },
}
_PRESETS = {"ffnn": _FFNN, "rnn": _RNN, "lstm": _LSTM, "gru": _GRU, "transformer": _TRANSFORMER}


def preset_settings(kind: NeuralKind, preset: str = "small", **changes: Any) -> NeuralTrainingSettings:
    """Return the settings of a preset, some of them changed.

    Args:
        kind: ffnn, rnn, lstm, gru or transformer.
        preset: small, medium or large.
        changes: fields of `NeuralTrainingSettings`; None leaves the preset's value.

    Raises:
        UsageError: no such kind, preset or field, or a value out of range.

    Example:
        >>> preset_settings("lstm", "medium").hidden_size
        650
    """
    if kind not in NEURAL_KINDS:
        raise UsageError(f"kind {kind!r}: choose {', '.join(NEURAL_KINDS)}")
    if preset not in PRESET_NAMES:
        raise UsageError(f"preset {preset!r}: choose {', '.join(PRESET_NAMES)}")
    unknown = sorted(set(changes) - {field.name for field in fields(NeuralTrainingSettings)})
    if unknown:
        raise UsageError(f"{', '.join(unknown)}: no such setting of neural training")
    settings = NeuralTrainingSettings(kind=kind, preset=preset, **_PRESETS[kind][preset])
    return replace(settings, **{name: value for name, value in changes.items() if value is not None})
