"""Two results side by side: may they be compared, is the difference real, and where does it come from."""

# `comparability.py` reads what the tables state and says what may be compared, `PairSums` collects it in a second pass over
# tables and text, and `judge` tests the difference and adds what a reader must know.

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.option_numbers import check_whole
from lmgauge.evaluation.comparison.comparability import (
    EXACT_PART,
    NOTHING,
    SHARED_EVENTS,
    WHOLE,
    Documents,
    Facts,
    Verdict,
    agreements,
    bounds_of,
    choose_documents,
    gather_facts,
    verdicts,
)
from lmgauge.evaluation.comparison.results import ROUNDING, SIGNIFICANT, Comparison, Comparisons, Difference
from lmgauge.evaluation.denominators import scored_text
from lmgauge.evaluation.event_sums import Paired
from lmgauge.evaluation.origin import lossy_reason
from lmgauge.evaluation.runs import Run, about, lockstep, remembered, with_distinct_names
from lmgauge.evaluation.sampled import joined
from lmgauge.evaluation.slicing import span_alignment as aligned
from lmgauge.evaluation.slicing.cuts import Cuts, TrainingWords, range_sizes
from lmgauge.evaluation.slicing.examples import ExampleHeap
from lmgauge.evaluation.slicing.span_alignment import Floats, Ints, Ranges
from lmgauge.evaluation.slicing.sums import CutSums, Slices
from lmgauge.numerics.exact import ExactSums, exact_sum, exact_to_nats
from lmgauge.numerics.figures import COMPARED, Figure
from lmgauge.numerics.independence import caveats, in_words
from lmgauge.numerics.intervals import DOCUMENTS, FEWEST_UNITS, Spread
from lmgauge.numerics.resampling import holm_adjusted
from lmgauge.numerics.units import difference_to_scale, nats_to_bits, nats_to_scale
from lmgauge.scores import EOS_KIND, OOV, ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments


