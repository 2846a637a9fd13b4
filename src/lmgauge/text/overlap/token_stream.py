"""Text as one stream of tokens that runs on across line ends, with the place of each token in its file."""

# Another edition of a text breaks its lines elsewhere, so runs of tokens are followed across the lines of a text file; they
# end where a file, a record or a document ends.

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import OverlapUnit
from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.encoding import encode
from lmgauge.text.overlap.folding import fold
from lmgauge.text.segments import is_character_start, is_white_space
from lmgauge.text.tokenizers import CharacterTokenizer, WhitespaceTokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import EOS, UNK, Vocabulary, VocabularyBuilder

# The characters that Python's str.isspace knows; all are below this one.
_SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


@dataclass(frozen=True)
class EncodedBlock:
    """A block of text as tokens."""

    text: Segments  # the segments as compared, folded if asked for; the bytes stand where they stood
    ids: NDArray[np.uint32]  # uint32 [tokens], each segment closed by `EOS`; white space is none of them
    span_ends: NDArray[np.int64]  # int64 [tokens], one past the last byte of each token in its segment
    unit: str

    @cached_property
    def stream(self) -> NDArray[np.uint32]:
        """Return uint32 [n]: the ids without line ends; where a record ends, `UNK`, which no test has."""
        if self.text.terminator:
            words: NDArray[np.uint32] = self.ids[self.ids != EOS]
            return words
        return np.where(self.ids == EOS, np.uint32(UNK), self.ids)

    def places(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where tokens begin."""
        # positions: int64 [n], positions in `stream`.
        # -> int64 [n] each: index of the segment in the block, and byte in it.
        tokens = np.flatnonzero(self.ids != EOS)[positions] if self.text.terminator else positions
        return self.token_places(tokens)

    def token_places(self, tokens: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the segment and first byte in it, int64 [n] each, of tokens given by their position in `ids`."""
        segments = np.searchsorted(np.flatnonzero(self.ids == EOS), tokens)
        starts = self.text.starts[segments]
        if self.unit == "character":
            begins = starts + self.span_ends[tokens] - 1
            while len(behind := np.flatnonzero(~is_character_start(self.text.data[begins]))):
                begins[behind] -= 1
        else:
            follows = (tokens > 0) & (self.ids[tokens - 1] != EOS)
            begins = starts + np.where(follows, self.span_ends[tokens - 1], 0)
            letters = np.flatnonzero(~is_white_space(self.text.data))
            begins = letters[np.searchsorted(letters, begins)]
        return segments, begins - starts


class StreamEncoder:
    """Turns blocks of text into tokens: those of a test are learned, all others are compared with them."""

    def __init__(self, unit: OverlapUnit, *, folded: bool) -> None:
        self.unit, self.folded = unit, folded
        self.tokenizer: Tokenizer = WhitespaceTokenizer() if unit == "word" else CharacterTokenizer()
        self.vocabulary: Vocabulary | VocabularyBuilder = VocabularyBuilder()
        self._skipped = np.zeros(0, bool)
        if unit == "character":
            for block in Corpus.from_strings([_SPACES]):
                spaces = encode(block, self.tokenizer, self.vocabulary, bos=False, reserved="escape").ids
                self._skipped = np.zeros(int(spaces.max()) + 1, bool)
                self._skipped[spaces[spaces != EOS]] = True

    def finish(self) -> int:
        """Close the vocabulary, so that from now on tokens that it does not have are `UNK`, and return its size."""
        if isinstance(self.vocabulary, VocabularyBuilder):
            self.vocabulary = self.vocabulary.finish()
        return len(self.vocabulary)

    def __call__(self, block: Segments) -> EncodedBlock:
        # Block of text as tokens; in several threads only after `finish`.
        text = replace(block, data=fold(block.data, block.starts)) if self.folded else block
        encoded = encode(text, self.tokenizer, self.vocabulary, bos=False, reserved="escape", spans=True)
        ids, spans = encoded.ids, encoded.span_ends
        if len(self._skipped):
            tokens = ~self._skipped[np.minimum(ids, len(self._skipped) - 1)] | (ids >= len(self._skipped))
            ids, spans = ids[tokens], spans[tokens]
        return EncodedBlock(text, ids, spans, self.unit)


class Joints:
    """Finds where the stream breaks before a block: at the beginning of each file, and around records."""

    def __init__(self) -> None:
        self._before: Segments | None = None

    def breaks_before(self, block: Segments) -> bool:
        """Return True if nothing runs on from the blocks before into this one; to be asked of each block in order."""
        before, self._before = self._before, block
        if before is None or not len(before) or not len(block):
            return before is not None
        if not (before.terminator and block.terminator) or before.source != block.source:
            return True
        return block.line(0) <= before.line(len(before) - 1)  # the same file again
