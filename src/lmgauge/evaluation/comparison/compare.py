"""Two results side by side: may they be compared, is the difference real, and where does it come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import DEFAULT_SEED
from lmgauge.errors import InputError, UsageError
from lmgauge.evaluation.comparison.comparability import (
    ALTERED,
    EXACT_PART,
    NOTHING,
    SHARED_EVENTS,
    WHOLE,
    Facts,
    agreements,
    bound_reasons,
    gather_facts,
    verdicts,
)
from lmgauge.evaluation.comparison.documents import Documents, choose_documents
from lmgauge.evaluation.comparison.paired_segments import PairedSegments
from lmgauge.evaluation.comparison.results import SIGNIFICANT, Comparison, Comparisons, Difference
from lmgauge.evaluation.runs import Run, about, lockstep, remembered, with_distinct_names
from lmgauge.evaluation.slicing.examples import ExampleHeap
from lmgauge.evaluation.slicing.ranges import (
    Floats,
    Ints,
    Ranges,
    exact_sums,
    extents,
    inexact_rows,
    kinds_within,
    ranges_by_event,
    shared_ranges,
    whole_segments,
)
from lmgauge.evaluation.slicing.slices import (
    CLASSES,
    FREQUENCY_BANDS,
    POSITION_STARTS,
    band_labels,
    frequency_bands,
    position_bands,
    range_classes,
    range_sizes,
    range_words,
    segment_groups,
)
from lmgauge.evaluation.slicing.sums import Slices, SliceSums
from lmgauge.numerics.exact import ExactSums, exact_to_nats
from lmgauge.numerics.independence import caveats, in_words
from lmgauge.numerics.intervals import DOCUMENTS, Interval, Spread
from lmgauge.numerics.resampling import DEFAULT_TRIALS, check_draws
from lmgauge.numerics.significance import holm
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats, perplexity_ratio_from_nats
from lmgauge.scores import EOS_KIND, OOV, ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

WordCounts = Callable[[Segments], Ints]
_UNITS = ("event", "byte", "character", "word")


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """How runs are compared.

    Attributes:
        resamples: draws of the permutation test.
        seed: of the draws.
        threads: how many; no number depends on it.
        examples: how many segments and tokens to show of each kind.

    Raises:
        UsageError: a number is out of range.
    """

    resamples: int = DEFAULT_TRIALS
    seed: int = DEFAULT_SEED
    threads: int | None = None
    examples: int = 5

    def __post_init__(self) -> None:
        check_draws(self.resamples, self.seed)
        if self.examples < 0:
            raise UsageError(f"examples must be a whole number, 0 or more; got {self.examples}")


def compare(
    runs: Sequence[Run],
    settings: ComparisonSettings | None = None,
    *,
    corpus: Corpus | None = None,
    documents_of_text: bool = False,
    counts: WordCounts | None = None,
) -> Comparisons:
    """Compare runs with the first of them.

    Args:
        runs: two or more.
        settings: numbers of draws, examples and threads; the defaults if None.
        corpus: the text they scored; if not given, what the first run that remembers one says.
        documents_of_text: what the text says of documents counts, and not what the runs remember.
        counts: how often the words of a block occur in a training text, int64 [words of the block].

    Raises:
        InputError: a table breaks its rules, or the text is not the one that was scored.
        UsageError: fewer than two runs.
    """
    if len(runs) < 2:
        raise UsageError("a comparison needs two runs or more")
    settings = settings or ComparisonSettings()
    runs = with_distinct_names(runs)
    if corpus is not None:
        runs = [about(run, corpus) for run in runs]
    at_hand = corpus or remembered(runs[0])
    texts = [at_hand or remembered(runs[0], run) for run in runs[1:]]
    facts = [gather_facts(runs[0], run, text) for run, text in zip(runs[1:], texts, strict=True)]
    items = []
    for run, fact, text in zip(runs[1:], facts, texts, strict=True):
        named = [tally.per_segment().documents if tally.names_documents else None for tally in fact.totals]
        documents = choose_documents((runs[0], run), named, text, asked=documents_of_text)
        pair = _Pair((runs[0], run), fact, text, documents, counts, settings)
        items.append(pair.compare(level=1 - SIGNIFICANT / len(facts)))
    adjusted = holm([item.p_value for item in items])
    items = [replace(item, p_value_holm=p) for item, p in zip(items, adjusted, strict=True)]
    items = [replace(item, units_needed=None) if item.significant else item for item in items]
    return Comparisons(tuple(items), tuple(run.name for run in runs), agreements(runs, facts))


class _Pair:
    """The comparison of one pair of runs."""

    def __init__(
        self,
        runs: tuple[Run, Run],
        facts: Facts,
        corpus: Corpus | None,
        documents: Documents,
        counts: WordCounts | None,
        settings: ComparisonSettings,
    ) -> None:
        self.runs, self.facts, self.corpus, self.counts = runs, facts, corpus, counts
        self.documents, self.settings = documents, settings
        self.verdicts, self.part = verdicts(*runs, facts)
        self.by_event = self.part == SHARED_EVENTS
        self.by_segment = self.part == WHOLE and not facts.spans
        self.unit = "event" if self.by_event or (self.by_segment and corpus is None) else "byte"
        self.per_segment = PairedSegments()
        self.totals = [0, 0]
        self.zeros = [0, 0]
        self.bytes_in_all = 0
        self.slices = [SliceSums("position in the segment", band_labels(POSITION_STARTS), 2)]
        if corpus is not None:
            self.slices = [SliceSums("group", [], 2), SliceSums("class", CLASSES, 2), *self.slices]
        if corpus is not None and counts is not None:
            self.slices.append(SliceSums("occurrences in training", FREQUENCY_BANDS, 2))
        if self.by_segment:
            self.slices = [part for part in self.slices if part.name == "group"]
        self.segment_heap, self.token_heap = ExampleHeap(settings.examples), ExampleHeap(settings.examples)

    def compare(self, level: float) -> Comparison:
        """Reads the tables and the text once more and sums up; `level` is what a difference must hold to be found."""
        if self.part != NOTHING:
            tables: list[Iterable[ScoreBatch]] = [run.batches() for run in self.runs]
            if self.part == SHARED_EVENTS:
                tables[1] = _without_spans(tables[1])  # they are of another text than the one at hand
            for block, batches in lockstep(tables, self.corpus, [run.name for run in self.runs]):
                self._add(block, batches)
        return self._finish(level)

    def _add(self, block: Segments | None, tables: Sequence[ScoreBatch]) -> None:
        if block is not None and not (self.by_event or self.by_segment):
            _check_covered(tables, block, [run.name for run in self.runs])
        ranges = self._ranges(block, tables)
        chosen = self._chosen(block, tables, ranges)
        sums = [exact_sums(table, events) for table, events in zip(tables, ranges.events, strict=True)]
        sizes = range_sizes(block, ranges)
        if block is None and self.unit == "byte" and self._line_end() == 0:
            sizes[_ends_segment(ranges), 0] -= 1
        self.bytes_in_all += int(sizes[:, 0].sum())
        kept, kept_sums = _only(ranges, chosen), [_only_sums(part, chosen) for part in sums]
        columns = np.column_stack((kept.events[1], sizes[chosen])).astype(np.float64)
        self._add_segments(kept, kept_sums, columns, len(tables[0].segments))
        documents = self.documents.of(block, tables)
        if documents is not None:
            self.per_segment.documents.append(documents)
        first = int(tables[0].segments[0]) if len(tables[0].segments) else 0
        unit = columns[:, 1 if self.unit == "byte" else 0].astype(np.int64)
        for slices, codes in zip(self.slices, self._codes(block, kept), strict=True):
            slices.add(codes, kept.segment, kept_sums, unit, first=first, documents=documents)
        if block is not None:
            self._add_examples(block, kept, kept_sums)

    def _ranges(self, block: Segments | None, tables: Sequence[ScoreBatch]) -> Ranges:
        if self.by_event:
            return ranges_by_event(tables)
        return whole_segments(tables, block) if self.by_segment else shared_ranges(tables, silent=block is not None)

    def _line_end(self) -> int | None:
        """Bytes of a line end, 1 or 0, as a run's own count of the bytes tells without the text; None if it does not."""
        counts = (run.evaluation for run in self.runs if run.evaluation is not None)
        known = next(((c["bytes"], c["segments"]) for c in counts if c.get("bytes") and c.get("segments")), None)
        if known is None or known[0] - self.facts.span_bytes not in (0, known[1]):
            return None
        return int(known[0] > self.facts.span_bytes)

    def _chosen(self, block: Segments | None, tables: Sequence[ScoreBatch], ranges: Ranges) -> NDArray[np.bool_]:
        """Which ranges are compared."""
        chosen = np.ones(len(ranges), bool)
        if self.part == EXACT_PART:
            for run, table, events in zip(self.runs, tables, ranges.events, strict=True):
                chosen &= kinds_within(table, events, OOV) == 0
                if run.description.lossy_segments and run.description.unit == "word":
                    spaced = run.description.fingerprints.get("tokenizer_name", "whitespace") == "whitespace"
                    inexact = np.concatenate(([0], np.cumsum(inexact_rows(table, block, spaced=spaced))))
                    bounds = np.concatenate(([0], np.cumsum(events)))
                    chosen &= inexact[bounds[1:]] == inexact[bounds[:-1]]
                elif run.description.lossy_segments:
                    chosen[:] = False
            ends = [kinds_within(table, events, EOS_KIND) for table, events in zip(tables, ranges.events, strict=True)]
            chosen &= ends[0] == ends[1]
        elif self.part == SHARED_EVENTS:
            a, b = tables
            known = np.array([a.strings.tokens[i] for i in a.token_ids.tolist()], object)
            other = np.array([b.strings.tokens[i] for i in b.token_ids.tolist()], object)
            chosen = (known == other) & (known != "") & (a.kind == b.kind) & (a.kind != OOV)
        return chosen

    def _add_segments(self, ranges: Ranges, sums: Sequence[ExactSums], columns: Floats, segments: int) -> None:
        whole = np.zeros(len(ranges), np.int64)
        zeros = np.zeros(segments, np.int64)
        for k, part in enumerate(sums):
            self.totals[k] += part.totals(whole, 1)[0]
            self.zeros[k] += int(part.zeros.sum())
            zeros += np.bincount(ranges.segment, part.zeros, segments).astype(np.int64)
            nats = part.nats()
            nats[np.isinf(nats)] = 0.0
            self.per_segment.nats[k].append(_by_segment(ranges, nats, segments))
        self.per_segment.zeros.append(zeros)
        self.per_segment.sizes.append(np.column_stack([_by_segment(ranges, column, segments) for column in columns.T]))

    def _codes(self, block: Segments | None, ranges: Ranges) -> Iterator[Ints]:
        """The codes of the ranges in each way to cut the text, as the collectors stand."""
        if block is not None:
            # Groups that a field names are found while reading.
            self.slices[0].labels = (self.corpus.group_names if self.corpus else []) or ["all"]
            yield segment_groups(block)[ranges.segment]
        if self.by_segment:
            return
        if block is not None:
            yield range_classes(block, ranges)
        yield position_bands(ranges.position)
        if block is not None and self.counts is not None:
            yield frequency_bands(self.counts(block), range_words(block, ranges))

    def _add_examples(self, block: Segments, ranges: Ranges, sums: Sequence[ExactSums]) -> None:
        nats = [part.nats() for part in sums]
        finite = np.isfinite(nats[0]) & np.isfinite(nats[1])
        bits: list[Floats] = [nats_to_bits(-part) for part in nats]
        kept = [np.where(finite, part, 0.0) for part in bits]
        if not self.by_segment:
            self.token_heap.add_ranges(block, ranges, kept[1] - kept[0], bits)
        whole = [_by_segment(ranges, part, len(block)) for part in kept]
        gains = whole[1] - whole[0]
        gains[ranges.segment[~finite]] = 0.0
        self.segment_heap.add_segments(block, gains, whole)

    def _finish(self, level: float) -> Comparison:
        paired = self.per_segment.joined()
        zeros, sizes, used = paired.zeros, paired.sizes, paired.used
        spreads = paired.spreads()
        shown = [part for part, unit in zip(spreads, _UNITS, strict=True) if self._shows(unit)]
        lead = next((part for part in (*shown, *spreads) if part is not None), None)
        tested = None if zeros.any() else lead
        draws = self.settings
        p_value = None if tested is None else paired.p_value(tested, draws.resamples, draws.seed, draws.threads)
        intervals = [None if part is None else part.interval() for part in spreads]
        exact = [-math.inf if count else exact_to_nats(total) for count, total in zip(self.zeros, self.totals, strict=True)]
        nothing: list[Interval | None] = [None] * len(_UNITS)
        differences = tuple(self._differences(exact, sizes.sum(axis=0), nothing if zeros.any() else intervals))
        finite = [math.fsum(part[used]) for part in paired.nats] if zeros.any() else []
        without_zeros = tuple(self._differences(finite, sizes[used].sum(axis=0), intervals)) if zeros.any() else ()
        if not differences and self.part != NOTHING:
            self.part = NOTHING
            self.verdicts = tuple(replace(verdict, nearest=None) for verdict in self.verdicts)
        slices = tuple(self._slices())
        return Comparison(
            first=self.runs[0].name,
            second=self.runs[1].name,
            verdicts=self.verdicts,
            part=self.part,
            bytes=None if self.unit == "event" else int(sizes[:, 1].sum()),
            bytes_in_all=None if self.unit == "event" else self.bytes_in_all,
            events=int(sizes[:, 0].sum()),
            lower_bounds=self._lower_bounds(),
            differences=differences,
            without_zeros=without_zeros,
            p_value=p_value if differences else None,
            p_value_holm=None,
            segments=int(np.count_nonzero(used)),
            segments_with_zeros=int(np.count_nonzero(zeros)),
            unit="" if lead is None else lead.unit,
            units=0 if lead is None else lead.units,
            units_needed=None if tested is None else tested.units_needed(level),
            independence="" if lead is None else in_words(lead, self.documents.by),
            doubts=tuple(f"{run.name}: {why}" for run, why in zip(self.runs, self.facts.first_tokens, strict=True) if why),
            slices=slices,
            segments_lost=self.segment_heap.worst(),
            segments_won=self.segment_heap.best(),
            tokens_lost=self.token_heap.worst(),
            tokens_won=self.token_heap.best(),
            notes=tuple(self._notes(int(np.count_nonzero(used)), int(np.count_nonzero(zeros)), lead, slices)),
        )

    def _differences(
        self, nats: Sequence[float], totals: Floats, intervals: Sequence[Interval | None]
    ) -> Iterator[Difference]:
        """The figures that the part allows: perplexity where it may be compared, bits per byte and so on."""
        for k, unit in enumerate(_UNITS):
            size = float(totals[k])
            if not size or not self._shows(unit):
                continue
            metric = _metric(unit)
            figures = [0.0 - part / size for part in nats]  # never -0.0
            interval = intervals[k]
            if unit == "event":
                a, b = (perplexity_from_nats(value) for value in figures)
                finite = all(map(math.isfinite, figures))
                ratio = perplexity_ratio_from_nats(figures[1] - figures[0]) if finite else _quotient(a, b)
                mapped = None if interval is None else interval.mapped(perplexity_ratio_from_nats)
                yield Difference(metric, a, b, ratio, mapped)
            else:
                a, b = (nats_to_bits(value) for value in figures)
                gap = nats_to_bits(figures[1] - figures[0]) if all(map(math.isfinite, figures)) else _gap(a, b)
                yield Difference(metric, a, b, gap, None if interval is None else interval.mapped(nats_to_bits))

    def _shows(self, unit: str) -> bool:
        """Return True if the part that is compared allows a figure per this unit."""
        if self.part == WHOLE:
            return any(verdict.comparable for verdict in self.verdicts if verdict.metric == _metric(unit))
        return unit == {EXACT_PART: "byte", SHARED_EVENTS: "event"}.get(self.part)

    def _slices(self) -> Iterator[Slices]:
        for collected in self.slices:
            slices = collected.finish(self.unit)
            if slices.rows and not (slices.name == "group" and len(slices.rows) == 1):
                yield slices

    def _lower_bounds(self) -> tuple[bool, bool]:
        if self.part != WHOLE:
            return False, False
        first, second = (
            bool(bound_reasons(run.description, tally)) for run, tally in zip(self.runs, self.facts.totals, strict=True)
        )
        return first, second

    def _notes(self, tested: int, untested: int, lead: Spread | None, slices: Sequence[Slices]) -> Iterator[str]:
        for run, zeros in zip(self.runs, self.zeros, strict=True):
            if zeros:
                rest = "'without' leaves out the segments they are in" if tested else "no segment is without"
                yield (
                    f"{run.name}: {zeros:,} events have probability zero: its figures are infinite and no test can be made; "
                    + rest
                )
        if self.by_segment:
            yield "a table has no byte spans: compared are whole segments, and whether all bytes were scored was not checked"
        if self.part != NOTHING and tested + untested < 2:
            yield "there is only one segment, so there is no interval and no test"
        yield from caveats(lead, tested=not any(self.zeros))
        yield from self.documents.notes if lead is not None else ()
        rows = [row for part in slices for row in part.rows if row.segments > 1 and row.difference is not None]
        if lead is not None and lead.unit == DOCUMENTS and any(row.interval is None for row in rows):
            yield "a slice that is within one document has no interval: its segments are not independent"
        if self.part == NOTHING:
            for run in self.runs:
                if run.description.lossy_segments and run.description.unit != "word":
                    first = not run.description.policy.scores_first_tokens
                    why = "first tokens not scored" if first else ALTERED
                    yield (
                        f"{run.name}: {run.description.lossy_segments:,} segments are not exact ({why}); a score table does "
                        "not tell which, so no part of the text is known to be exact"
                    )
        if self.part == NOTHING and self.facts.same_lengths_shuffled:
            yield "the segments of both have the same lengths, in another order: the same text, shuffled?"
        if self.part not in (NOTHING, SHARED_EVENTS) and self.corpus is None:
            yield "the text is not at hand: name it with --text for groups, classes and examples"
            if self.unit == "byte" and self._line_end() is None:
                yield "without the text each segment is taken to have a line end, which counts as a byte"
            if self.part == EXACT_PART and any(run.description.lossy_segments for run in self.runs):
                yield "without the text any white space of one byte between words passes for a space, which words give back"
        contexts = {run.description.context for run in self.runs}
        if self.part == WHOLE and len(contexts) > 1:
            yield f"contexts differ ({' / '.join(run.description.context for run in self.runs)}): part of what is compared"
        if self.part == EXACT_PART:
            for run, tally in zip(self.runs, self.facts.totals, strict=True):
                if tally.events[OOV]:
                    yield f"{run.name} is compared only where it knows the {run.description.unit}s, which favours it"
        vocabularies = {run.description.fingerprints.get("vocabulary", run.name) for run in self.runs}
        if self.part == SHARED_EVENTS and len(vocabularies) > 1:
            yield (
                "a smaller vocabulary makes the words it knows cheaper: of two models over different vocabularies the one "
                "with fewer words is favoured here"
            )