class PairSums:
    """Collects what is compared of two runs, block by block."""

    def __init__(
        self,
        runs: tuple[Run, Run],
        facts: Facts,
        part: str,
        corpus: Corpus | None,
        documents: Documents,
        training: TrainingWords | None = None,
        examples: int = 5,
    ) -> None:
        self.runs, self.facts, self.part, self.corpus = runs, facts, part, corpus
        self.documents, self._cuts = documents, Cuts(corpus, training)
        self.by_event = part == SHARED_EVENTS
        self.by_segment = part == WHOLE and not facts.spans
        self.unit = "event" if self.by_event or (self.by_segment and corpus is None) else "byte"
        nothing = np.zeros(0)
        self.per_segment = [Paired((nothing, nothing), nothing.astype(np.int64), np.zeros((0, 4)), None)]
        self.totals, self.zeros, self.bytes_in_all = [0, 0], [0, 0], 0
        self.slices = CutSums()
        self.segments, self.tokens = ExampleHeap(examples), ExampleHeap(examples)

    def add(self, block: Segments | None, tables: Sequence[ScoreBatch]) -> None:
        """Add a block of the text (None without one), and the rows that each of the two tables has of its segments."""
        left_out = any(run.origin.policy.leaves_out for run in self.runs)
        if block is not None and not (self.by_event or self.by_segment or left_out):
            _check_covered(tables, block, [run.name for run in self.runs])
        ranges = self._ranges(block, tables)
        chosen = self._chosen(block, tables, ranges)
        sums = [aligned.exact_sums(table, events) for table, events in zip(tables, ranges.events, strict=True)]
        sizes = range_sizes(block, ranges)
        if block is None and self.unit == "byte" and self.line_end() != 0:
            sizes[ranges.ends_segment(), 0] += 1
        self.bytes_in_all += int(sizes[:, 0].sum())
        ends = np.any([aligned.kinds_within(*pair, EOS_KIND) for pair in zip(tables, ranges.events, strict=True)], axis=0)
        ranges = _only(ranges, chosen)
        sums = [ExactSums(part.high[chosen], part.low[chosen], part.zeros[chosen]) for part in sums]
        columns = np.column_stack((ranges.events[1], sizes[chosen])).astype(np.float64)
        documents = self.documents.of(block, tables)
        self._add_segments(ranges, sums, columns, len(tables[0].segments), documents)
        first = int(tables[0].segments[0]) if len(tables[0].segments) else 0
        unit = columns[:, 1 if self.unit == "byte" else 0].astype(np.int64)
        cuts = self._cuts.of_spans(block, ranges, spans=not self.by_segment)
        self.slices.add(cuts, ranges.segment, sums, unit, first=first, documents=documents)
        if block is not None:
            self._add_examples(block, ranges, sums, ends[chosen])

    def _ranges(self, block: Segments | None, tables: Sequence[ScoreBatch]) -> Ranges:
        if self.by_event:
            return aligned.ranges_by_event(tables)
        if self.by_segment:
            return aligned.whole_segments(tables, block)
        return aligned.shared_ranges(tables, silent=block is not None)

    def line_end(self) -> int | None:
        """Return the bytes of a line end, 1 or 0, as a run's policy or own count of bytes tells; None if neither does."""
        if not any(run.origin.policy.counts_line_ends for run in self.runs):
            return 0
        counts = (run.evaluation for run in self.runs if run.evaluation is not None)
        known = next(((c["bytes"], c["segments"]) for c in counts if c.get("bytes") and c.get("segments")), None)
        if known is None or known[0] - self.facts.span_bytes not in (0, known[1]):
            return None
        return int(known[0] > self.facts.span_bytes)

    def _chosen(self, block: Segments | None, tables: Sequence[ScoreBatch], ranges: Ranges) -> NDArray[np.bool_]:
        chosen = np.ones(len(ranges), bool)
        if self.part == EXACT_PART:
            for run, table, events in zip(self.runs, tables, ranges.events, strict=True):
                chosen &= aligned.kinds_within(table, events, OOV) == 0
                if run.origin.lossy_segments and run.origin.rows_tell_losses:
                    spaced = run.origin.fingerprints.get("tokenizer_name", "whitespace") == "whitespace"
                    # A range is exact if as many inexact rows come before its end as before its beginning: rows [0, 1, 0],
                    # events [2, 1] -> inexact [0, 0, 1, 1], bounds [0, 2, 3] -> [0 != 1, 1 == 1].
                    inexact = np.concatenate(([0], np.cumsum(aligned.inexact_rows(table, block, spaced=spaced))))
                    bounds = np.concatenate(([0], np.cumsum(events)))
                    chosen &= inexact[bounds[1:]] == inexact[bounds[:-1]]
                elif run.origin.lossy_segments:
                    chosen[:] = False
            pairs = zip(tables, ranges.events, strict=True)
            ends = [aligned.kinds_within(table, events, EOS_KIND) for table, events in pairs]
            # Where one model predicts the end of a line and the other does not, the last range has an event more in one of
            # them.
            chosen &= ends[0] == ends[1]
        elif self.part == SHARED_EVENTS:
            a, b = tables
            known = np.array([a.strings.tokens[i] for i in a.token_ids.tolist()], object)
            other = np.array([b.strings.tokens[i] for i in b.token_ids.tolist()], object)
            chosen = (known == other) & (known != "") & (a.kind == b.kind) & (a.kind != OOV)
        return chosen

    def _add_segments(
        self, ranges: Ranges, sums: Sequence[ExactSums], columns: Floats, segments: int, documents: Ints | None
    ) -> None:
        whole = np.zeros(len(ranges), np.int64)
        costs: list[Floats] = []
        zeros = np.zeros(segments, np.int64)
        for k, part in enumerate(sums):
            self.totals[k] += part.totals(whole, 1)[0]
            self.zeros[k] += int(part.zeros.sum())
            zeros += np.bincount(ranges.segment, part.zeros, segments).astype(np.int64)
            nats = part.nats()
            nats[np.isinf(nats)] = 0.0
            costs.append(_by_segment(ranges, nats, segments))
        sizes = np.column_stack([_by_segment(ranges, column, segments) for column in columns.T])
        self.per_segment.append(Paired(tuple(costs), zeros, sizes, documents))

    def _add_examples(self, block: Segments, ranges: Ranges, sums: Sequence[ExactSums], ends: NDArray[np.bool_]) -> None:
        nats = [part.nats() for part in sums]
        finite = np.isfinite(nats[0]) & np.isfinite(nats[1])
        bits: list[Floats] = [nats_to_bits(-part) for part in nats]
        finite_bits = [np.where(finite, part, 0.0) for part in bits]
        if not self.by_segment:
            shown = replace(ranges, ends=ranges.ends + ends)  # what ends behind the text shows as </s>
            self.tokens.add_ranges(block, shown, finite_bits[1] - finite_bits[0], bits)
        whole = [_by_segment(ranges, part, len(block)) for part in finite_bits]
        gains = whole[1] - whole[0]
        # A segment with an impossible event stands out by infinity, which is said elsewhere, and would fill the list.
        gains[ranges.segment[~finite]] = 0.0
        self.segments.add_segments(block, gains, whole)


