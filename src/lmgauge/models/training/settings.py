"""Every setting of a training run, and the rules they keep."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Annotated, Any, ClassVar, Literal, get_args

from lmgauge.base.choices import DEFAULT_SEED
from lmgauge.base.declaration import settings, settings_options
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Bounds, Count, Natural, NotNegative, Positive
from lmgauge.models.model_settings import VocabularySettings

NeuralKind = Literal["ffnn", "rnn", "lstm", "gru", "transformer"]
Schedule = Literal["constant", "decay", "cosine"]
OptimizerName = Literal["sgd", "adamw"]
Precision = Literal["float32", "bfloat16"]
Nonlinearity = Literal["sigmoid", "tanh"]
NEURAL_KINDS: tuple[NeuralKind, ...] = get_args(NeuralKind)
RECURRENT: tuple[NeuralKind, ...] = ("rnn", "lstm", "gru")
_ONLY_FOR: dict[str, tuple[NeuralKind, ...]] = {
    "order": ("ffnn",),
    "num_layers": (*RECURRENT, "transformer"),
    "heads": ("transformer",),
    "nonlinearity": ("rnn",),
    "direct_connections": ("ffnn",),
}
_MOST = (1 << 32) - 1  # of whole numbers: seeds of torch are made of them by multiplication
_Counted = Annotated[int, Bounds(1, _MOST)]
_FromZero = Annotated[int, Bounds(0, _MOST)]
_BelowOne = Annotated[float, Bounds(0, 1, open_most=True)]


@settings
class NeuralTrainingSettings:
    """What a training run is made of.

    On a processor the settings, the text, the number of threads and torch's version decide every bit of the result.

    Attributes:
        kind: ffnn, rnn, lstm, gru or transformer.
        preset: sizes and recipe of a paper; other options override them.
        paper: what the preset follows.
        embedding_size: width of the word vectors.
        hidden_size: width of hidden layers; for a transformer, of its inner layer.
        num_layers: number of hidden layers.
        order: ffnn: a token is predicted from the `order - 1` before it.
        heads: transformer: number of attention heads.
        nonlinearity: rnn: nonlinearity of the hidden layer.
        direct_connections: ffnn: also connect the word vectors to the output.
        tie_embeddings: the output layer's weights are the word vectors.
        dropout: share of units dropped in training.
        initializer_range: parameters begin within plus or minus this (transformer: the standard deviation).
        context: stream, one running context, or sentence, each segment from `<s>` anew.
        batch_size: sequences in a batch.
        steps: tokens per sequence in one update; the length of back-propagation through time, and the context of a
            transformer.
        epochs: passes over the text, at most.
        optimizer: plain SGD, or AdamW.
        learning_rate: learning rate at its highest.
        weight_decay: weight decay of AdamW; of matrices, per unit of learning rate.
        sum_over_steps: whether a loss is summed over the steps (mean over sequences), as the recurrent papers do, instead of
            averaged over all tokens.
        clip_norm: longest gradient, as a Euclidean norm; 0: no limit.
        schedule: how the learning rate falls; constant: not at all; decay (times `decay` each epoch after `decay_after`);
            cosine (to a hundredth, after `warmup` updates).
        decay: factor of the learning rate in each epoch in which it falls (decay).
        decay_after: epochs before the learning rate falls (decay).
        warmup: updates in which the learning rate rises from 0 (cosine).
        patience: epochs without a lower validation perplexity before stopping; 0: never.
        precision: precision of matrix products in training; recurrent layers on a GPU left out; parameters, losses and
            validation are float32 either way. bfloat16 becomes float32, with a note, where the processor has no products for
            it.
        seed: same seed, same model; for parameters, dropout and order.

    Example:
        >>> NeuralTrainingSettings("lstm", hidden_size=64).preset
        'small'
    """

    heading: ClassVar[str] = "Neural models"
    kind: NeuralKind
    preset: Preset = "small"
    paper: str = ""
    embedding_size: _Counted = 200
    hidden_size: _Counted = 200
    num_layers: _Counted = 1
    order: _Counted = 5
    heads: _Counted = 4
    nonlinearity: Nonlinearity = "sigmoid"
    direct_connections: bool = False
    tie_embeddings: bool = False
    dropout: _BelowOne = 0.0
    initializer_range: Positive = 0.1
    context: Literal["stream", "sentence"] = "stream"
    batch_size: _Counted = 20
    steps: _Counted = 20
    epochs: _Counted = 13
    optimizer: OptimizerName = "sgd"
    learning_rate: Positive = 1.0
    weight_decay: NotNegative = 0.0
    sum_over_steps: bool = True
    clip_norm: NotNegative = 5.0
    schedule: Schedule = "decay"
    decay: Annotated[float, Bounds(0, 1, open_least=True)] = 0.5
    decay_after: _FromZero = 4
    warmup: _FromZero = 0
    patience: _FromZero = 0
    precision: Precision = "float32"
    seed: _FromZero = DEFAULT_SEED

    @classmethod
    def of_preset(cls, kind: NeuralKind, preset: Preset = "small", **changes: Any) -> NeuralTrainingSettings:
        """Return what a preset of a kind sets, with changes where they are not None."""
        for name, kinds in _ONLY_FOR.items():
            if changes.get(name) not in (None, getattr(cls, name)) and kind not in kinds:
                also = "n-gram models and " if name == "order" else ""
                raise UsageError(
                    f"{_option(name).removeprefix('num-')} is for {also}{', '.join(kinds)}; {kind} does not take it"
                )
        return preset_settings(kind, preset, **changes)

    def __post_init__(self) -> None:
        for option in settings_options(type(self)):  # before they are compared
            option.check(getattr(self, option.name))
            if option.kinds == (bool,) and not isinstance(getattr(self, option.name), bool):
                raise UsageError(f"{_option(option.name)} must be True or False; got {getattr(self, option.name)!r}")
        self._check_architecture()

    def _check_architecture(self) -> None:
        if self.kind == "ffnn" and self.order < 2:
            raise UsageError(f"order {self.order}: a feed-forward model predicts from at least one token; give 2 or more")
        if self.kind == "transformer" and self.embedding_size % self.heads:
            raise UsageError(f"embedding-size must be a multiple of heads ({self.heads}); got {self.embedding_size}")
        same_width = self.embedding_size == self.hidden_size and not self.direct_connections
        if self.tie_embeddings and self.kind != "transformer" and not same_width:
            raise UsageError(
                "tied embeddings need an output layer as wide as the word vectors: give embedding-size and hidden-size the "
                "same value, and no direct connections"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return all settings by name, as JSON values."""
        return asdict(self)


