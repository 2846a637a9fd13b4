"""Every setting of a training run, and the rules they keep."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from lmgauge.choices import DEFAULT_SEED, RESERVED_POLICIES, VOCABULARY_KINDS, ReservedPolicy, VocabularyKind
from lmgauge.errors import UsageError
from lmgauge.option_numbers import check_whole

if TYPE_CHECKING:
    import os

    from lmgauge.text.tokens import Tokenizer

NeuralKind = Literal["ffnn", "rnn", "lstm", "gru", "transformer"]
Schedule = Literal["constant", "decay", "halve", "cosine"]
OptimizerName = Literal["sgd", "adamw"]
Precision = Literal["float32", "bfloat16"]
Nonlinearity = Literal["sigmoid", "tanh"]
NEURAL_KINDS: tuple[NeuralKind, ...] = get_args(NeuralKind)
RECURRENT: tuple[NeuralKind, ...] = ("rnn", "lstm", "gru")
CHOICES: dict[str, tuple[str, ...]] = {
    "kind": NEURAL_KINDS,
    "schedule": get_args(Schedule),
    "optimizer": get_args(OptimizerName),
    "precision": get_args(Precision),
    "context": ("stream", "sentence"),
    "nonlinearity": get_args(Nonlinearity),
}
"""Settings that are one of a few words."""

_COUNTED = ("embedding_size", "hidden_size", "num_layers", "order", "heads", "batch_size", "steps", "epochs")
_COUNTED_FROM_ZERO = ("decay_after", "warmup", "patience", "seed")
_SWITCHES = ("direct_connections", "tie_embeddings", "sum_over_steps")
_NUMBERS = ("dropout", "initializer_range", "learning_rate", "weight_decay", "clip_norm", "decay", "improvement")
_MOST = (1 << 32) - 1  # of whole numbers: seeds of torch are made of them by multiplication


@dataclass(frozen=True, kw_only=True)
class NeuralTrainingSettings:
    """What a training run is made of.

    On a processor the settings, the text, the number of threads and torch's version decide every bit of the result.

    Attributes:
        kind: ffnn, rnn, lstm, gru or transformer.
        preset: name of the preset these began as.
        paper: what the preset follows.
        embedding_size: width of a token's vector.
        hidden_size: width of the hidden layers (a transformer's is `embedding_size`; this is its inner layer's).
        num_layers: hidden layers; always 1 for ffnn.
        order: ffnn: a token is predicted from the `order - 1` before it.
        heads: transformer: attention heads.
        nonlinearity: rnn: sigmoid or tanh.
        direct_connections: ffnn: whether the output layer also sees the word vectors.
        tie_embeddings: whether the output layer's weights are the word vectors.
        dropout: share of units dropped in training.
        initializer_range: parameters begin within plus or minus this (transformer: the standard deviation).
        context: stream, one running context, or sentence, each segment from `<s>` anew.
        batch_size: sequences side by side.
        steps: tokens of each in one update: length of back-propagation through time; what a transformer sees at most.
        epochs: passes over the text, at most.
        optimizer: sgd (plain) or adamw.
        learning_rate: at its highest.
        weight_decay: adamw: of matrices, per unit of learning rate.
        sum_over_steps: whether a loss is summed over the steps (mean over sequences), as the recurrent papers do, instead
            of averaged over all tokens.
        clip_norm: gradients are scaled down to this Euclidean norm; 0 leaves them.
        schedule: constant; decay (times `decay` each epoch after `decay_after`); halve (times `decay` each epoch from the
            first without enough improvement on); cosine (to a hundredth, after `warmup` updates).
        decay: factor of the schedules decay and halve.
        decay_after: epochs before the schedule decay begins to act.
        warmup: updates in which the rate rises from zero (cosine).
        improvement: relative fall of the validation perplexity that counts as one.
        patience: epochs without improvement after which training stops (halve: once the rate is falling); 0 never stops.
        precision: of matrix products in training, recurrent layers on a GPU left out; parameters, losses and validation are
            float32 either way. bfloat16 becomes float32, with a note, where the processor has no products for it.
        seed: of parameters, dropout and order.
    """

    kind: NeuralKind
    preset: str = "small"
    paper: str = ""
    embedding_size: int = 200
    hidden_size: int = 200
    num_layers: int = 1
    order: int = 5
    heads: int = 4
    nonlinearity: Nonlinearity = "sigmoid"
    direct_connections: bool = False
    tie_embeddings: bool = False
    dropout: float = 0.0
    initializer_range: float = 0.1
    context: Literal["stream", "sentence"] = "stream"
    batch_size: int = 20
    steps: int = 20
    epochs: int = 13
    optimizer: OptimizerName = "sgd"
    learning_rate: float = 1.0
    weight_decay: float = 0.0
    sum_over_steps: bool = True
    clip_norm: float = 5.0
    schedule: Schedule = "decay"
    decay: float = 0.5
    decay_after: int = 4
    warmup: int = 0
    improvement: float = 0.003
    patience: int = 0
    precision: Precision = "float32"
    seed: int = DEFAULT_SEED

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise UsageError(f"{_option(name)} {getattr(self, name)!r}: choose {', '.join(choices)}")
        for name in _COUNTED:
            check_whole(_option(name), getattr(self, name), 1, _MOST)
        for name in _COUNTED_FROM_ZERO:
            check_whole(_option(name), getattr(self, name), 0, _MOST)
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{_option(name)} {getattr(self, name)!r}: give True or False")
        for name in _NUMBERS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise UsageError(f"{_option(name)} {value!r}: give a finite number")
        self._check_ranges()
        self._check_architecture()

    def _check_ranges(self) -> None:
        rules = {
            "dropout": (0 <= self.dropout < 1, "0 or more and less than 1"),
            "learning_rate": (self.learning_rate > 0, "above 0"),
            "decay": (0 < self.decay <= 1, "above 0 and at most 1"),
            "initializer_range": (self.initializer_range > 0, "above 0, as parameters that begin alike stay alike"),
            "clip_norm": (self.clip_norm >= 0, "0 or more"),
            "weight_decay": (self.weight_decay >= 0, "0 or more"),
            "improvement": (0 <= self.improvement < 1, "0 or more and less than 1"),
        }
        for name, (holds, rule) in rules.items():
            if not holds:
                raise UsageError(f"{_option(name)} must be {rule}; got {getattr(self, name)}")

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

    def differences(self, other: dict[str, Any]) -> list[str]:
        """Return what differs from settings that were saved, in words."""
        here = self.to_dict()
        names = [field.name for field in fields(self)] + [name for name in other if name not in here]
        return [
            f"{_option(name)} {other.get(name)!r} then, {here.get(name)!r} now"
            for name in names
            if other.get(name) != here.get(name)
        ]


class SettingsChanges(TypedDict, total=False):
    """The fields of `NeuralTrainingSettings` that may differ from a preset's, as `train_neural` takes them by name."""

    embedding_size: int | None
    hidden_size: int | None
    num_layers: int | None
    order: int | None
    heads: int | None
    nonlinearity: Nonlinearity | None
    direct_connections: bool | None
    tie_embeddings: bool | None
    dropout: float | None
    initializer_range: float | None
    context: Literal["stream", "sentence"] | None
    batch_size: int | None
    steps: int | None
    epochs: int | None
    optimizer: OptimizerName | None
    learning_rate: float | None
    weight_decay: float | None
    sum_over_steps: bool | None
    clip_norm: float | None
    schedule: Schedule | None
    decay: float | None
    decay_after: int | None
    warmup: int | None
    improvement: float | None
    patience: int | None
    precision: Precision | None
    seed: int | None


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How a training run reads its text and goes: all that is decided beside the network and its recipe.

    Attributes:
        tokenizer: as `lmgauge.train`, or bpe:N or unigram:N to train N subwords on the text.
        vocabulary: open: unseen words are `<unk>`; spelled: they are spelled, and white space is predicted.
        min_count: tokens that occur less often become `<unk>`.
        vocab_size: only this number of the most frequent tokens stays.
        reserved: what a `<unk>`, `<s>` or `</s>` in the text means: refuse, escape or unk.
        resume: resume a run that was stopped; begin where there is none.
        checkpoint_every: updates from one checkpoint to the next, besides those after each epoch; 0 for none.
        device: such as cpu or cuda; a GPU where there is one. Of several processes each has its own GPU.
        threads: of the processor; if None all cores, but one for a recurrent model that is narrow.
        tensorboard: folder to write figures for TensorBoard to.
    """

    tokenizer: str | Tokenizer = "whitespace"
    vocabulary: VocabularyKind = "open"
    min_count: int = 1
    vocab_size: int | None = None
    reserved: ReservedPolicy = "refuse"
    resume: bool = False
    checkpoint_every: int = 500
    device: str | None = None
    threads: int | None = None
    tensorboard: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.reserved not in RESERVED_POLICIES:
            raise UsageError(f"reserved {self.reserved!r}: choose {', '.join(RESERVED_POLICIES)}")
        if self.vocabulary not in VOCABULARY_KINDS:
            raise UsageError(f"vocabulary {self.vocabulary!r}: choose {', '.join(VOCABULARY_KINDS)}")
        if self.checkpoint_every < 0:
            raise UsageError(
                f"checkpoint-every {self.checkpoint_every}: give a number of updates, or 0 for each epoch's end only"
            )


def _option(name: str) -> str:
    return name.replace("_", "-")
