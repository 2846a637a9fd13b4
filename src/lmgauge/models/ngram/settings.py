"""The decisions behind an n-gram model: made once, when `lmgauge.train` is called, and recorded in config.json."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from lmgauge.base.choices import NgramContext, NormalizerName, ReservedPolicy, SmoothingKind
from lmgauge.base.declaration import settings
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Bounds
from lmgauge.models.model_settings import VocabularySettings

if TYPE_CHECKING:
    from pathlib import Path

MAX_ORDER = 64
ADDITIVE = frozenset({"mle", "laplace", "lidstone"})
CONTINUATION = frozenset({"kneser-ney", "modified-kneser-ney"})


@dataclass(frozen=True)
class NgramSettings:
    """How an n-gram model was made, as its config.json records it.

    Attributes:
        kind: the smoothing, or `arpa` or `kenlm` for a model read from such a file.
        interpolate: interpolate with lower orders, or only back off to them (good-turing always backs off).
        discount: absolute-discounting: one for all orders, or one for each, 0 to 1; estimated if not given.
        k: lidstone: the amount added to each count.
        cutoffs: drop n-grams that occur at most this often; of order 1, 2, ..., as in 0,0,1; the last is for all higher.
        prune: entropy pruning (Stolcke 1998): threshold of the relative change of perplexity, such as 1e-8.
        context: each line is its own context (sentence), or the whole text is one (stream, the default for neural models).
        eos: count and score the end of each line as a token </s>; without it, line ends are not scored, as in textbooks.
    """

    kind: SmoothingKind | Literal["arpa", "kenlm"]
    interpolate: bool = True
    discount: float | Sequence[float] | None = None
    k: float | None = None
    cutoffs: Sequence[int] = ()
    prune: float | None = None
    context: NgramContext = "sentence"
    reserved: ReservedPolicy = "refuse"
    min_count: int = 1
    vocab_size: int | None = None
    eos: bool = True

    def __post_init__(self) -> None:
        for name in ("discount", "cutoffs"):
            if isinstance(value := getattr(self, name), Sequence):
                object.__setattr__(self, name, tuple(value))

    @property
    def additive(self) -> bool:
        """Return True if the smoothing adds to each count (mle adds nothing) and uses no shorter context."""
        return self.kind in ADDITIVE

    def to_dict(self) -> dict[str, Any]:
        """Return what config.json holds: options that were not used (None, or `eos` as usual) are left out."""
        # NgramSettings("laplace", prune=None).to_dict()["kind"] -> 'laplace'
        values = {f.name: getattr(self, f.name) for f in fields(NgramSettings)}
        return {name: value for name, value in values.items() if value is not None and (name != "eos" or not value)}


@settings
class NgramTrainingSettings(VocabularySettings, NgramSettings):
    """All that is decided before an n-gram model is trained.

    Attributes:
        kind: the smoothing.
        order: length of the longest n-grams; for ffnn the context plus one: 5 if not given.
        normalizer: normalization of the text; ccnet: lower case, no accents, 0 for digits, ASCII punctuation, no
            control characters.
        words: file with the vocabulary, one word per line; from Python also a list of words.

    Example:
        >>> NgramTrainingSettings("kneser-ney", order=5).vocabulary
        'open'
    """

    # What is not in `NgramSettings` is visible in the model itself: its tables, vocabulary and tokenizer.

    heading: ClassVar[str] = "N-gram models"
    kind: SmoothingKind
    order: Annotated[int, Bounds(1, MAX_ORDER)] = 3
    normalizer: NormalizerName | None = None
    words: Sequence[str] | str | os.PathLike[str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        NgramSettings.__post_init__(self)
        read: dict[str, Any] = {}
        if self.normalizer is not None:
            from lmgauge.text.tokenizers import with_normalizer

            read |= {"tokenizer": with_normalizer(self.tokenizer, self.normalizer), "normalizer": None}
        if isinstance(self.words, str | os.PathLike):
            read["words"] = read_word_list(os.fspath(self.words))
        for name, value in read.items():
            object.__setattr__(self, name, value)
        self._check_discount()
        self._check_k()
        self._check_cutoffs()
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
        for value in self.discount if isinstance(self.discount, Sequence) else (self.discount,):
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


def read_word_list(path: str | Path) -> list[str]:
    """Return the words of a file, one per line, as `words` of `lmgauge.train`."""
    from lmgauge.text.documents import Corpus
    from lmgauge.text.vocabulary import SPECIAL_TOKENS

    # Blank lines and special tokens are left out.
    texts = (block.text(i).decode() for block in Corpus.from_files(path, group=None) for i in range(len(block)))
    return [word for text in texts if (word := text.strip()) and word not in SPECIAL_TOKENS]