def preset_settings(kind: NeuralKind, preset: Preset = "small", **changes: Any) -> NeuralTrainingSettings:
    """Return the settings of a preset, such as its tokens per update, some of them changed."""
    if kind not in NEURAL_KINDS:
        raise UsageError(f"kind {kind!r}: choose {', '.join(NEURAL_KINDS)}")
    if preset not in PRESET_NAMES:
        raise UsageError(f"preset {preset!r}: choose {', '.join(PRESET_NAMES)}")
    unknown = sorted(set(changes) - {field.name for field in fields(NeuralTrainingSettings)})
    if unknown:
        choices = ", ".join(field.name for field in fields(NeuralTrainingSettings))
        raise UsageError(f"{', '.join(unknown)}: no such setting of neural training; choose from {choices}")
    settings = NeuralTrainingSettings(kind=kind, preset=preset, **PRESETS[kind][preset])
    changed: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    return replace(settings, **changed)


@settings
class RunSettings(VocabularySettings):
    """How a training run of a network goes: all that is decided beside the network and its recipe.

    Attributes:
        resume: resume a run that was stopped; begin where there is none.
        checkpoint_every: updates from one checkpoint to the next, besides those after each epoch; 0 for none.
        device: where to compute; such as cpu, cuda or cuda:1; a GPU if there is one.
        threads: of the processor; all cores if not given, but one for a recurrent model that is narrow.

    Example:
        >>> RunSettings(resume=True).checkpoint_every
        500
    """

    heading: ClassVar[str] = "Runs of neural models"
    resume: bool = False
    checkpoint_every: Natural = 500
    device: str | None = None
    threads: Count | None = None


def _option(name: str) -> str:
    return name.replace("_", "-")


# -- Presets: for each kind of model a small, a medium and a large one, with all settings and the paper they follow ---

# Where a paper leaves a setting open, or trained for weeks on one processor what here takes minutes in batches, the value is
# ours and was chosen on the validation text of the Penn Treebank.

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
