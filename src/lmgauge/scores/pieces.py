"""Blocks scored piece by piece: what a model makes of the pieces is put together to what it makes of the blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

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
            yield join_batches(made)
            made = []
