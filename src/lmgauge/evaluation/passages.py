"""Segments of the text with what each of their events cost: what a page colors. Chosen and read in one pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import DEFAULT_SEED
from lmgauge.evaluation.denominators import scored_text, segment_bytes
from lmgauge.evaluation.runs import Run, lockstep
from lmgauge.evaluation.slicing.cuts import Cuts, range_words
from lmgauge.evaluation.slicing.span_alignment import Floats, Ints, ranges_by_event, shared_ranges
from lmgauge.evaluation.slicing.sums import Cut
from lmgauge.numerics.largest import Largest
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import SEPARATOR, SPELLING, ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

WORST, IMPROVED, LOST, SAMPLE = "worst", "most improved", "most lost", "sample"
_EVENTS, _BYTES = 1200, 12_000
"""Most of a passage; the page stays small whatever its segments are."""
_EVENTS_IN_ALL = {1: 24_000, 2: 12_000}
"""Most of all passages, by the number of runs."""
_BYTES_IN_ALL = 240_000
_LEAD_BYTES = 1500  # of the text given before a passage
MOST_TOPS = 5
"""Most probable tokens that are shown of an event."""


@dataclass(frozen=True, eq=False)
class TopTokens:
    """The most probable tokens at some events, the most probable first."""

    tokens: NDArray[Any]  # strings [n, k]
    logprobs: Floats  # float64 [n, k], nats

    @classmethod
    def of(cls, table: ScoreBatch, rows: slice | NDArray[np.bool_]) -> TopTokens | None:
        """Return those of some rows, at most `MOST_TOPS` an event; None if the table has none."""
        # rows: which, as a slice or as bool [rows].
        if not {"top_tokens", "top_logprobs"} <= table.extra.keys():
            return None
        tokens, logprobs = (table.extra[name][rows, :MOST_TOPS] for name in ("top_tokens", "top_logprobs"))
        return cls(tokens, np.asarray(logprobs, np.float64))

    def first(self, count: int) -> TopTokens:
        """Return those of the first events."""
        return TopTokens(self.tokens[:count], self.logprobs[:count])


@dataclass(frozen=True, eq=False)
class Spans:
    """The events of one run in a passage, in order; all columns are as long."""

    ends: Ints  # int64 [n], the byte of the passage's UTF-8 text where each event ends; `</s>` ends where the text does
    bits: Floats  # float64 [n]; infinite for an event of probability zero
    kinds: NDArray[np.uint8]  # uint8 [n], index into `scores.KINDS`
    # more of each event, [n], as far as the run has it: `rank`, `entropy` (bits), `kl` (bits, of a run of `lmgauge
    # divergence`), `spelling`, `separator` (bits, see `spelled_parts`), `context` (matched order, or tokens of context
    # used), `occurrences` (of the word in the training text)
    columns: Mapping[str, NDArray[np.number[Any]]]
    # uint8 [n] for each way to cut the text, by its name: the slice that the event is in
    slices: Mapping[str, NDArray[np.unsignedinteger[Any]]]
    tops: TopTokens | None = None  # the most probable tokens at each event; None if the run does not have them


@dataclass(frozen=True, eq=False)
class Passage:
    """A segment, or its beginning where it is long."""

    segment: int  # index in the whole text, from 0
    where: str  # the id that the text gives it, or its file and line
    group: str  # it belongs to; empty where there are none
    why: tuple[str, ...]  # it was chosen: "worst", "most improved", "most lost", "sample"
    text: str
    bits: tuple[float, ...]  # of each run, the whole segment; infinite with an event of probability zero
    events: tuple[int, ...]  # of each run, in the whole segment
    size: int  # bytes of the whole segment, its line end included
    spans: tuple[Spans, ...]  # of each run, of the text shown
    is_cut: bool = False  # the segment goes on after the text shown
    lead: str = ""  # the text that is given before it, or its end where it is long; no run scores it


@dataclass(frozen=True)
class ChosenPassages:
    """Passages of a text, and how the scores of all its segments are distributed."""

    items: tuple[Passage, ...] = ()  # the passages, in the order to be shown: kind by kind, each once
    # for each way to cut the text the labels that `Spans.slices` number; only those that occur
    cuts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    scores: ScoreHistogram | None = None  # of all segments; None where nothing was read
    notes: tuple[str, ...] = ()  # what is not there, and why


def choose_passages(
    runs: Sequence[Run],
    corpus: Corpus | None,
    *,
    segments: int = 20,
    seed: int = DEFAULT_SEED,
    cuts: Cuts,
    averages: Sequence[float],
    named: Mapping[str, Sequence[int]] | None = None,
) -> ChosenPassages:
    """Read the segments that tell most of one run, or of two side by side, in one pass over tables and text."""
    # segments: of each kind: the worst, a sample, and of two runs those that changed most, either way.
    # corpus: the text they scored, read in the same way; without it there are only the scores of segments; averages: of
    # each run, bits per byte: segments are the worse, the more bits they cost beyond that.
    reading = _Reading(runs, corpus, segments, seed, cuts, averages, named or {})
    for block, tables in lockstep([run.batches() for run in runs], corpus, [run.name for run in runs]):
        reading.add(scored_text(block, [run.origin.policy for run in runs]), tables)
    return reading.finish()


class _Reading:
    """What is collected while tables and text go by."""

    def __init__(
        self,
        runs: Sequence[Run],
        corpus: Corpus | None,
        segments: int,
        seed: int,
        cuts: Cuts,
        averages: Sequence[float],
        named: Mapping[str, Sequence[int]],
    ) -> None:
        self.runs, self.corpus, self.cuts, self.averages = runs, corpus, cuts, averages
        self.named = {why: list(indices)[:segments] for why, indices in named.items()}
        self.leaders = {SAMPLE: Largest(segments)}
        if WORST not in named:
            self.leaders = {WORST: Largest(segments)} | self.leaders
        self.random = np.random.default_rng(seed)
        self.scores = SegmentScores(len(runs))
        self.spans = True
        self.passages: dict[int, Passage] = {}
        self.labels: dict[str, dict[int, str]] = {}

    def add(self, block: Segments | None, tables: Sequence[ScoreBatch]) -> None:
        bits, zeros = zip(*(_bits_of_segments(table) for table in tables), strict=True)
        impossible = np.sum(zeros, axis=0) > 0
        scored = np.any([table.segment_events > 0 for table in tables], axis=0)
        sizes = [
            table.segment_events if block is None else segment_bytes(block, table, run.origin.policy)
            for run, table in zip(self.runs, tables, strict=True)
        ]
        self.scores.add(bits, zeros, sizes)
        self.spans &= all(len(table.ends) == len(table) for table in tables)
        if block is None or not self.spans:
            return
        excess = np.sum([own - m * size for own, m, size in zip(bits, self.averages, sizes, strict=True)], axis=0)
        some = scored & (block.ends > block.starts)
        values = {SAMPLE: np.where(some, 1.0 - self.random.random(len(block)), 0.0)}
        values[WORST] = np.where(scored, excess, 0.0)
        if len(tables) > 1:
            values[WORST][impossible] = 0.0
        for why, leaders in self.leaders.items():
            positive = np.flatnonzero(values[why] > 0.0)
            leaders.add(block.first + positive, values[why][positive])
        wanted = {index for indices in (*self.named.values(), *map(list, self.leaders.values())) for index in indices}
        self.passages = {index: passage for index, passage in self.passages.items() if index in wanted}
        for index in sorted(i for i in wanted if block.first <= i < block.first + len(block) and scored[i - block.first]):
            self.passages[index] = self._read(block, tables, index - block.first)

    def _read(self, block: Segments, tables: Sequence[ScoreBatch], i: int) -> Passage:
        own = block.part(i, i + 1)
        rows = [table.of_segments(i, i + 1) for table in tables]
        bits = [nats_to_bits(-table.logprob) for table in rows]
        groups = self.corpus.group_names if self.corpus is not None else []
        passage = Passage(
            segment=own.first,
            where=own.ids[0] if own.ids is not None else f"{PurePath(own.source).name or own.source}:{own.line(0)}",
            group=groups[int(own.groups[0])] if own.groups is not None else "",
            why=(),
            text=own.text(0).decode("utf-8", "replace"),
            bits=tuple(float(column.sum()) for column in bits),
            events=tuple(len(table) for table in rows),
            size=own.byte_count(),
            spans=tuple(self._spans(own, rows, bits)),
            lead=lead_of(own.given_text(0)),
        )
        return _shortened(passage, _EVENTS, _BYTES)

    def _spans(self, own: Segments, rows: Sequence[ScoreBatch], bits: Sequence[Floats]) -> Iterator[Spans]:
        if len(rows) == 1:
            ranges = [ranges_by_event([table]) for table in rows]
            ways = [list(self.cuts.of_events(own, rows[0], ranges[0], spans=True))]
            of_event = [np.arange(len(rows[0]))]
        else:
            shared = shared_ranges(rows)
            ways = [list(self.cuts.of_spans(own, shared))] * len(rows)
            of_event = [np.repeat(np.arange(len(shared)), events) for events in shared.events]
        for table, own_bits, own_ways, codes in zip(rows, bits, ways, of_event, strict=True):
            slices = {way[0]: self._numbered(way)[codes].astype(np.uint32) for way in own_ways}
            tops = TopTokens.of(table, slice(None))
            yield Spans(table.ends, own_bits, table.kind, self._columns(own, table), slices, tops)

    def _numbered(self, way: Cut) -> Ints:
        # Slice of each range, and keep the names of these slices.
        name, labels, codes = way
        self.labels.setdefault(name, {}).update((code, labels[code]) for code in np.unique(codes).tolist())
        return codes

    def _columns(self, own: Segments, table: ScoreBatch) -> dict[str, NDArray[np.number[Any]]]:
        # What the run has of each event besides its bits.
        columns: dict[str, NDArray[Any]] = {name: table.extra[name] for name in ("rank", "context") if name in table.extra}
        for name in ("entropy", "kl"):
            if name in table.extra:
                columns[name] = nats_to_bits(np.asarray(table.extra[name], np.float64))
        columns |= spelled_parts(table)
        counts = self.cuts.word_counts(own)
        if counts is not None:
            spans = shared_ranges([table])
            words = range_words(own, spans)
            of_span = np.full(len(spans), -1, np.int64)
            of_span[words >= 0] = counts[words[words >= 0]]
            columns["occurrences"] = np.repeat(of_span, spans.events[0])
        return columns

    def finish(self) -> ChosenPassages:
        chosen: dict[int, list[str]] = {}
        by_kind = {why: [*self.leaders.get(why, self.named.get(why, []))] for why in _KINDS}
        for why, indices in by_kind.items():
            for index in indices:
                if index in self.passages:
                    chosen.setdefault(index, []).append(why)
        items = _within(
            [replace(self.passages[index], why=tuple(why)) for index, why in chosen.items()], _EVENTS_IN_ALL[len(self.runs)]
        )
        cuts = {name: {code: labels[code] for code in _codes(items, name)} for name, labels in self.labels.items()}
        return ChosenPassages(
            items=tuple(_renumbered(passage, cuts) for passage in items),
            cuts={name: tuple(labels.values()) for name, labels in cuts.items()},
            scores=self.scores.finish("byte" if self.corpus is not None else "event"),
            notes=tuple(self._notes(items)),
        )

    def _notes(self, items: Sequence[Passage]) -> Iterator[str]:
        if self.corpus is None:
            yield "the text is not available, so none of it is shown: name it with --text"
        elif not self.spans:
            yield "the table has no byte spans, so the text cannot be colored"
            return
        if any(run.origin.policy.leaves_out for run in self.runs):
            yield "text that a protocol leaves out is shown with the token that is scored after it"
        if any(passage.is_cut for passage in items):
            yield "long segments are cut to keep the page small; all counts are of whole segments"


_KINDS = (WORST, IMPROVED, LOST, SAMPLE)


def lead_of(given_text: bytes) -> str:
    """Return text that is given before a segment as it is shown: its end, where it is long."""
    end = given_text[-_LEAD_BYTES:].decode("utf-8", "ignore")
    return f"… {end}" if len(given_text) > _LEAD_BYTES else end


def _bits_of_segments(table: ScoreBatch) -> tuple[Floats, Ints]:
    # Bits of the possible events of each segment, and how many of its events are impossible.
    count = len(table.segments)
    owner = np.repeat(np.arange(count), table.segment_events)
    zero = np.isinf(table.logprob)
    bits = np.where(zero, 0.0, nats_to_bits(-table.logprob))
    sums: Floats = np.bincount(owner, bits, count).astype(np.float64)
    return sums, np.bincount(owner, zero, count).astype(np.int64)


def _shortened(passage: Passage, most_events: int, most_bytes: int) -> Passage:
    text = passage.text.encode()
    fits = all(len(spans.ends) <= most_events for spans in passage.spans)
    if fits and len(text) <= most_bytes:
        return passage
    end = min([most_bytes, len(text), *(int(s.ends[most_events - 1]) for s in passage.spans if len(s.ends) > most_events)])
    shared = passage.spans[0].ends
    for spans in passage.spans[1:]:
        shared = np.intersect1d(shared, spans.ends)
    shared = shared[(shared > 0) & (shared <= end)]
    end = int(shared.max()) if len(shared) else end
    shown = text[:end].decode("utf-8", "ignore")
    end = len(shown.encode())
    first = tuple(_first_events(spans, end, most_events) for spans in passage.spans)
    return replace(passage, text=shown, spans=first, is_cut=True)


def _first_events(spans: Spans, end: int, most: int) -> Spans:
    # Events of the text before a byte, and the one that goes on behind it if there is no other.
    count = min(most, max(1, int(np.searchsorted(spans.ends, end, side="right"))))
    columns = {name: column[:count] for name, column in spans.columns.items()}
    slices = {name: codes[:count] for name, codes in spans.slices.items()}
    tops = None if spans.tops is None else spans.tops.first(count)
    return Spans(np.minimum(spans.ends[:count], end), spans.bits[:count], spans.kinds[:count], columns, slices, tops)


def _within(passages: Sequence[Passage], events: int) -> list[Passage]:
    # Passages that have no more events and bytes in all than a page holds: the longest ones are cut further.
    most_events = _fair_share([max(len(spans.ends) for spans in passage.spans) for passage in passages], events)
    most_bytes = _fair_share([len(passage.text.encode()) for passage in passages], _BYTES_IN_ALL)
    return [_shortened(passage, most_events, most_bytes) for passage in passages]


def _fair_share(sizes: Sequence[int], whole: int) -> int:
    # What none may exceed, so that all of these together are no more than the whole.
    # _fair_share([1, 10, 100], 31) -> 20
    left, rest = len(sizes), whole
    for size in sorted(sizes):
        if size * left > rest:
            return max(1, rest // left)
        left, rest = left - 1, rest - size
    return max([1, *sizes])


def _codes(passages: Sequence[Passage], cut: str) -> list[int]:
    codes = [spans.slices[cut] for passage in passages for spans in passage.spans if cut in spans.slices]
    return np.unique(np.concatenate(codes)).tolist() if codes else []


def _renumbered(passage: Passage, cuts: Mapping[str, Mapping[int, str]]) -> Passage:
    places = {name: {code: place for place, code in enumerate(labels)} for name, labels in cuts.items()}

    def renumbered(spans: Spans) -> Spans:
        slices = {
            name: np.array([places[name][code] for code in codes.tolist()], np.uint8) for name, codes in spans.slices.items()
        }
        return replace(spans, slices=slices)

    return replace(passage, spans=tuple(map(renumbered, passage.spans)))


MOST_BINS = 60
_BINS = 50  # across all but the outermost segments; bins of a round width are up to two more
_OUTERMOST = 0.5  # per cent, at either end


@dataclass(frozen=True)
class ScoreHistogram:
    """How many segments cost how much."""

    unit: str  # what bits are per: "byte", or "event" where the text is not available
    edges: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]  # for each run the segments in each bin
    infinite: tuple[int, ...]  # of each run the segments with an event of probability zero, which are in no bin
    beyond: int  # segments of all runs that lie outside the edges, counted in the outermost bins


class SegmentScores:
    """Collects the scores of segments, block by block: 8 bytes a segment and run."""

    def __init__(self, runs: int) -> None:
        self._scores: list[list[Floats]] = [[] for _ in range(runs)]
        self._infinite = [0] * runs

    def add(self, bits: Sequence[Floats], zeros: Sequence[Ints], sizes: Sequence[Ints]) -> None:
        """Add the segments of a block; those of size 0 do not count."""
        # bits: of each run float64 [segments], of the events that are possible; zeros: of each run int64 [segments], the
        # events of probability zero; sizes: of each run int64 [segments], bytes or events.
        for k, (own, impossible, size) in enumerate(zip(bits, zeros, sizes, strict=True)):
            finite = (size > 0) & (impossible == 0)
            self._scores[k].append(own[finite] / size[finite])
            self._infinite[k] += int(np.count_nonzero(impossible))

    def finish(self, unit: str) -> ScoreHistogram | None:
        """Return how many segments are in each bin; None where there are no finite scores."""
        scores = [np.concatenate(parts) if parts else np.zeros(0) for parts in self._scores]
        together = np.concatenate(scores)
        if not len(together):
            return None
        low, high = np.percentile(together, (_OUTERMOST, 100 - _OUTERMOST)).tolist()
        edges = _round_edges(low, high)
        inner, bins = np.array(edges[1:-1]), len(edges) - 1
        in_bins = [np.bincount(np.searchsorted(inner, own, side="right"), minlength=bins) for own in scores]
        counts = tuple(tuple(own.tolist()) for own in in_bins)
        beyond = int(np.count_nonzero((together < edges[0]) | (together > edges[-1])))
        return ScoreHistogram(unit, edges, counts, tuple(self._infinite), beyond)


def _round_edges(low: float, high: float) -> tuple[float, ...]:
    """Return edges at round numbers that hold a range between them.

    >>> _round_edges(0.9, 51.2)[:3], len(_round_edges(0.9, 51.2))
    ((0.0, 2.0, 4.0), 27)
    """
    width = (high - low) / _BINS or max(abs(low), 1.0) / _BINS
    power = 10.0 ** math.floor(math.log10(width))
    # A width of 1.006 becomes 2, as 1 is below it: steps are 1, 2, 5 or 10 times a power of ten.
    step = next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= width * (1 - 1e-9))
    first, last = math.floor(low / step), math.floor(high / step) + 1
    places = max(0, 1 - math.floor(math.log10(step)))
    return tuple(round(k * step, places) for k in range(first, last + 1))


def spelled_parts(table: ScoreBatch) -> dict[str, NDArray[np.float64]]:
    """Return what of the bits of events is letters and white space, [rows], by column.

    >>> from lmgauge.scores import example_batch
    >>> spelled_parts(example_batch())
    {}
    """
    # Empty of a model that spells nothing.
    return {name: nats_to_bits(-table.extra[name]) for name in (SPELLING, SEPARATOR) if name in table.extra}
