"""Sums of segments: what a model makes of each segment of a text, without its rows.

Sums are exact (multiples of 2^-80 nats, see `numerics.exact`) and become float64 at the end, so no digit depends on how a
text is cut into blocks, on threads, or on the way: through the score table, or past it, where a model offers `sum_block`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.errors import InputError
from lmgauge.models.protocol import LanguageModel
from lmgauge.numerics.exact import ExactSums
from lmgauge.scores import EOS_KIND, ScoreBatch
from lmgauge.text.segments import Segments
from lmgauge.threads import map_in_order, thread_count

Ints = NDArray[np.int64]
SumArrays = tuple[Ints, NDArray[np.uint64], Ints, Ints, Ints, Ints]
"""High and low words of the sums, events, zeros, unseen, ends."""
_NO_CONTEXT = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class SegmentTotals:
    """What a model makes of each of n segments.

    Attributes:
        nats: float64 [n], sums of the log-probabilities of the events that are possible.
        events: int64 [n], all events, `</s>` included.
        zeros: int64 [n], events of probability zero.
        unseen: int64 [n], events that are unknown words, spelled or not.
        ends: int64 [n], events that are `</s>`.
    """

    nats: NDArray[np.float64]
    events: Ints
    zeros: Ints
    unseen: Ints
    ends: Ints

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.nats)


class TotalsBuffer:
    """Room for the totals of n segments, which a kernel fills.

    Args:
        count: segments.
    """

    def __init__(self, count: int) -> None:
        self._sums = ExactSums.room(count)
        self._events, self._unseen, self._ends = (np.zeros(count, np.int64) for _ in range(3))

    @property
    def arrays(self) -> SumArrays:
        """The arrays, as `_native.sum_ids` takes them."""
        sums = self._sums
        return sums.high, sums.low, self._events, sums.zeros, self._unseen, self._ends

    def totals(self) -> SegmentTotals:
        """Return what the kernel left."""
        return SegmentTotals(self._sums.possible_nats(), self._events, self._sums.zeros, self._unseen, self._ends)


@runtime_checkable
class SumsBlocks(Protocol):
    """A model that sums the segments of a block without making their rows."""

    def sum_block(self, block: Segments) -> SegmentTotals:
        """Return the totals of each segment of a block, those that `totals_of` has for its rows.

        Called where blocks are independent.

        Args:
            block: the segments.

        Raises:
            InputError: the text cannot be scored.
        """
        ...


def sum_segments(model: LanguageModel, blocks: Iterable[Segments], *, threads: int | None = None) -> Iterator[SegmentTotals]:
    """Yield the totals of the segments of each block, in order; the numbers are those of the rows that `score` has.

    Args:
        model: any.
        blocks: of a text, e.g. a `Corpus`.
        threads: blocks scored at a time; no digit depends on it for models whose rows do not.

    Raises:
        InputError: the text cannot be scored, or a log-probability is NaN or positive.

    Example:
        >>> import lmgauge
        >>> corpus = lmgauge.Corpus.from_strings(["a b", "c"])
        >>> model = lmgauge.train("laplace", lmgauge.Corpus.from_strings(["a b", "a"]), order=1)
        >>> for totals in sum_segments(model, corpus):  # (c + 1) / (5 + 4): a and </s> 3/9, b 2/9, <unk> 1/9
        ...     totals.nats.round(4).tolist(), totals.events.tolist(), totals.unseen.tolist()
        ([-3.7013, -3.2958], [3, 2], [0, 1])
    """
    if isinstance(model, SumsBlocks) and model.blocks_are_independent:
        return map_in_order(model.sum_block, blocks, thread_count(threads))
    return (totals_of(batch) for batch in model.score(blocks, spans=False, threads=threads))


def totals_of(batch: ScoreBatch) -> SegmentTotals:
    """Return the sums of the rows of each segment of a batch.

    Args:
        batch: log-probabilities in nats, the rows of n segments.

    Raises:
        InputError: a log-probability is NaN, positive or beyond all reason.

    Example:
        >>> from lmgauge.scores import example_batch
        >>> totals = totals_of(example_batch())  # each of one and two tokens has the probability 1/2
        >>> totals.nats.round(4).tolist(), totals.events.tolist()
        ([-0.6931, -1.3863], [1, 2])
    """
    sums = ExactSums.room(len(batch.segments))
    logprob = np.ascontiguousarray(batch.logprob, np.float64)
    *_, bad = _native.sum_events(logprob, batch.kind, _NO_CONTEXT, batch.segment_events, sums.high, sums.low, sums.zeros)
    if bad >= 0:
        raise InputError(f"segment {batch.row_segments()[bad]}: the log-probability {logprob[bad]} is not that of an event")
    of_row = np.repeat(np.arange(len(sums.high)), batch.segment_events)
    of_kinds = batch.unseen(), batch.kind == EOS_KIND
    unseen, ends = (np.bincount(of_row[of_kind], minlength=len(sums.high)) for of_kind in of_kinds)
    return SegmentTotals(sums.possible_nats(), batch.segment_events, sums.zeros, unseen, ends)
