"""Sums of segments: what a model makes of each segment of a text, without its rows.

Sums are exact (multiples of 2^-80 nats, see `numerics.exact`) and become float64 at the end, so no digit depends on how a
text is cut into blocks, on threads, or on the way: through the score table, or past it, as the `sum_block` of n-gram models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.numerics.exact import ExactSums
from lmgauge.scores import EOS_KIND, ScoreBatch
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel


Ints = NDArray[np.int64]
SumArrays = tuple[Ints, NDArray[np.uint64], Ints, Ints, Ints, Ints]
"""High and low words of the sums, events, zeros, unseen, ends."""
_NO_CONTEXT = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class SegmentTotals:
    """What a model makes of each of n segments."""

    nats: NDArray[np.float64]  # float64 [n], sums of the log-probabilities of the events that are possible
    events: Ints  # int64 [n], all events, `</s>` included
    zeros: Ints  # int64 [n], events of probability zero
    unseen: Ints  # int64 [n], events that are unknown words, spelled or not
    ends: Ints  # int64 [n], events that are `</s>`

    def __len__(self) -> int:
        return len(self.nats)


class TotalsBuffer:
    """Room for the totals of n segments, which a kernel fills."""

    def __init__(self, count: int) -> None:
        self._sums = ExactSums.room(count)
        self._events, self._unseen, self._ends = (np.zeros(count, np.int64) for _ in range(3))

    @property
    def arrays(self) -> SumArrays:
        """Return the arrays, as `_native.sum_ids` takes them."""
        sums = self._sums
        return sums.high, sums.low, self._events, sums.zeros, self._unseen, self._ends

    def totals(self) -> SegmentTotals:
        """Return what the kernel left."""
        return SegmentTotals(self._sums.possible_nats(), self._events, self._sums.zeros, self._unseen, self._ends)


def sum_segments(model: LanguageModel, blocks: Iterable[Segments], *, threads: int | None = None) -> Iterator[SegmentTotals]:
    """Yield the totals of the segments of each block, in order; the numbers are those of the rows that `score` has."""
    if model.blocks_are_independent:
        return map_in_order(model.sum_block, blocks, thread_count(threads))
    return (totals_of(batch) for batch in model.score(blocks, spans=False, threads=threads))


def totals_of(batch: ScoreBatch) -> SegmentTotals:
    """Return the sums of the rows of each segment of a batch."""
    # batch: log-probabilities in nats, the rows of n segments.
    sums = ExactSums.room(len(batch.segments))
    logprob = np.ascontiguousarray(batch.logprob, np.float64)
    *_, bad = _native.sum_events(logprob, batch.kind, _NO_CONTEXT, batch.segment_events, sums.high, sums.low, sums.zeros)
    if bad >= 0:
        raise InputError(f"segment {batch.row_segments()[bad]}: the log-probability {logprob[bad]} is not that of an event")
    of_row = np.repeat(np.arange(len(sums.high)), batch.segment_events)
    of_kinds = batch.unseen(), batch.kind == EOS_KIND
    unseen, ends = (np.bincount(of_row[of_kind], minlength=len(sums.high)) for of_kind in of_kinds)
    return SegmentTotals(sums.possible_nats(), batch.segment_events, sums.zeros, unseen, ends)
