"""Blocks scored piece by piece: what a model makes of the pieces is put together to what it makes of the blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from lmgauge.scores.given import GivenTokens
from lmgauge.scores.table import ScoreBatch, join_batches
from lmgauge.text.segments import Segments
from lmgauge.text.units import pieces


def score_in_pieces(
    score: Callable[[Iterator[Segments]], Iterable[ScoreBatch]], blocks: Iterable[Segments]
) -> Iterator[ScoreBatch]:
    """Yield the batch of each block, which a model gets in pieces, see `lmgauge.text.units`."""
    # score: takes pieces and yields the batch of each, in order; it may take several before it yields one; blocks: of a
    # text, in order.
    counts: deque[int] = deque()  # pieces of the blocks that the model has begun, and that are not all scored

    def cut() -> Iterator[Segments]:
        for block in blocks:
            own = list(pieces(block))
            counts.append(len(own))
            yield from own

    made: list[ScoreBatch] = []
    for batch in score(cut()):
        made.append(batch)
        if len(made) == counts[0]:
            counts.popleft()
            yield join_pieces(made)
            made = []


def join_pieces(pieces: Sequence[ScoreBatch]) -> ScoreBatch:
    """Return what a model made of the pieces of a block, one behind the other, as what it makes of the block."""
    if len(pieces) == 1:
        return pieces[0]
    joined = join_batches(pieces)  # which leaves out segments without rows, and what is known of segments
    before = [piece.before for piece in pieces if piece.before is not None]
    return replace(
        joined,
        segments=np.concatenate([piece.segments for piece in pieces]),
        segment_events=np.concatenate([piece.segment_events for piece in pieces]),
        lossy=np.concatenate([piece.lossy for piece in pieces]),
        before=GivenTokens.joined(before) if before else None,
    )
