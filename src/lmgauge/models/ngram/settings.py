"""The decisions behind an n-gram model: made once, when `lmgauge.train` is called, and recorded in config.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from lmgauge.choices import (
    NGRAM_CONTEXTS,
    RESERVED_POLICIES,
    SMOOTHING_KINDS,
    VOCABULARY_KINDS,
    NgramContext,
    ReservedPolicy,
    SmoothingKind,
    VocabularyKind,
)
from lmgauge.errors import UsageError
from lmgauge.models.ngram.hash_table import MAX_ORDER
from lmgauge.option_numbers import check_whole
from lmgauge.text.tokens import Tokenizer

ADDITIVE = frozenset({"mle", "laplace", "lidstone"})
CONTINUATION = frozenset({"kneser-ney", "modified-kneser-ney"})


@dataclass(frozen=True)
class NgramSettings:
    """How an n-gram model was made, as its config.json records it.

    Attributes:
        kind: the smoothing, or `arpa` or `kenlm` for a model read from such a file.
        interpolate: True mixes lower orders in everywhere; False only backs off to them.
        discount: absolute discounting: the discount, for all orders or for each; None: estimated.
        k: Lidstone: the amount added to each count.
        cutoffs: n-grams of order i that occur at most cutoffs[i - 1] times are dropped; the last is for all higher orders.
        prune: threshold of entropy pruning; None: not pruned.
        context: each sentence on its own, or one running context.
        reserved: the meaning of a reserved token in the text.
        min_count: words that occur less often became `<unk>`.
        vocab_size: at most this many words stayed.
        eos: False leaves `</s>` out: the end of a line is neither counted nor scored.
    """

    kind: SmoothingKind | Literal["arpa", "kenlm"]
    interpolate: bool = True
    discount: float | tuple[float, ...] | None = None
    k: float | None = None
    cutoffs: tuple[int, ...] = ()
    prune: float | None = None
    context: NgramContext = "sentence"
    reserved: ReservedPolicy = "refuse"
    min_count: int = 1
    vocab_size: int | None = None
    eos: bool = True

    @property
    def additive(self) -> bool:
        """Return True if the smoothing adds to each count (mle adds nothing) and uses no shorter context."""
        return self.kind in ADDITIVE

    def to_dict(self) -> dict[str, Any]:
        """Return what config.json holds: options that were not used (None, or `eos` as usual) are left out."""
        # NgramSettings("laplace", prune=None).to_dict()["kind"] -> 'laplace'
        values = {f.name: getattr(self, f.name) for f in fields(NgramSettings)}
        return {name: value for name, value in values.items() if value is not None and (name != "eos" or not value)}


@dataclass(frozen=True)
class NgramTrainingSettings(NgramSettings):
    """All that is decided before an n-gram model is trained; see `lmgauge.train` for the meaning of each."""

    # What is not in `NgramSettings` is visible in the model itself: its tables, vocabulary and tokenizer.

    order: int = 3
    tokenizer: str | Tokenizer = "whitespace"
    vocabulary: VocabularyKind = "open"
    words: Sequence[str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in SMOOTHING_KINDS:
            raise UsageError(f"smoothing {self.kind!r} is not known; choose one of {', '.join(SMOOTHING_KINDS)}")
        for name, choices in [
            ("vocabulary", VOCABULARY_KINDS),
            ("context", NGRAM_CONTEXTS),
            ("reserved", RESERVED_POLICIES),
        ]:
            if getattr(self, name) not in choices:
                raise UsageError(f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}")
        self._check_discount()
        self._check_k()
        self._check_cutoffs()
        check_whole("order", self.order, 1, MAX_ORDER)
        check_whole("min-count", self.min_count, 1)
        if isinstance(self.words, str):
            raise UsageError("words must be a list of words; got one string")
        if self.words is not None and (self.min_count != 1 or self.vocab_size is not None):
            raise UsageError("a list of words is the whole vocabulary; leave out min-count and vocab-size")
        if self.prune is not None and (not self.prune > 0 or self.additive):
            raise UsageError("prune takes a threshold above 0, and a smoothing that backs off to shorter contexts")
        if self.kind == "good-turing" and self.interpolate:
            object.__setattr__(self, "interpolate", False)  # it always backs off

    def _check_discount(self) -> None:
        if self.discount is None:
            return
        if self.kind != "absolute-discounting":
            raise UsageError(f"--discount belongs to absolute-discounting; {self.kind} has its own")
        if self.discount == ():
            raise UsageError("discount must be one number for all orders, or one for each; got none")
        for value in np.atleast_1d(np.array(self.discount, np.float64)):
            if not 0 <= value <= 1:
                raise UsageError(
                    f"discount {value:g} is out of range: outside 0 to 1, probabilities or weights would be negative"
                )
            if value == 1 and not self.interpolate:
                raise UsageError("discount 1 would leave nothing to n-grams seen once; choose a smaller one, or interpolate")

    def _check_k(self) -> None:
        if self.kind == "lidstone" and self.k is None:
            raise UsageError("lidstone needs --k, the amount added to each count")
        if self.kind != "lidstone" and self.k is not None:
            raise UsageError(f"--k belongs to lidstone, not to {self.kind}")
        if self.k is not None and not (1e-12 <= self.k <= 1e12):
            raise UsageError(
                f"k {self.k:g} is out of range: lidstone adds between 1e-12 and 1e12 to each count (mle adds nothing)"
            )

    def _check_cutoffs(self) -> None:
        if any(not 0 <= c < 2**32 for c in self.cutoffs) or list(self.cutoffs) != sorted(self.cutoffs):
            raise UsageError(
                f"cutoffs {self.cutoffs}: they must be counts from 0, not falling from order to order, as an n-gram needs "
                "its parts"
            )
        if self.cutoffs and self.cutoffs[0] != 0:
            raise UsageError("the first cut-off (order 1) must be 0; --min-count leaves out rare words")
        if any(self.cutoffs) and self.additive:
            raise UsageError(
                f"{self.kind} gives dropped n-grams no probability to fall back on; cut-offs need another smoothing"
            )

    @property
    def added(self) -> float:
        """Return the amount that additive smoothing adds to each count: 0 for mle, 1 for laplace, k for lidstone."""
        return {"mle": 0.0, "laplace": 1.0}.get(self.kind, self.k or 0.0)

    def recorded(self) -> NgramSettings:
        """Return the part that a trained model records; pruning records itself."""
        values = {f.name: getattr(self, f.name) for f in fields(NgramSettings)}
        return NgramSettings(**(values | {"prune": None}))


@dataclass(frozen=True)
class TrainingRecord:
    """What training found out, recorded in config.json beside the settings."""

    discounts: tuple[tuple[float, ...], ...] = ()  # D(0), D(1), ... of each order from 1; the last is for all higher counts.
    # the text: its sha256, and the numbers of segments, events and bytes
    training: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # sentences that a user should read, such as fallbacks taken
