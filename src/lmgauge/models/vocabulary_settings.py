"""How a training text becomes tokens, and which of them a model knows: the same for n-grams and networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from lmgauge.choices import ReservedPolicy, VocabularyKind
from lmgauge.declaration import settings
from lmgauge.option_numbers import Count

if TYPE_CHECKING:
    from lmgauge.text.tokens import Tokenizer


@settings
class VocabularySettings:
    """How a training text becomes tokens, and which of them a model knows.

    Attributes:
        tokenizer: what the tokens are; whitespace, treebank, character, byte, icu, icu:<locale>, the path of a
            tokenizer.json or of a SentencePiece .model, or to train N subwords on the text, bpe:N or unigram:N (neural
            models).
        vocabulary: what unseen words are; open: <unk>, which has the mass that smoothing leaves, or a network learns from
            what `min_count` leaves out; closed: impossible (n-gram models); spelled: they are spelled and white space is
            predicted, so that every text has a probability (not for subwords and bytes, which give every text one).
        min_count: words that occur less often become <unk>.
        vocab_size: only this many of the most frequent words stay.
        reserved: a <unk>, <s> or </s> in the text; refuse: stop, escape: an ordinary word, unk: <unk> is the unknown word.

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
