"""What numbers are divided by: segments, words, characters and bytes, counted in the source text."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.text.segments import Segments, count_text


@dataclass(frozen=True)
class Denominators:
    """Counts of the source text, never of token pieces; a line end is one byte and one character."""

    segments: int = 0
    words: int = 0
    characters: int = 0
    bytes: int = 0
    line_ends: int = 0

    def __add__(self, other: Denominators) -> Denominators:
        return Denominators(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def without_line_ends(self) -> Denominators:
        """Return the counts for a model that does not predict where lines end: what is not scored is not counted."""
        ends = self.line_ends
        return Denominators(self.segments, self.words, self.characters - ends, self.bytes - ends)


def count_denominators(block: Segments, chosen: slice | NDArray[np.int64] = slice(None)) -> Denominators:
    """Count the segments, words, characters and bytes of a block in the source text, line ends included.

    Args:
        block: segments of the text.
        chosen: which of them, a slice or int64 [n]; all if not given.

    Example:
        >>> from lmgauge.text.documents import Corpus
        >>> count_denominators(next(iter(Corpus.from_strings(["a b", "c"]))))
        Denominators(segments=2, words=3, characters=4, bytes=4, line_ends=0)
    """
    starts, ends = block.starts[chosen], block.ends[chosen]
    words, characters = count_text(block.data, starts, ends, block.terminator)
    line_ends = block.terminator * len(starts)
    return Denominators(len(starts), words, characters, int((ends - starts).sum()) + line_ends, line_ends)
