"""Tables of different tokenizers, laid on the bytes of one text: the aligned spans whose boundaries they share."""

# A span of one tokenizer may begin or end inside a span of another. What both tell apart are the aligned spans between the
# boundaries they have in common; every event lies in exactly one, so sums over aligned spans add up to the whole.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError
from lmgauge.numerics.exact import ExactSums
from lmgauge.scores import ALTERED, ScoreBatch, unescaped
from lmgauge.text.segments import Segments

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Aligned spans of the segments of a block, in order, that tile them; all tables have boundaries at their ends."""

    # Tokens `un`, `seen` and `unse`, `en`: ends [2, 6] and [4, 6] share 6 alone, so the word is one range, of two events in
    # each.

    segment: Ints  # int64 [n], number of the segment within the block
    # starts, ends: int64 [n], bytes in the segment. The last range of a segment also has the line end: the `</s>` event and
    # what it stands for are in there.
    starts: Ints
    ends: Ints
    position: Ints  # int64 [n], number of the range in its segment, from 0
    events: tuple[Ints, ...]  # for each table int64 [n], how many of its rows are in each range; they follow each other

    def __len__(self) -> int:
        return len(self.segment)

    def ends_segment(self) -> NDArray[np.bool_]:
        """Return which ranges are the last of their segment, bool [n]."""
        last: NDArray[np.bool_] = np.diff(self.segment, append=-1) != 0
        return last


def shared_ranges(tables: Sequence[ScoreBatch], *, silent: bool = False) -> Ranges:
    """Return the ranges between the boundaries that all tables of the same segments share."""
    # The end of a segment is a boundary of every table, also of one that has no row there: no row is in no range.
    # The example batch: segments of 3 and 7 bytes, ends [3], [3, 7] -> starts [0, 0, 3], ends [3, 3, 7].
    keys = [_boundaries(table) for table in tables]
    boundaries = [_distinct(key) for key in keys]
    if silent or len(tables) > 1:
        rowless = [table.segment_events == 0 for table in tables]
        dropped = np.zeros(len(rowless[0]), bool) if silent else np.all(rowless, axis=0)
        boundaries = [_with_line_ends(own, none & ~dropped) for own, none in zip(boundaries, rowless, strict=True)]
    shared = boundaries[0]
    for theirs in boundaries[1:]:
        if not np.array_equal(shared, theirs):
            shared = np.intersect1d(shared, theirs, assume_unique=True)
    segment, ends = shared // _STRIDE, shared % _STRIDE
    last = ends == _LINE_END
    ends[last] = np.max([extents(table) for table in tables], axis=0)[segment[last]]
    first = np.ones(len(shared), bool)
    first[1:] = segment[1:] != segment[:-1]
    starts = np.where(first, 0, np.concatenate(([0], ends[:-1])))
    first_of = np.flatnonzero(first)
    position = np.arange(len(shared)) - np.repeat(first_of, np.diff(np.concatenate((first_of, [len(shared)]))))
    events = tuple(np.diff(np.searchsorted(key, shared, side="right"), prepend=0) for key in keys)
    if any(len(table.begins) for table in tables):
        begins = [table.starts()[np.cumsum(counts) - counts] for table, counts in zip(tables, events, strict=True)]
        starts = np.max([starts, *begins], axis=0)
    return Ranges(segment, starts, ends, position, events)


def _distinct(rising: Ints) -> Ints:
    last = np.ones(len(rising), bool)
    last[:-1] = rising[1:] != rising[:-1]
    return rising[last]


def _with_line_ends(boundaries: Ints, chosen: NDArray[np.bool_]) -> Ints:
    more = np.flatnonzero(chosen)
    return np.union1d(boundaries, more * _STRIDE + _LINE_END) if len(more) else boundaries


_STRIDE = 1 << 40  # no segment is as long
_LINE_END = _STRIDE - 1


def _boundaries(table: ScoreBatch) -> Ints:
    # Where each row ends, its segment's number and the byte in one number that rises.
    # The last row of a segment ends where the line end does, whether or not the table has an event for it.
    if len(table.ends) != len(table):
        raise InputError("the score table has no byte spans: add the columns 'start' and 'end'")
    segment = np.repeat(np.arange(len(table.segments), dtype=np.int64), table.segment_events)
    impossible = np.flatnonzero((table.ends < 0) | (table.ends >= _LINE_END))
    if len(impossible):
        row = int(impossible[0])
        raise InputError(f"segment {table.segments[segment[row]]}: a span cannot end at byte {table.ends[row]}")
    keys = segment * _STRIDE + table.ends
    if np.any(np.diff(keys) < 0):
        row = int(np.flatnonzero(np.diff(keys) < 0)[0]) + 1
        raise InputError(
            f"segment {table.segments[segment[row]]}: the span that ends at byte {table.ends[row]} comes after one that "
            "ends further on; the rows of a segment stand in the order of the text"
        )
    last = np.cumsum(table.segment_events)[table.segment_events > 0] - 1
    keys[last] = segment[last] * _STRIDE + _LINE_END
    return keys


def extents(table: ScoreBatch) -> Ints:
    """Return the byte where the last span of each segment ends.

    >>> from lmgauge.scores import example_batch
    >>> table = example_batch()
    >>> extents(table).tolist()
    [3, 7]
    """
    # -> int64 [segments]; 0 without rows.
    scored = table.segment_events > 0
    extents = np.zeros(len(scored), np.int64)
    extents[scored] = table.ends[np.cumsum(table.segment_events)[scored] - 1]
    return extents


def whole_segments(tables: Sequence[ScoreBatch], block: Segments | None) -> Ranges:
    """Return each segment as a range, for tables without byte spans: nothing finer is known of them."""
    count = len(tables[0].segments)
    nothing = np.zeros(count, np.int64)
    ends = nothing if block is None else block.ends - block.starts
    return Ranges(np.arange(count, dtype=np.int64), nothing, ends, nothing, tuple(table.segment_events for table in tables))


def ranges_by_event(tables: Sequence[ScoreBatch]) -> Ranges:
    """Return each row as a range, for tables of different texts whose segments have as many events."""
    first = tables[0]
    segment = np.repeat(np.arange(len(first.segments), dtype=np.int64), first.segment_events)
    begins = np.cumsum(first.segment_events) - first.segment_events
    position = np.arange(len(first)) - np.repeat(begins, first.segment_events)
    starts, ends = (first.starts(), first.ends) if len(first.ends) else (np.zeros_like(segment), np.zeros_like(segment))
    return Ranges(segment, starts, ends, position, tuple(np.ones(len(first), np.int64) for _ in tables))


def exact_sums(table: ScoreBatch, events: Ints) -> ExactSums:
    """Return the sums of consecutive rows."""
    # table: log-probabilities, nats; events: int64 [n], how many rows belong to each sum.
    count = len(events)
    sums = ExactSums.room(count)
    nothing = np.zeros(0, np.uint8)
    _, _, bad = _native.sum_events(
        table.logprob, table.kind, nothing, np.ascontiguousarray(events), sums.high, sums.low, sums.zeros
    )
    if bad >= 0:
        raise InputError(
            f"segment {table.row_segments()[bad]}: the log-probability {table.logprob[bad]} is not that of an event"
        )
    return sums


def kinds_within(table: ScoreBatch, events: Ints, kind: int) -> Ints:
    """Return how many of the rows of each range are of a kind."""
    # events: int64 [n], rows of each range.
    # -> int64 [n].
    # kinds [0, 0, 0], events [1, 2], kind 0 -> [1, 2]
    of_kind = np.concatenate(([0], np.cumsum(table.kind == kind)))
    bounds = np.concatenate(([0], np.cumsum(events)))
    counts: Ints = of_kind[bounds[1:]] - of_kind[bounds[:-1]]
    return counts


def inexact_rows(table: ScoreBatch, block: Segments | None, *, spaced: bool = True) -> NDArray[np.bool_]:
    """Return rows of words whose span is not the word and a space before it, bool [rows]."""
    # They lose what they cannot spell.
    if ALTERED in table.extra:
        altered: NDArray[np.bool_] = table.extra[ALTERED] > 0
        return altered
    # The first word of a segment has no space before it, `</s>` nothing but the line end.
    lengths = np.array([len(unescaped(t).encode("utf-8", "surrogatepass")) for t in table.strings.tokens], np.int64)
    before = np.full(len(table), int(spaced))
    before[(np.cumsum(table.segment_events) - table.segment_events)[table.segment_events > 0]] = 0
    expected = lengths[table.token_ids] + before
    is_end = table.of_no_text()
    expected[is_end] = 0
    starts = table.starts()
    inexact: NDArray[np.bool_] = (table.ends - starts) != expected
    if block is not None and spaced:
        rows = np.flatnonzero(~inexact & ~is_end & (before > 0))
        inexact[rows] = block.data[block.starts[table.row_segments()[rows] - block.first] + starts[rows]] != ord(" ")
    return inexact
