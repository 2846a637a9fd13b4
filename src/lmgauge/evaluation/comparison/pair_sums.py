"""What is compared of two runs, collected while their tables and the text are read: sums, slices and examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.evaluation.comparison.comparability import EXACT_PART, SHARED_EVENTS, WHOLE, Documents, Facts
from lmgauge.evaluation.event_sums import Paired
from lmgauge.evaluation.runs import Run
from lmgauge.evaluation.slicing import span_alignment as aligned
from lmgauge.evaluation.slicing.cuts import Cuts, TrainingWords, range_sizes
from lmgauge.evaluation.slicing.examples import ExampleHeap
from lmgauge.evaluation.slicing.span_alignment import Floats, Ints, Ranges
from lmgauge.evaluation.slicing.sums import CutSums
from lmgauge.numerics.exact import ExactSums
from lmgauge.numerics.units import nats_to_bits
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
