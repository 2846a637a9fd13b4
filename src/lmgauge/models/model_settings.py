"""What may be chosen of vocabularies, caches and spellers; light, as signatures are read before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from lmgauge.base.choices import ReservedPolicy, VocabularyKind
from lmgauge.base.declaration import settings
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Bounds, Count, Part

if TYPE_CHECKING:
    from lmgauge.text.tokens import Tokenizer


@settings
class VocabularySettings:
    """How a training text becomes tokens, and which of them a model knows.

    Attributes:
        tokenizer: what the tokens are; whitespace, treebank, character, byte, icu, icu:<locale>, the path of a
            tokenizer.json or of a SentencePiece .model, or to train N subwords on the text, bpe:N or unigram:N (neural
            models).
        vocabulary: what unseen words become; open: <unk>, with the probability that smoothing leaves for it, or that a
            network learns from the words `min_count` leaves out; closed: impossible (n-gram models); spelled: they are
            spelled and white space is predicted, so that every text has a probability (not for subwords and bytes, which
            give every text one).
        min_count: words that occur less often become <unk>.
        vocab_size: only this many of the most frequent words stay.
        reserved: what <unk>, <s> and </s> in a text do; refuse: stop, escape: ordinary words, unk: <unk> is the unknown one.

    Example:
        >>> VocabularySettings(min_count=2).vocabulary
        'open'
    """

    heading: ClassVar[str] = "Vocabulary"
    tokenizer: str | Tokenizer = "whitespace"
    vocabulary: VocabularyKind = "open"
    min_count: Count = 1
    vocab_size: Count | None = None
    reserved: ReservedPolicy = "refuse"


_WINDOW = 500


@settings
class CacheSettings:
    """What a cache remembers.

    Attributes:
        order: how many words in a row are remembered; 1: single words, 2: also pairs; up to 8.
        window: how many of the last events count; from Python None: all.
        decay: instead of a window: an event followed by i others counts decay to the power of i, such as 0.998.

    Example:
        >>> CacheSettings(order=1).decay is None
        True
    """

    heading: ClassVar[str] = "Memory"
    order: Annotated[int, Bounds(1, 8)] = 2
    window: Count | None = _WINDOW
    decay: Part | None = None

    def __post_init__(self) -> None:
        if self.decay is not None and self.window not in (None, _WINDOW):
            raise UsageError("a cache has a window or a decay, not both")
        if self.decay is not None:
            object.__setattr__(self, "window", None)

    @property
    def label(self) -> str:
        """In a word, for signatures: `cache500`, `cache2-decay0.998`."""
        memory = f"decay{self.decay:g}" if self.decay is not None else "" if self.window is None else str(self.window)
        return "cache" + (f"{self.order}-" if self.order > 1 else "") + memory


@settings
class SpellerSettings:
    """How a speller is learned.

    Attributes:
        order: characters of its longest n-grams.
        max_count: learn from rare words only: those that occur at most this often; from all, each once, if not given.

    Example:
        >>> SpellerSettings(order=6).max_count is None
        True
    """

    heading: ClassVar[str] = "Speller"
    order: Count = 8
    max_count: Count | None = None
