"""The events at which models are compared: all of a text, or those of segments drawn at random."""

# Segments are drawn by what the tokenizer makes of them, before any model computes anything.

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.distributions.blocks import event_counts
from lmgauge.errors import InputError
from lmgauge.progress import say_progress
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.documents import Corpus

Ints = NDArray[np.int64]
_BLOCK_EVENTS = 1 << 10  # of drawn segments, so that there is progress to show


@dataclass(frozen=True, slots=True)
class Sample:
    """What is looked at of a text: blocks that can be read again and again."""

    blocks: Iterable[Segments]
    events: Ints | None = None  # int64, numbers of the events of `blocks` to look at, ascending; None: all
    numbers: Ints | None = None  # int64 [segments of the blocks], the number of each in the text; None: as they are
    size: int | None = None  # size, segments: how many events and segments were drawn; None: all
    segments: int | None = None
    total_events: int | None = None  # total_events, total_segments: of the text; None where it was not read yet
    total_segments: int | None = None

    def __iter__(self) -> Iterator[Segments]:
        return iter(self.blocks)

    def say(self, what: str, done: int) -> None:
        """Say to who listens how many events are done."""
        say_progress(f"{what} {done:,}{'' if self.size is None else f' of {self.size:,}'} events")


@dataclass(frozen=True, slots=True)
class _Held:
    """A segment in the draw, its number in the text, and the events before it and in it."""

    index: int
    before: int
    events: int
    segment: Segments


def draw(models: Sequence[LanguageModel], corpus: Corpus, events: int | None, seed: int) -> Sample:
    """Draw segments at random until they have a number of events, and return them in reading order."""
    # Every segment gets a random number; those with the lowest are drawn. The numbers depend on the seed and the order of
    # the segments alone, so that the sample does not depend on blocks or threads.
    if events is None:
        return Sample(corpus if corpus.rereadable or len(models) == 2 else list(corpus))
    generator = np.random.default_rng(seed)
    heap: list[tuple[float, int, _Held]] = []  # negated: the highest number first
    drawn = total_events = total_segments = 0
    runs_on = any(model.context_policy.runs_on for model in models)
    text: list[Segments] = []
    for block in corpus:
        counts = event_counts(models[0], block, seen=total_events)
        keys = generator.random(len(block))
        candidates = np.flatnonzero(keys < -heap[0][0]) if drawn >= events else np.arange(len(keys))
        befores = total_events + np.cumsum(counts) - counts
        for i in candidates.tolist():
            held = _Held(block.first + i, int(befores[i]), int(counts[i]), _copied(block.part(i, i + 1)))
            heapq.heappush(heap, (-float(keys[i]), -held.index, held))
            drawn += held.events
            while drawn - heap[0][2].events >= events:
                drawn -= heapq.heappop(heap)[2].events
        if runs_on:
            text.append(block)
        total_events += int(counts.sum())
        total_segments += len(block)
    if not total_events:
        raise InputError("there is nothing to compare: the text has no event; name a text that is not empty")
    chosen = sorted((item[2] for item in heap), key=lambda held: held.index)
    totals = (drawn, len(chosen), total_events, total_segments)
    if runs_on:
        numbers = np.concatenate([np.arange(held.before, held.before + held.events) for held in chosen])
        return Sample(text, numbers, None, *totals)
    of_text = np.array([held.index for held in chosen], np.int64)
    return Sample(list(_joined(chosen)), None, of_text, *totals)


def _copied(segment: Segments) -> Segments:
    # Segment with bytes of its own: a view would hold the whole block in memory.
    return replace(segment, data=segment.data.copy())


def _joined(chosen: Sequence[_Held]) -> Iterator[Segments]:
    # Segments in blocks, numbered from 0: those of one source that have not too many events together.
    bounds, events = [0], 0
    for i, (one, other) in enumerate(pairwise(chosen), 1):
        events += one.events
        if _kind(one.segment) != _kind(other.segment) or events >= _BLOCK_EVENTS:
            bounds.append(i)
            events = 0
    for begin, end in pairwise([*bounds, len(chosen)]):
        yield _block([held.segment for held in chosen[begin:end]], begin)


def _kind(segment: Segments) -> tuple[object, ...]:
    return segment.source, segment.terminator, segment.given_starts is None, segment.boundary


def _block(segments: Sequence[Segments], first: int) -> Segments:
    one = segments[0]
    sizes = np.array([len(segment.data) for segment in segments], np.int64)
    begins = np.cumsum(sizes) - sizes
    groups = [segment.groups for segment in segments if segment.groups is not None]
    documents = [segment.documents for segment in segments if segment.documents is not None]
    return replace(
        one,
        data=np.concatenate([segment.data for segment in segments]),
        starts=begins + np.array([segment.starts[0] for segment in segments], np.int64),
        ends=begins + sizes - one.terminator,
        given_starts=None if one.given_starts is None else begins,
        line_numbers=np.array([segment.line(0) for segment in segments], np.int64),
        groups=np.concatenate(groups) if groups else None,
        documents=np.concatenate(documents) if documents else None,
        labels={label: [name for segment in segments for name in segment.labels[label]] for label in one.labels},
        first=first,
    )
