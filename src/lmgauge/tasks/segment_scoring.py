"""From blocks of segments to the result of systems, in memory that does not grow with the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import DEFAULT_SEED
from lmgauge.errors import InputError
from lmgauge.numerics.grouped_sums import CodedSums, UnitSums, document_sums, in_one_order
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.tasks.blank_segments import Blanks
from lmgauge.tasks.comparison import RANDOMIZATION_TEST, Groups, Systems, compare_systems
from lmgauge.tasks.draws import ONE_DOCUMENT
from lmgauge.tasks.metrics.protocol import Statistics, TaskMetric
from lmgauge.tasks.parallel import Block
from lmgauge.tasks.texts import Integers


@dataclass(frozen=True, slots=True)
class SegmentScores:
    """Scores of the segments of a block, each on its own.

    Attributes:
        names: of the systems.
        first: index of the block's first segment.
        statistics: of each system, int64 [segments, columns].
        scores: of each system, float64 [segments], in the metric's unit.
        groups: name of each segment's group, or None.
        references: of each segment how many, int64 [segments].
    """

    names: tuple[str, ...]
    first: int
    statistics: tuple[Statistics, ...]
    scores: tuple[NDArray[np.float64], ...]
    groups: list[str] | None
    references: NDArray[np.int64]


def block_statistics(metric: TaskMetric, block: Block, threads: int | None) -> Iterator[Statistics]:
    """The statistics of each system's segments; the references are prepared once."""
    references = block.references.with_texts(metric.prepared_references(block.references.texts))
    for hypotheses in block.hypotheses:
        yield metric.statistics(metric.prepared(hypotheses), references, threads)


def segment_scores(
    metric: TaskMetric,
    names: Sequence[str],
    blocks: Iterable[Block],
    *,
    group_names: Sequence[str] = (),
    threads: int | None = None,
) -> Iterator[SegmentScores]:
    """Score each segment on its own.

    Args:
        metric: what to score with.
        names: of the systems.
        blocks: the segments.
        group_names: by code; may still grow while the blocks are read.
        threads: how many; no number depends on it.
    """
    first = 0
    for block in blocks:
        statistics = tuple(block_statistics(metric, block, threads))
        scores = tuple(metric.scores(rows.astype(np.float64)) for rows in statistics)
        groups = None if block.groups is None else [group_names[code] for code in block.groups.tolist()]
        yield SegmentScores(tuple(names), first, statistics, scores, groups, np.diff(block.references.offsets))
        first += len(block)


class _Sums:
    """What is kept of one system: sums of units, of documents and of groups."""

    def __init__(self, columns: int) -> None:
        self.units = UnitSums(columns)
        self.documents = CodedSums(columns)
        self.blanks = Blanks()
        self.groups = CodedSums(columns)

    def add(self, rows: Statistics, block: Block, blanks: Blanks) -> None:
        self.units.add(rows)
        self.blanks = self.blanks.joined(blanks)
        if block.documents is not None:
            self.documents.add(block.documents, rows)
        if block.groups is not None:
            self.groups.add(block.groups, rows)


@dataclass(frozen=True)
class Rows:
    """What is taken as independent.

    Attributes:
        statistics: of each system, int64 [documents, columns], or of segments.
        documents_by: what tells documents apart; "unknown" if nothing does, `ONE_DOCUMENT` if there is but one.
        by_document: whether rows are documents.
    """

    statistics: list[Statistics]
    documents_by: str
    by_document: bool

    @classmethod
    def of(cls, documents: list[Statistics], segments: list[Statistics], documents_by: str) -> Rows:
        """Take documents, where there are two or more, else segments.

        Args:
            documents: of each system, int64 [documents, columns], as `in_one_order` gives them.
            segments: of each system, int64 [segments, columns].
            documents_by: what tells documents apart, for people.
        """
        if len(documents[0]) > 1:
            return cls(documents, documents_by, by_document=True)
        return cls(segments, ONE_DOCUMENT, by_document=False)

    @classmethod
    def of_segments(cls, segments: list[Statistics], documents: Integers | None, documents_by: str) -> Rows:
        """Add up the segments of each document, where documents are known.

        Args:
            segments: of each system, int64 [segments, columns].
            documents: int64 [segments], the number of the document of each; None where they are not known.
            documents_by: what tells documents apart, for people.
        """
        if documents is None:
            return cls(segments, documents_by, by_document=False)
        return cls.of(document_sums(segments, documents), segments, documents_by)


def measure(
    metric: TaskMetric,
    names: Sequence[str],
    blocks: Iterable[Block],
    *,
    group_names: Sequence[str] = (),
    documents_by: str = UNKNOWN,
    notes: Sequence[str] = (),
    test: str | None = RANDOMIZATION_TEST,
    resamples: int | None = None,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Systems:
    """Score systems on the same segments, and hold each against the first.

    Args:
        metric: what to score with.
        names: of the systems, in the order of the blocks' hypotheses.
        blocks: the segments, read once.
        group_names: by code; may still grow while the blocks are read.
        documents_by: what tells the documents of blocks apart, for people.
        notes: what reading has to say, complete when the blocks are read.
        test: "bootstrap", "randomization" or None.
        resamples: of the test.
        seed: of the draws.
        threads: how many; no number depends on it.
        progress: told how many segments are done.

    Raises:
        InputError: nothing to score: no segments, or all of one side is blank.
    """
    sums = [_Sums(len(metric.columns)) for _ in names]
    counts: set[int | None] = set()
    done = 0
    for block in blocks:
        counts.add(block.references.count)
        found = block_statistics(metric, block, threads)
        for kept, rows, hypotheses in zip(sums, found, block.hypotheses, strict=True):
            kept.add(rows, block, Blanks.of(hypotheses, block.references))
        done += len(block)
        if progress is not None:
            progress(done)
    if not done:
        raise InputError("there is no segment to score; give at least one hypothesis and its reference")
    told = list(notes)
    for name, kept in zip(names, sums, strict=True):
        kept.blanks.check(metric, name if len(names) > 1 else "", silence=False)
        told.extend(kept.blanks.notes(name if len(names) > 1 else ""))
        if metric.higher_is_better and not metric.scores(kept.units.total[None].astype(np.float64))[0]:
            why = "no n-gram of some order is in a reference, or no output is that long"
            told.append(f"{name}: 0, as {why}; lower the order, or take the effective one")
    units = Rows([kept.units.rows() for kept in sums], documents_by, by_document=False)
    if len(sums[0].documents.sums):
        units = Rows.of(in_one_order([kept.documents.sums for kept in sums]), units.statistics, documents_by)
    groups = None
    if group_names:
        groups = Groups(tuple(group_names), tuple(kept.groups.sums[: len(group_names)] for kept in sums))
    return compare_systems(
        metric,
        names,
        units.statistics,
        counts.pop() if len(counts) == 1 else None,
        test=test,
        resamples=resamples,
        seed=seed,
        segments=done,
        segments_per_draw=1 if units.by_document else sums[0].units.segments_per_unit,
        documents_by=units.documents_by,
        by_document=units.by_document,
        groups=groups,
        notes=tuple(dict.fromkeys(told)),
        threads=threads,
    )
