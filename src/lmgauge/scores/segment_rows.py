"""The score table segment by segment: the rows of each, those of a range of segments, and blocks scored in pieces."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.scores.table import SEPARATOR, SPELLING, ScoreBatch, join_batches, without_parts
from lmgauge.text.segments import Segments
from lmgauge.text.units import pieces


@dataclass(frozen=True, slots=True)
class SegmentRows:
    """The rows of one segment."""

    segment: int
    strings: Sequence[str]
    token_ids: NDArray[np.uint32]  # uint32 [n], index into `strings`
    logprob: NDArray[np.float64]  # float64 [n], nats
    kind: NDArray[np.uint8]  # uint8 [n], index into `KINDS`
    ends: NDArray[np.int64]  # int64 [n] or empty, where each span ends, bytes
    # int64 [n] or empty, where each starts
    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64), kw_only=True)
    # uint32 [m], index into `strings`: tokens of the text given before the segment, where they are known
    before: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32), kw_only=True)
    # float64 [n] or empty: of `logprob`, the part that is the letters of an unseen word, nats
    spelling: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), kw_only=True)
    # float64 [n] or empty: the part that is the white space before the event, nats
    separator: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), kw_only=True)

    def __len__(self) -> int:
        return len(self.logprob)

    def tokens(self) -> list[str]:
        """Return the token strings, [n]."""
        return [self.strings[i] for i in self.token_ids.tolist()]

    def event_logprob(self) -> NDArray[np.float64]:
        """Return what the model's own events cost, as `ScoreBatch.event_logprob` has it."""
        return without_parts(self.logprob, self.spelling, self.separator)

    def followed_by(self, more: SegmentRows) -> SegmentRows:
        """Return these rows and further ones of the same segment.

        >>> from lmgauge.scores.table import example_batch
        >>> rows, _ = iter_segments([example_batch()])
        >>> rows.followed_by(rows).tokens()
        ['the', 'the']
        """
        # more: rows, [n], whose ids may belong to other strings.
        # Otherwise the ids of the second part move behind the strings of the first.
        strings = self.strings
        if more.strings is not strings:
            more = replace(more, token_ids=more.token_ids + np.uint32(len(strings)))
            strings = [*strings, *more.strings]
        columns: dict[str, Any] = {name: np.concatenate((getattr(self, name), getattr(more, name))) for name in _COLUMNS}
        return replace(self, strings=strings, **columns)


_COLUMNS = ("token_ids", "logprob", "kind", "ends", "starts", "spelling", "separator")


def iter_segments(batches: Iterable[ScoreBatch]) -> Iterator[SegmentRows]:
    """Yield the rows of each segment in the order of the table; those that came in several batches are joined."""
    # A segment that is listed without rows is yielded without rows. Nothing is checked: a segment that comes back after
    # another is yielded twice.
    for _, parts in groupby(_segment_parts(batches), key=attrgetter("segment")):
        yield reduce(SegmentRows.followed_by, parts)


def _segment_parts(batches: Iterable[ScoreBatch]) -> Iterator[SegmentRows]:
    for batch in batches:
        strings, begin, starts = batch.strings.tokens, 0, batch.starts()
        spelling, separator = (batch.extra.get(name, np.zeros(0)) for name in (SPELLING, SEPARATOR))
        shown = iter([batch.token_ids[:0]] * len(batch.segments) if batch.before is None else batch.before.by_segment())
        for segment, end in zip(batch.segments.tolist(), np.cumsum(batch.segment_events).tolist(), strict=True):
            rows = slice(begin, end)
            columns = batch.token_ids[rows], batch.logprob[rows], batch.kind[rows], batch.ends[rows]
            parts = {"starts": starts[rows], "spelling": spelling[rows], "separator": separator[rows]}
            yield SegmentRows(segment, strings, *columns, before=next(shown), **parts)
            begin = end


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
