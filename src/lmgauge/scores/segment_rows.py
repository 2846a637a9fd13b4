"""The score table segment by segment: the rows of each, those of a range of segments, and blocks scored in pieces."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

import numpy as np

from lmgauge.base.errors import InputError
from lmgauge.scores.table import GivenTokens, ScoreBatch, cut, join_batches
from lmgauge.text.segments import Segments
from lmgauge.text.work_units import pieces


def iter_segments(batches: Iterable[ScoreBatch]) -> Iterator[ScoreBatch]:
    """Yield the rows of each segment as a batch, in the order of the table; those that came in several are joined."""
    # A segment that is listed without rows is yielded without rows. Nothing is checked: a segment that comes back after
    # another is yielded twice.
    for _, parts in groupby((one for batch in batches for one in _one_by_one(batch)), key=attrgetter("segment")):
        yield join_batches(list(parts))


def _one_by_one(batch: ScoreBatch) -> Iterator[ScoreBatch]:
    # As `of_segments` does, which would go over all segments for each.
    begin, given = 0, batch.before
    shown = iter(() if given is None else given.by_segment())
    for i, end in enumerate(np.cumsum(batch.segment_events).tolist()):
        own = slice(i, i + 1)
        before = given and GivenTokens(next(shown), given.counts[own], given.lengths[own], given.crossing[own])
        yield cut(batch, own, slice(begin, end), before)
        begin = end


_ROWS_AT_A_TIME = 1 << 16  # their columns fit into the caches of a core


class SegmentReader:
    """Hands out the rows of a table by ranges of segments."""

    def __init__(self, batches: Iterable[ScoreBatch], name: str) -> None:
        self._source = (batch for batch in batches if len(batch))
        first = next(self._source, None)
        if first is None:
            raise InputError(f"{name}: the score table has no rows")
        self._waiting: ScoreBatch | None = first
        self._no_rows = first.of_segments(0, 0)

    @property
    def exhausted(self) -> bool:
        """True when all rows were taken."""
        return self._waiting is None

    @property
    def next_segment(self) -> int:
        """Return the first segment that was not taken; 0 when all were."""
        return int(self._waiting.segments[0]) if self._waiting is not None else 0

    @property
    def whole_until(self) -> int:
        """Return a segment before which all rows are at hand, and not too many to be worked on at once; 0 at the end."""
        if self._waiting is None:
            return 0
        place = int(np.searchsorted(np.cumsum(self._waiting.segment_events), _ROWS_AT_A_TIME))
        return int(self._waiting.segments[min(place, len(self._waiting.segments) - 1)])

    def take(self, begin: int, end: int) -> ScoreBatch:
        """Return the rows of a range of segments, each of which is listed, also those without rows."""
        # -> the rows, with `segments` int64 [end - begin].
        parts: list[ScoreBatch] = []
        while self._waiting is not None:
            batch = self._waiting
            cut = int(np.searchsorted(batch.segments, end))
            if cut:
                parts.append(batch.of_segments(0, cut) if cut < len(batch.segments) else batch)
            if cut < len(batch.segments):
                self._waiting = batch.of_segments(cut, len(batch.segments))
                break
            self._waiting = next(self._source, None)
        rows = join_batches(parts or [self._no_rows])
        if len(rows.segments) == end - begin:
            return rows
        events, lossy = np.zeros(end - begin, np.int64), np.zeros(end - begin if len(rows.lossy) else 0, bool)
        # Segments 5 and 7 have rows, 5 to 8 are asked for: events [2, 0, 3, 0].
        events[rows.segments - begin] = rows.segment_events
        lossy[rows.segments[: len(lossy)] - begin] = rows.lossy
        return replace(rows, segments=np.arange(begin, end, dtype=np.int64), segment_events=events, lossy=lossy)


def score_in_pieces(
    score: Callable[[Iterator[Segments]], Iterable[ScoreBatch]], blocks: Iterable[Segments]
) -> Iterator[ScoreBatch]:
    """Yield the batch of each block, which a model gets in pieces, see `lmgauge.text.work_units`."""
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
