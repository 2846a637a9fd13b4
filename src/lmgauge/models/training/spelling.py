"""A speller beside a network in training: what is refused before hours are spent, and what goes into its folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmgauge.choices import VocabularyKind
from lmgauge.errors import UsageError
from lmgauge.models.spelling.learn import learn_parts, refuse_once
from lmgauge.models.spelling.speller import Spelling
from lmgauge.models.spelling.storage import write_spelling
from lmgauge.models.spelling.whitespace_model import SeparatorModel
from lmgauge.text.documents import Corpus
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class NetworkSpelling:
    """How the unseen words of a network are spelled, which is decided before it is trained."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    spelling: Spelling | None  # of unseen words; None for a network of characters
    separators: SeparatorModel | None  # between words; None for a network of characters

    def learned(self) -> dict[str, Any]:
        """Return what was learned, as `SpelledModel.learned` does."""
        if self.spelling is None or self.separators is None:
            return {}
        return {"speller": self.spelling.summary(), "separators": self.separators.summary()}

    def write(self, folder: Path) -> None:
        """Write the folder `spelling` into that of the network."""
        write_spelling(folder, self.tokenizer, self.vocabulary, self.spelling, self.separators)


def refuse_unlearnable(vocabulary: VocabularyKind, tokenizer: str | Tokenizer, texts: Corpus) -> None:
    """Refuse what no network can be trained to, before its text is read."""
    if vocabulary == "closed":
        raise UsageError("vocabulary closed is for n-gram models: a network has an output for unseen words; leave it out")
    if vocabulary == "spelled":
        unit = tokenizer if isinstance(tokenizer, str) else tokenizer.unit
        if unit.partition(":")[0] in _WHOLE:
            raise UsageError(whole_already(unit))
        refuse_once(texts)


_WHOLE = ("bpe", "unigram", "byte", "subword")


def whole_already(tokenizer: str) -> str:
    """Return why a tokenizer needs no speller."""
    return (
        f"tokenizer {tokenizer}: subwords and bytes give every text a probability as they are, so that no word is left to "
        "be spelled; leave out the vocabulary, or train on words"
    )


def learn_network_spelling(
    texts: Corpus, tokenizer: Tokenizer, vocabulary: Vocabulary, *, threads: int, progress: Callable[[str], None]
) -> NetworkSpelling:
    """Learn from the training text how words that a network does not know are spelled."""
    if tokenizer.unit not in ("word", "character"):
        raise UsageError(whole_already(tokenizer.name))
    spelling, separators = learn_parts(tokenizer, vocabulary, texts, threads=threads, progress=progress)
    return NetworkSpelling(tokenizer, vocabulary, spelling, separators)
