"""What is measured: words of a text, or regions that a file names; and how frequent words are in a training text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.text.segments import Segments, is_white_space

if TYPE_CHECKING:
    from lmgauge.evaluation.words.regions import Region
    from lmgauge.text.tokens import Tokenizer

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Units:
    """The units of a block of text, in reading order; none lie in one another."""

    starts: Ints  # starts, ends: int64 [u], bytes in the block's `data`; a unit neither begins nor ends with white space
    ends: Ints
    owners: Ints  # int64 [u], the segment of each, counted from 0 in the block
    between: NDArray[np.bool_]  # bool [bytes], the bytes of `data` that a token may bring along: white space around units
    regions: Sequence[Region] | None = None  # [u], as the units were named; None where they are words

    def __len__(self) -> int:
        return len(self.starts)

    def numbers(self) -> Ints:
        """Return the place of each unit among those of its segment, int64 [u], from 1."""
        # owners [0, 0, 2] -> firsts [0, 0, 2] -> numbers [1, 2, 1]
        firsts = np.searchsorted(self.owners, self.owners)
        return np.arange(len(self)) - firsts + 1


def words_of(block: Segments, tokenizer: Tokenizer) -> Units:
    """Return the words of a block."""
    cut = tokenizer.tokenize(block)
    # +1 where a word begins, -1 behind its end: the running sum is 1 within words.
    edges = np.zeros(len(block.data) + 1, np.int8)
    np.add.at(edges, cut.starts, 1)
    np.add.at(edges, cut.ends, -1)
    between = np.cumsum(edges[:-1], dtype=np.int8) == 0
    return Units(cut.starts, cut.ends, np.repeat(np.arange(len(block)), cut.counts), between)


def at_white_space(block: Segments, units: Units) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which units begin, and which end, where a word does: at white space (ASCII) or at an end of the text."""
    # -> two arrays bool [u].
    # One more at the end, which is also what index -1 finds before the first byte: both ends of the text part words.
    white = np.append(is_white_space(block.data), True)
    first = block.starts if block.given_starts is None else block.given_starts
    begins = (units.starts == first[units.owners]) | white[units.starts - 1]
    return begins, (units.ends == block.ends[units.owners]) | white[units.ends]


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