def _metric(unit: str) -> str:
    return "perplexity" if unit == "event" else f"bits_per_{unit}"


def _without_spans(table: Iterable[ScoreBatch]) -> Iterator[ScoreBatch]:
    for batch in table:
        yield replace(batch, ends=batch.ends[:0])


def _ends_segment(ranges: Ranges) -> NDArray[np.bool_]:
    """bool [ranges], whether a range is the last of its segment."""
    last = np.ones(len(ranges), bool)
    last[:-1] = ranges.segment[1:] != ranges.segment[:-1]
    return last


def _by_segment(ranges: Ranges, values: Floats, segments: int) -> Floats:
    """Sums over the ranges of each segment."""
    return np.asarray(np.bincount(ranges.segment, values, segments), np.float64)


def _check_covered(tables: Sequence[ScoreBatch], block: Segments, names: Sequence[str]) -> None:
    """Holds the ends of the segments of tables against those of the text: none may stop before."""
    lengths = block.ends - block.starts
    for name, table in zip(names, tables, strict=True):
        short = np.flatnonzero(extents(table) < lengths)
        if len(short):
            raise InputError(
                f"{name}: the spans of segment {block.first + short[0]} end at byte {extents(table)[short[0]]}, but it has "
                f"{lengths[short[0]]} in the text; is it the same text?"
            )


def _quotient(first: float, second: float) -> float:
    if math.isinf(first):
        return 1.0 if math.isinf(second) else 0.0
    return math.inf


def _gap(first: float, second: float) -> float:
    if math.isinf(first):
        return 0.0 if math.isinf(second) else -math.inf
    return math.inf


def _only(ranges: Ranges, chosen: NDArray[np.bool_]) -> Ranges:
    return Ranges(
        ranges.segment[chosen],
        ranges.starts[chosen],
        ranges.ends[chosen],
        ranges.position[chosen],
        tuple(events[chosen] for events in ranges.events),
    )


def _only_sums(sums: ExactSums, chosen: NDArray[np.bool_]) -> ExactSums:
    return ExactSums(sums.high[chosen], sums.low[chosen], sums.zeros[chosen])