_Sums = float | Floats  # of a text, or by the size of each figure


def _by_segment(ranges: Ranges, values: Floats, segments: int) -> Floats:
    # Sums over the ranges of each segment.
    return np.asarray(np.bincount(ranges.segment, values, segments), np.float64)


def _check_covered(tables: Sequence[ScoreBatch], block: Segments, names: Sequence[str]) -> None:
    # Compare the ends of the segments of tables against those of the text: none may stop before.
    lengths = block.ends - block.starts
    for name, table in zip(names, tables, strict=True):
        reach = aligned.extents(table)
        short = np.flatnonzero(reach < lengths)
        if len(short):
            raise InputError(
                f"{name}: the spans of segment {block.first + short[0]} end at byte {reach[short[0]]}, but it has "
                f"{lengths[short[0]]} in the text; is it the same text?"
            )


def _only(ranges: Ranges, chosen: NDArray[np.bool_]) -> Ranges:
    columns = (column[chosen] for column in (ranges.segment, ranges.starts, ranges.ends, ranges.position))
    segment, starts, ends, position = columns
    return Ranges(segment, starts, ends, position, tuple(events[chosen] for events in ranges.events))


def judge(sums: PairSums, verdicts: Sequence[Verdict], level: float, plan: float | None = None) -> Comparison:
    """Return the comparison of two runs."""
    # sums: what was collected of them, nats and bytes; nothing where they cannot be compared; level: confidence with which
    # a difference must hold to be significant, 0 to 1; plan: a change of the leading figure to be found, as a share of it.
    part = sums.part
    evaluations = [run.evaluation for run in sums.runs if run.evaluation is not None]
    figures = [figure for figure in COMPARED if _shows(figure, part, verdicts)]
    figures = [figure for figure in figures if not any(_is_dash(one, figure) for one in evaluations)]
    paired = Paired.joined(sums.per_segment)
    zeros, sizes, used = paired.zeros, paired.sizes, paired.used
    change = math.nan if zeros.any() else exact_to_nats(sums.totals[0] - sums.totals[1])
    sample = joined(sums.runs[0].sample, sums.runs[1].sample, paired) if part == WHOLE and not zeros.any() else None
    of_pair = paired.spreads(None if zeros.any() else change) if sample is None else sample.spreads
    spreads = dict(zip(COMPARED, of_pair, strict=True))
    lead = next((spreads[figure] for figure in (*figures, *COMPARED) if spreads[figure] is not None), None)
    tested = None if zeros.any() else lead
    exact = [-math.inf if count else exact_to_nats(total) for count, total in zip(sums.zeros, sums.totals, strict=True)]
    figured: tuple[Sequence[_Sums], _Sums, Floats] = (exact, change, sizes.sum(axis=0))
    if sample is not None:
        figured = sample.rates, sample.change, sample.sizes
    differences = tuple(_differences(figures, *figured, {} if zeros.any() else spreads))
    without_zeros: tuple[Difference, ...] = ()
    if zeros.any():
        finite, apart = [math.fsum(nats[used]) for nats in paired.nats], exact_sum((paired.nats[0] - paired.nats[1])[used])
        without_zeros = tuple(_differences(figures, finite, apart, sizes[used].sum(axis=0), spreads))
    if not differences and part != NOTHING:
        part = NOTHING
        verdicts = [replace(verdict, nearest=None) for verdict in verdicts]
    shown = differences[0] if differences else None
    by_bytes = sums.unit != "event"
    bounds = [part == WHOLE and bool(bounds_of(r.origin, t)) for r, t in zip(sums.runs, sums.facts.totals, strict=True)]
    slices = [cut.marked(bounds) for cut in sums.slices.finish(sums.unit) if cut.name != "group" or len(cut.rows) > 1]
    return Comparison(
        first=sums.runs[0].name,
        second=sums.runs[1].name,
        verdicts=tuple(verdicts),
        part=part,
        bytes=int(sizes[:, 1].sum()) if by_bytes else None,
        bytes_in_all=sums.bytes_in_all if by_bytes else None,
        events=int(sizes[:, 0].sum()),
        lower_bounds=(bounds[0], bounds[1]),
        differences=differences,
        without_zeros=without_zeros,
        p_value=tested.p_value if tested is not None and differences else None,
        p_value_holm=None,
        segments=int(np.count_nonzero(used)),
        segments_with_zeros=int(np.count_nonzero(zeros)),
        unit="" if lead is None else lead.unit,
        units=0 if lead is None else lead.units,
        units_needed=None if tested is None else tested.units_needed(level),
        detectable=None if shown is None or tested is None else shown.change_of(tested.detectable(level)),
        plan=plan,
        units_planned=None
        if plan is None or shown is None or tested is None
        else tested.units_needed(level, shown.nats_of(plan)),
        independence="" if lead is None else in_words(lead, sums.documents.by),
        doubts=tuple(f"{run.name}: {why}" for run, why in zip(sums.runs, sums.facts.first_tokens, strict=True) if why),
        within_rounding=not any(sums.zeros) and 0 < abs(exact[1] - exact[0]) <= ROUNDING * float(sizes[:, 0].sum()),
        slices=tuple(slices),
        segments_lost=sums.segments.worst(),
        segments_won=sums.segments.best(),
        tokens_lost=sums.tokens.worst(),
        tokens_won=sums.tokens.best(),
        notes=(*([] if sample is None else [sample.note]), *_notes(sums, part, paired, lead, slices)),
    )


