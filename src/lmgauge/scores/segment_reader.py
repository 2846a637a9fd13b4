"""The rows of a table by ranges of segments, whatever its batches are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lmgauge.errors import InputError
from lmgauge.scores.table import ScoreBatch, join_batches


class SegmentReader:
    """Hands out the rows of a table by ranges of segments.

    Args:
        batches: of the table.
        name: of the table, for messages.

    Raises:
        InputError: the table has no rows.
    """

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
        """The first segment that was not taken; 0 when all were."""
        return int(self._waiting.segments[0]) if self._waiting is not None else 0

    def take(self, begin: int, end: int) -> ScoreBatch:
        """Return the rows of a range of segments, each of which is listed, also those without rows.

        Args:
            begin: the first segment; not before the end of the range that was taken last.
            end: the segment behind the last.

        Returns:
            The rows, with `segments` int64 [end - begin].

        Raises:
            InputError: the batches do not have the same columns.

        Example:
            >>> from lmgauge.scores import example_batch
            >>> batch = example_batch()
            >>> SegmentReader([batch], "table").take(0, 3).segment_events.tolist()
            [1, 2, 0]
        """
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
        events = np.zeros(end - begin, np.int64)
        events[rows.segments - begin] = rows.segment_events
        lossy = np.zeros(end - begin if len(rows.lossy) else 0, bool)
        if len(lossy):
            lossy[rows.segments - begin] = rows.lossy
        return replace(rows, segments=np.arange(begin, end, dtype=np.int64), segment_events=events, lossy=lossy)
