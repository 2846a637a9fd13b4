"""The events at which models are compared: all of a text, or those of segments drawn at random."""

# Segments are drawn by what the tokenizer makes of them, before any model computes anything.

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.progress import say_progress
from lmgauge.scores.distributions.blocks import event_counts
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

    def sizes(self, events: int, segments: int) -> dict[str, Any]:
        """Return how many events and segments were looked at, and are in the text, by the names that results give them."""
        # events, segments: how many there were in `blocks`.
        segments = segments if self.segments is None else self.segments
        total_events, total_segments = self.total_events or events, self.total_segments or segments
        return {"events": events, "total_events": total_events, "segments": segments, "total_segments": total_segments}

    def say(self, what: str, done: int) -> None:
        """Say to who listens how many events are done."""
        say_progress(f"{what} {done:,}{'' if self.size is None else f' of {self.size:,}'} events")


class _Drawn(NamedTuple):
    """A segment in the draw, with its random number, its number in the text, and the events before it and in it."""

    key: float
    number: int
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
    drawn: list[_Drawn] = []  # the lowest keys first, as few as have the events
    bound, total_events, total_segments = math.inf, 0, 0
    runs_on = any(model.context_policy.runs_on for model in models)
    text: list[Segments] = []
    for block in corpus:
        counts = event_counts(models[0], block, seen=total_events)
        keys, befores = generator.random(len(block)), total_events + np.cumsum(counts) - counts
        for i in np.flatnonzero(keys < bound).tolist():
            own = block.part(i, i + 1)
            own = replace(own, data=own.data.copy())  # a view would hold the whole block in memory
            drawn.append(_Drawn(float(keys[i]), block.first + i, int(befores[i]), int(counts[i]), own))
        drawn.sort()
        enough = int(np.searchsorted(np.cumsum([one.events for one in drawn]), events)) + 1
        if enough <= len(drawn):
            drawn, bound = drawn[:enough], drawn[enough - 1].key
        if runs_on:
            text.append(block)
        total_events += int(counts.sum())
        total_segments += len(block)
    if not total_events:
        raise InputError("there is nothing to compare: the text has no event; name a text that is not empty")
    drawn.sort(key=lambda one: one.number)
    totals = (sum(one.events for one in drawn), len(drawn), total_events, total_segments)
    if runs_on:
        numbers = np.concatenate([np.arange(one.before, one.before + one.events) for one in drawn])
        return Sample(text, numbers, None, *totals)
    return Sample(list(_joined(drawn)), None, np.array([one.number for one in drawn], np.int64), *totals)


def _joined(chosen: Sequence[_Drawn]) -> Iterator[Segments]:
    # Segments in blocks, numbered from 0: those of one source that have not too many events together.
    bounds, events = [0], 0
    for i, (one, other) in enumerate(pairwise(chosen), 1):
        events += one.events
        if _kind(one.segment) != _kind(other.segment) or events >= _BLOCK_EVENTS:
            bounds.append(i)
            events = 0
    for begin, end in pairwise([*bounds, len(chosen)]):
        yield _block([one.segment for one in chosen[begin:end]], begin)


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
        turns=None if one.turns is None else [turn for segment in segments for turn in segment.turns or ()],
    )
