"""What the tables of runs themselves state: read once, side by side, before anything is compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.first_tokens import FirstTokens
from lmgauge.evaluation.runs import Run, lockstep
from lmgauge.evaluation.slicing.ranges import extents
from lmgauge.evaluation.tally import Tally
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus


@dataclass(frozen=True)
class Facts:
    """What the tables of two runs state."""

    totals: tuple[Tally, Tally]  # exact sums of each
    same_events: bool  # every span of one is one of the other
    same_counts: bool  # every segment has as many events in both
    spans: bool
    same_lengths_shuffled: bool  # the segments end at the same bytes, but in another order
    # of each, spans that do not begin where the one before ended, and segments that end before the other's do
    apart: tuple[int, int]
    span_bytes: int  # bytes that the first scores, line ends left out
    # of each, why its log-probabilities cannot be natural logs, or may not be; empty where they can
    first_tokens: tuple[str, str]


class _Table:
    """What one table states, and where it is the same as that of the first run."""

    def __init__(self, run: Run) -> None:
        self.run, self.tally, self.first_tokens = run, Tally(), FirstTokens(run.origin.policy)
        self.spans = self.same_counts = self.same_ends = True
        self._ends: list[NDArray[np.int64]] = []

    def add(self, rows: ScoreBatch, of_first: ScoreBatch) -> None:
        self.tally.add(rows)
        self.spans &= len(rows.ends) == len(rows)
        self.same_counts &= bool(np.array_equal(rows.segment_events, of_first.segment_events))
        self.same_ends &= bool(np.array_equal(rows.ends, of_first.ends))
        if self.run.origin.policy.leaves_out and len(rows.ends) == len(of_first.ends):
            self.same_ends &= bool(np.array_equal(rows.starts(), of_first.starts()))
        self._ends.append(extents(rows) if len(rows.ends) else np.zeros(len(rows.segments), np.int64))

    def ends(self) -> NDArray[np.int64]:
        # int64 [segments], the byte where each ends.
        return np.concatenate(self._ends)


def gather_facts(runs: Sequence[Run], corpus: Corpus | None = None) -> list[Facts]:
    """Read the table of each run once, side by side, and say what those of the first and of each other run state."""
    first, *others = runs
    at_hand = corpus is not None and bool(first.text_sha256) and corpus.report.sha256 == first.text_sha256
    of_text = [at_hand and run.text_sha256 == first.text_sha256 for run in others]
    facts: dict[int, Facts] = {}
    for text, known in ((corpus, True), (None, False)):
        numbers = [i for i, same in enumerate(of_text) if same == known]
        if numbers:
            facts |= zip(numbers, _read([first, *(others[i] for i in numbers)], text), strict=True)
    return [facts[i] for i in range(len(others))]


def _read(runs: Sequence[Run], corpus: Corpus | None) -> Iterator[Facts]:
    tables = [_Table(run) for run in runs]
    for _, parts in lockstep(
        [one.first_tokens.watch(one.run.batches()) for one in tables], corpus, [run.name for run in runs]
    ):
        for table, rows in zip(tables, parts, strict=True):
            table.add(rows, parts[0])
    first, *others = tables
    first_ends = first.ends()
    for other in others:
        ends = other.ends()
        spans, apart = first.spans and other.spans, [first.first_tokens.apart, other.first_tokens.apart]
        if spans and first.run.text_sha256 and first.run.text_sha256 == other.run.text_sha256:
            apart = [apart[0] + int((first_ends < ends).sum()), apart[1] + int((ends < first_ends).sum())]
        shuffled = np.array_equal(np.sort(first_ends), np.sort(ends)) and not np.array_equal(first_ends, ends)
        yield Facts(
            totals=(first.tally, other.tally),
            same_events=spans and other.same_counts and other.same_ends,
            same_counts=other.same_counts,
            spans=spans,
            same_lengths_shuffled=shuffled,
            apart=(apart[0], apart[1]),
            span_bytes=int(first_ends.sum()),
            first_tokens=(first.first_tokens.note, other.first_tokens.note),
        )
