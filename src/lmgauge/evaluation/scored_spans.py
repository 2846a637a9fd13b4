"""What of a text is scored, where a protocol leaves tokens out: denominators are counted over these spans alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.denominators import Denominators, count_unspaced
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments, count_text, is_white_space

Ints = NDArray[np.int64]


class ScoredSpans:
    """Collects the spans of the rows of a table, joined where they touch."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, Ints, Ints]] = []  # segment, start, end

    def add(self, batch: ScoreBatch) -> None:
        """Add the rows of a batch; those without byte spans say nothing."""
        # batch: of the score table, segments and their rows in order.
        if len(batch) and len(batch.ends):
            self._parts.append(_touching(batch.row_segments(), batch.starts(), batch.ends))

    def count(self, block: Segments) -> Denominators:
        """Count what is scored of a block: its bytes, the code points and the words that begin in them."""
        if not self._parts:
            return Denominators(len(block))
        segment, start, end = _touching(*(np.concatenate(column) for column in zip(*self._parts, strict=True)))
        self._parts = [(segment, start, end)]
        own = (segment >= block.first) & (segment < block.first + len(block))
        origin = block.starts[segment[own] - block.first]
        starts, ends = origin + start[own], origin + end[own]
        words, characters = count_text(block.data, starts, ends, 0)
        # A word is where it begins: one that a span begins inside of was counted there, or is left out.
        filled = ends > starts
        white = is_white_space(block.data[starts[filled]])
        before = is_white_space(block.data[np.maximum(starts[filled] - 1, 0)])
        words -= int(np.count_nonzero((start[own][filled] > 0) & ~white & ~before))
        unspaced = count_unspaced(block.data, starts, ends)
        return Denominators(len(block), words, characters, int((ends - starts).sum()), unspaced=unspaced)


def _touching(segment: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    # Spans, int64 [n] each, joined where one begins where the one before ended.
    new = np.ones(len(segment), bool)
    new[1:] = (segment[1:] != segment[:-1]) | (start[1:] != end[:-1])
    last = np.append(new[1:], True)
    return segment[new], start[new], end[last]