def _is_dash(evaluation: Mapping[str, Any], figure: Figure) -> bool:
    # True if a run has a count, and still no figure: the text has no words that spaces part.
    return evaluation.get(figure.per) is not None and evaluation.get(figure.name, 0) is None


def _shows(figure: Figure, part: str, verdicts: Sequence[Verdict]) -> bool:
    if part == WHOLE:
        return any(verdict.comparable for verdict in verdicts if verdict.metric == figure.name)
    return figure.per == {EXACT_PART: "bytes", SHARED_EVENTS: "events"}.get(part)


def _differences(
    figures: Sequence[Figure], nats: Sequence[_Sums], change: _Sums, totals: Floats, spreads: Mapping[Figure, Spread | None]
) -> Iterator[Difference]:
    # Figures of two sums of log-probabilities, and how far they are apart: `change` nats, if they are finite.
    columns = (column.tolist() for column in np.broadcast_arrays(totals, change, *nats))
    for figure, size, apart, *parts in zip(COMPARED, *columns, strict=True):
        if not size or figure not in figures:
            continue
        first, second = (-part / size for part in parts)
        a, b = (nats_to_scale(value, figure.scale) for value in (first, second))
        to_difference = partial(difference_to_scale, scale=figure.scale)
        # Two infinite figures are not apart.
        apart = apart / size if math.isfinite(second - first) else 0.0 if first == second else second - first
        over = spreads.get(figure)
        interval = None if over is None else over.interval().mapped(to_difference)
        yield Difference(figure.name, a, b, to_difference(apart), interval)


def _notes(sums: PairSums, part: str, paired: Paired, lead: Spread | None, slices: Sequence[Slices]) -> Iterator[str]:
    versions = [run.numbers_version for run in sums.runs]
    if all(versions) and len(set(versions)) > 1:
        yield f"number versions differ ({' / '.join(versions)}), so some digits do: evaluate both with one version"
    for run, zeros in zip(sums.runs, sums.zeros, strict=True):
        if zeros:
            rest = "'without' leaves out the segments they are in" if paired.used.any() else "every segment has one"
            yield (
                f"{run.name}: {zeros:,} events have probability zero: its figures are infinite and no test can be made; "
                + rest
            )
    if sums.by_segment:
        yield "a table has no byte spans: whole segments are compared, without checking that all bytes were scored"
    if part != NOTHING:
        yield from caveats(lead)
    yield from sums.documents.notes if lead is not None else ()
    rows = [row for cut in slices for row in cut.rows if row.difference is not None]
    if lead is not None and any(row.interval is None for row in rows):
        of = DOCUMENTS if paired.documents is not None else "segments"
        yield f"a slice of fewer than {FEWEST_UNITS} {of} has no interval and no test"
    if part == NOTHING:
        for run in sums.runs:
            if run.origin.lossy_segments and not run.origin.rows_tell_losses:
                why = lossy_reason(run.origin).short
                yield (
                    f"{run.name}: {run.origin.lossy_segments:,} segments are not exact ({why}); a score table does "
                    "not tell which, so no part of the text is known to be exact"
                )
    if part == NOTHING and sums.facts.same_lengths_shuffled:
        yield "the segments of both have the same lengths, in another order: the same text, shuffled?"
    if part not in (NOTHING, SHARED_EVENTS) and sums.corpus is None:
        yield "the text is not available: name it with --text for groups, classes and examples"
        if sums.unit == "byte" and sums.line_end() is None:
            yield "without the text, each segment is assumed to end with a newline, which counts as a byte"
        if part == EXACT_PART and any(run.origin.lossy_segments for run in sums.runs):
            yield "without the text, any one byte of white space between words is assumed to be a space"
    contexts = {run.origin.context for run in sums.runs}
    if part == WHOLE and len(contexts) > 1:
        named = " / ".join(run.origin.context for run in sums.runs)
        yield f"contexts differ ({named}), which is part of the measured difference"
    if part == EXACT_PART:
        for run, tally in zip(sums.runs, sums.facts.totals, strict=True):
            if tally.events[OOV]:
                yield f"{run.name} is compared only where it knows the {run.origin.unit}s, which favors it"
    vocabularies = {run.origin.fingerprints.get("vocabulary", run.name) for run in sums.runs}
    if part == SHARED_EVENTS and len(vocabularies) > 1:
        yield "the model with the smaller vocabulary has an advantage here"


