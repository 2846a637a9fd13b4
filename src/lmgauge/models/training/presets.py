"""Presets: for each kind of model a small, a medium and a large one, with all settings and the paper they follow."""

# Where a paper leaves a setting open, or trained for weeks on one processor what here takes minutes in batches, the value is
# ours and was chosen on the validation text of the Penn Treebank.

from __future__ import annotations

from typing import Any, Literal, get_args

Preset = Literal["small", "medium", "large"]
PRESET_NAMES: tuple[Preset, ...] = get_args(Preset)

_ZAREMBA = "Zaremba, Sutskever and Vinyals 2014, Recurrent neural network regularization"
_MIKOLOV = "Mikolov et al. 2010, Recurrent neural network based language model"
_MIKOLOV_BPTT = "Mikolov et al. 2011, Extensions of recurrent neural network language model"
_BENGIO = "Bengio et al. 2003, A neural probabilistic language model"
_CHUNG = "Chung et al. 2014, Empirical evaluation of gated recurrent neural networks on sequence modeling"
_VASWANI = "Vaswani et al. 2017, Attention is all you need"
_RADFORD_2018 = "Radford et al. 2018, Improving language understanding by generative pre-training"
_RADFORD_2019 = "Radford et al. 2019, Language models are unsupervised multitask learners"


def _table(common: dict[str, Any], columns: str, *rows: tuple[Any, ...]) -> dict[str, dict[str, Any]]:
    # Three presets of a kind: what they have in common, and a row of values for each.
    names = columns.split()
    return {preset: common | dict(zip(names, row, strict=True)) for preset, row in zip(PRESET_NAMES, rows, strict=True)}


_LSTM = _table(
    {"paper": _ZAREMBA, "num_layers": 2},
    "embedding_size hidden_size dropout initializer_range steps epochs decay decay_after clip_norm",
    (200, 200, 0.0, 0.1, 20, 13, 1 / 2, 4, 5.0),
    (650, 650, 0.5, 0.05, 35, 39, 1 / 1.2, 6, 5.0),
    (1500, 1500, 0.65, 0.04, 35, 55, 1 / 1.15, 14, 10.0),
)
# Chung et al. leave the recipe to RMSProp; Zaremba's with a lower rate, as a gated unit without a cell diverges at his.
_GRU = {preset: values | {"paper": _CHUNG, "learning_rate": 0.5} for preset, values in _LSTM.items()}
_GRU["small"] |= {"dropout": 0.2, "epochs": 9}
# Mikolov halves the rate from the first epoch without improvement on; fixed epochs cost the same on every run.
_RNN = _table(
    {"nonlinearity": "sigmoid", "decay_after": 5, "learning_rate": 1.0},
    "paper embedding_size hidden_size dropout epochs",
    (_MIKOLOV, 200, 200, 0.15, 10),
    (_MIKOLOV_BPTT, 400, 400, 0.3, 10),
    (_MIKOLOV_BPTT, 1000, 1000, 0.5, 20),
)
_ADAM: dict[str, Any] = {"optimizer": "adamw", "sum_over_steps": False, "schedule": "cosine", "clip_norm": 1.0}
# Bengio trained for weeks, a word at a time; AdamW on batches takes minutes.
_FFNN = _table(
    _ADAM | {"paper": _BENGIO, "order": 5, "warmup": 200, "weight_decay": 0.01, "batch_size": 48, "epochs": 8},
    "embedding_size hidden_size dropout learning_rate",
    (100, 200, 0.2, 3e-3),
    (200, 500, 0.4, 1e-3),
    (300, 1000, 0.5, 1e-3),
)
_TRANSFORMER = _table(
    _ADAM | {"tie_embeddings": True, "initializer_range": 0.02, "weight_decay": 0.1},
    "paper embedding_size hidden_size num_layers heads dropout batch_size steps epochs learning_rate warmup",
    (_RADFORD_2018, 256, 1024, 4, 4, 0.3, 16, 64, 12, 1e-3, 500),
    (_VASWANI, 512, 2048, 6, 8, 0.3, 32, 256, 40, 5e-4, 1000),
    (_RADFORD_2019, 768, 3072, 12, 12, 0.1, 32, 1024, 10, 2.5e-4, 2000),
)
PRESETS = {"ffnn": _FFNN, "rnn": _RNN, "lstm": _LSTM, "gru": _GRU, "transformer": _TRANSFORMER}
