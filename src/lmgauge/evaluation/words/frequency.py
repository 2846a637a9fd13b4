"""How frequent words are in a training text, on the Zipf scale."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.words.units import Units, words_of
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.text.tokens import Tokenizer


class WordFrequencies:
    """The counts of words in a text, in lower case and without punctuation at their ends."""

    # text: blocks, read once.

    def __init__(self, text: Iterable[Segments], tokenizer: Tokenizer) -> None:
        self._counts: Counter[str] = Counter()
        for block in text:
            self._counts.update(map(bare, strings_of(block, words_of(block, tokenizer))))
        # van Heuven et al. (2014): log10 of the count, one more, per billion of tokens and types.
        self._scale = 9 - math.log10(max(1, self._counts.total() + len(self._counts)))

    def of(self, words: Iterable[str]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the frequency and the count of words."""
        # -> float64 [n], on the Zipf scale (log10 of occurrences per billion words, each count one more), and int64 [n].
        counts = np.array([self._counts[bare(word)] for word in words], np.int64)
        return np.log10(counts + 1) + self._scale, counts


def bare(word: str) -> str:
    """Return a word in lower case, without what is neither letter nor digit at its ends."""
    # The word itself if nothing stays.
    places = [i for i, character in enumerate(word) if character.isalnum()]
    return word[places[0] : places[-1] + 1].lower() if places else word


def strings_of(block: Segments, units: Units) -> list[str]:
    """Return the text of each unit of a block."""
    data = block.data.tobytes()
    return [data[start:end].decode() for start, end in zip(units.starts.tolist(), units.ends.tolist(), strict=True)]
