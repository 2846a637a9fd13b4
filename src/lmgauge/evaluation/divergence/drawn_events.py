"""The events at which two models are compared: all of a text, or those of segments drawn at random."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import policy_of
from lmgauge.errors import InputError
from lmgauge.scores import ScoreBatch, TokenStrings
from lmgauge.scoring import score_together, with_same_events

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SegmentEvents:
    """The events of a segment.

    Attributes:
        index: the segment in reading order, from 0.
        before: events of the text before it.
        ids: uint32 [n], the true tokens.
        kind: uint8 [n], as in a score table.
        logprob: for either model float64 [n], of the true tokens, nats.
        document: number of its document; None where documents are not known.
    """

    index: int
    before: int
    ids: NDArray[np.uint32]
    kind: NDArray[np.uint8]
    logprob: tuple[Floats, Floats]
    document: int | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """Segments in reading order, what they were drawn from, and the ids of the whole text where a model sees them."""

    chosen: list[SegmentEvents]
    total_events: int
    total_segments: int
    text: NDArray[np.uint32] | None

    def documents(self) -> NDArray[np.int64] | None:
        """Return int64 [segments], the document of each; None where documents are not known."""
        numbers = [segment.document for segment in self.chosen if segment.document is not None]
        return np.array(numbers, np.int64) if len(numbers) == len(self.chosen) else None

    def batch(self, which: int, strings: TokenStrings) -> ScoreBatch:
        """Return the rows that one of the models gave the segments.

        Args:
            which: 0 or 1.
            strings: token strings by id.
        """
        none = np.zeros(0, np.uint32), np.zeros(0, np.uint8), np.zeros(0, np.float64)
        return ScoreBatch(
            segments=np.array([segment.index for segment in self.chosen], np.int64),
            segment_events=np.array([len(segment.ids) for segment in self.chosen], np.int64),
            token_ids=np.concatenate([none[0], *(segment.ids for segment in self.chosen)]),
            strings=strings,
            logprob=np.concatenate([none[2], *(segment.logprob[which] for segment in self.chosen)]),
            kind=np.concatenate([none[1], *(segment.kind for segment in self.chosen)]),
            ends=np.zeros(0, np.int64),
        )


def draw(a: LanguageModel, b: LanguageModel, corpus: Corpus, events: int | None, seed: int, threads: int | None) -> Drawn:
    """Draw segments at random until they have a number of events, and return them in reading order.

    Every segment gets a random number; those with the lowest are drawn. The numbers depend on the seed and the order of the
    segments alone, so that the sample does not depend on blocks or threads.

    Args:
        a, b: the models, which must divide the text into the same events.
        corpus: the text.
        events: how many events at least; all if None.
        seed: of the draw.
        threads: how many; the sample does not depend on it.

    Raises:
        InputError: the text has no event, or the models divide it into different ones.
    """
    generator = np.random.default_rng(seed)
    heap: list[tuple[float, int, SegmentEvents]] = []  # negated: the highest number first
    events_drawn = total_events = total_segments = 0
    sees_text = any(policy_of(model).runs_on for model in (a, b))
    text: list[NDArray[np.uint32]] = []
    for block, (one, other) in score_together((a, b), corpus, with_same_events, threads=threads):
        documents = None if block.documents is None else block.documents[one.segments - block.first]
        keys = generator.random(len(one.segments))
        full = events is not None and events_drawn >= events
        candidates = np.flatnonzero(keys < -heap[0][0]) if full else np.arange(len(keys))
        begins = np.cumsum(one.segment_events) - one.segment_events
        for i in candidates.tolist():
            rows = slice(int(begins[i]), int(begins[i] + one.segment_events[i]))
            document = None if documents is None else int(documents[i])
            segment = _segment(int(one.segments[i]), total_events, rows, one, other, document)
            heapq.heappush(heap, (-float(keys[i]), -segment.index, segment))
            events_drawn += len(segment.ids)
            while events is not None and events_drawn - len(heap[0][2].ids) >= events:
                events_drawn -= len(heapq.heappop(heap)[2].ids)
        if sees_text:
            text.append(one.token_ids)
        total_events += len(one)
        total_segments += len(one.segments)
    if not total_events:
        raise InputError("there is nothing to compare: the text has no event; name a text that is not empty")
    chosen = sorted((item[2] for item in heap), key=lambda segment: segment.index)
    return Drawn(chosen, total_events, total_segments, np.concatenate(text) if sees_text else None)


def _segment(
    index: int, before: int, rows: slice, one: ScoreBatch, other: ScoreBatch, document: int | None
) -> SegmentEvents:
    # Copies: a view would hold the whole batch in memory.
    logprob = one.logprob[rows].copy(), other.logprob[rows].copy()
    return SegmentEvents(index, before + rows.start, one.token_ids[rows].copy(), one.kind[rows].copy(), logprob, document)