def compare(
    runs: Sequence[Run],
    *,
    examples: int = 5,
    corpus: Corpus | None = None,
    documents_of_text: bool = False,
    training: Callable[[Corpus], TrainingWords] | None = None,
    best_first: bool = False,
    plan: float | None = None,
) -> Comparisons:
    """Compare runs with the first of them."""
    # best_first: the figures chose the first run, as the best of all; p-values then count for all pairs of runs; plan: a
    # change of the leading figure, as a share of it: how many units find it?
    if len(runs) < 2:
        for run in runs:
            next(run.batches(), None)  # a table of several models that is not imported yet: it says how
        raise UsageError("a comparison needs two runs or more; each is compared with the first")
    check_whole("examples", examples, 0)
    runs = with_distinct_names(runs)
    if corpus is not None:
        runs = [about(run, corpus) for run in runs]
    text = corpus or remembered(runs[0], *(run for run in runs[1:] if run.text_sha256 == runs[0].text_sha256))
    if training is not None and text is None:
        raise UsageError("occurrences in training need the text that was scored: name it (--text)")
    words = training(text) if training is not None and text is not None else None
    facts = gather_facts(runs, text)
    collected = []
    for run, fact in zip(runs[1:], facts, strict=True):
        named = [tally.per_segment().documents if tally.names_documents else None for tally in fact.totals]
        documents = choose_documents((runs[0], run), named, text, asked=documents_of_text)
        answers, part = verdicts(runs[0], run, fact)
        collected.append((PairSums((runs[0], run), fact, part, text, documents, words, examples), answers))
    _read([sums for sums, _ in collected if sums.part != NOTHING], text)
    models = len(runs) if best_first else 2
    level = 1 - SIGNIFICANT / (len(facts) * models / 2)
    judged = holm_adjusted((judge(sums, answers, level, plan) for sums, answers in collected), best_of=models)
    items = [replace(item, units_needed=None) if item.significant else item for item in judged]
    return Comparisons(tuple(items), tuple(run.name for run in runs), agreements(runs, facts))


def _read(pairs: Sequence[PairSums], text: Corpus | None) -> None:
    # Read the tables of pairs, all of which share the first run, and the text, once for all of them.
    if not pairs:
        return
    runs = [pairs[0].runs[0], *(pair.runs[1] for pair in pairs)]
    tables: list[Iterable[ScoreBatch]] = [run.batches() for run in runs]
    for i, pair in enumerate(pairs, 1):
        if pair.part == SHARED_EVENTS:
            tables[i] = _without_spans(tables[i])  # they are of another text than the one at hand
    for block, (first, *others) in lockstep(tables, text, [run.name for run in runs]):
        for pair, other in zip(pairs, others, strict=True):
            pair.add(scored_text(block, [run.origin.policy for run in pair.runs]), (first, other))


def _without_spans(table: Iterable[ScoreBatch]) -> Iterator[ScoreBatch]:
    for batch in table:
        yield replace(batch, ends=batch.ends[:0], begins=batch.ends[:0])
