"""From blocks of segments to scores of segments, and of systems, in memory that does not grow with the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError, UsageError
from lmgauge.numerics.grouped_sums import CodedSums, UnitSums, in_one_order
from lmgauge.tasks.blank_segments import Blanks
from lmgauge.tasks.blocks import Block, ParallelSegments
from lmgauge.tasks.comparison import Groups, Systems, compare_systems
from lmgauge.tasks.draws import IndependentRows
from lmgauge.tasks.metrics.fixed_point import with_whole_statistics
from lmgauge.tasks.metrics.protocol import Floats, Statistics, TaskMetric
from lmgauge.tasks.settings import ComparisonSettings


@dataclass(frozen=True, slots=True)
class SegmentScores:
    """Scores of the segments of a block, each on its own.

    Attributes:
        names: of the systems.
        first: index of the block's first segment.
        statistics: of each system, int64 (or float64, if the metric's are) [segments, columns].
        scores: of each system, float64 [segments], in the metric's unit.
        groups: name of each segment's group, or None.
        references: int64 [segments], how many each segment has.
    """

    names: tuple[str, ...]
    first: int
    statistics: tuple[NDArray[Any], ...]
    scores: tuple[Floats, ...]
    groups: list[str] | None
    references: NDArray[np.int64]


def check_sources(metric: TaskMetric, present: bool) -> None:
    """Refuse a metric without the source texts it needs, and source texts that it would not look at.

    Args:
        metric: what to score with.
        present: there is a source text for each segment.

    Raises:
        UsageError: one of the two, or the metric is a class or a name.
    """
    if isinstance(metric, type) or not hasattr(metric, "needs_sources"):
        raise UsageError(f"metric {metric!r} is not a metric: write lmgauge.tasks.BLEU(), for example")
    if metric.needs_sources and not present:
        raise UsageError(f"{metric.name} needs the source texts: give sources, one for each segment")
    if present and not metric.needs_sources:
        raise UsageError(f"{metric.name} does not use source texts: leave out sources")


def block_statistics(metric: TaskMetric, block: Block, threads: int | None) -> Iterator[NDArray[Any]]:
    """Yield the statistics of each system's segments, [segments, columns]; the references are prepared once.

    Args:
        metric: what to score with.
        block: the segments.
        threads: how many to use, all cores if None.
    """
    references = block.references.with_texts(metric.prepared_references(block.references.texts))
    for hypotheses in block.hypotheses:
        yield metric.statistics(metric.prepared(hypotheses), references, threads, block.sources)


def segment_scores(metric: TaskMetric, segments: ParallelSegments, threads: int | None = None) -> Iterator[SegmentScores]:
    """Score each segment on its own, a block at a time.

    Args:
        metric: what to score with.
        segments: of one or more systems.
        threads: how many to use, all cores if None; no number depends on it.
    """
    first = 0
    for block in segments:
        statistics = tuple(block_statistics(metric, block, threads))
        scores = tuple(metric.scores(rows.astype(np.float64)) for rows in statistics)
        groups = None if block.groups is None else [segments.group_names[code] for code in block.groups.tolist()]
        yield SegmentScores(tuple(segments.names), first, statistics, scores, groups, np.diff(block.references.offsets))
        first += len(block)


class _SystemSums:
    """Sums of one system's statistics, over units of neighbors, over documents and over groups."""

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

    def notes(self, metric: TaskMetric, name: str, alone: bool) -> Iterator[str]:
        self.blanks.check(metric, "" if alone else name, silence=False)
        yield from self.blanks.notes("" if alone else name)
        if metric.zero_means and not metric.scores(self.units.total[None].astype(np.float64))[0]:
            yield f"{name}: 0, as {metric.zero_means}"


def score_parallel(
    metric: TaskMetric,
    segments: ParallelSegments,
    settings: ComparisonSettings,
    progress: Callable[[int], None] | None = None,
) -> Systems:
    """Score systems on the same segments, and compare each with the first.

    Args:
        metric: what to score with.
        segments: of all systems; read once.
        settings: the test, and how much is drawn.
        progress: called with the number of segments done.

    Raises:
        InputError: there are no segments, or all of one side are blank.
        UsageError: the settings are out of range.
    """
    metric = with_whole_statistics(metric)
    sums = [_SystemSums(len(metric.columns)) for _ in segments.names]
    counts: set[int | None] = set()
    done = 0
    for block in segments:
        counts.add(block.references.count)
        statistics = block_statistics(metric, block, settings.threads)
        for of_system, rows, hypotheses in zip(sums, statistics, block.hypotheses, strict=True):
            of_system.add(rows, block, Blanks.of(hypotheses, block.references))
        done += len(block)
        if progress is not None:
            progress(done)
    if not done:
        raise InputError("there is no segment to score; give at least one hypothesis and its reference")
    named = zip(sums, segments.names, strict=True)
    notes = [note for of_system, name in named for note in of_system.notes(metric, name, len(sums) == 1)]
    units = [of_system.units.rows() for of_system in sums]
    independent = IndependentRows(units, done, sums[0].units.segments_per_unit, segments.documents_by)
    if len(sums[0].documents.sums):
        independent = independent.with_documents(in_one_order([of_system.documents.sums for of_system in sums]))
    names = segments.group_names
    groups = Groups(tuple(names), tuple(of_system.groups.sums[: len(names)] for of_system in sums)) if names else None
    references = counts.pop() if len(counts) == 1 else None
    notes = [*segments.notes, *notes]
    return compare_systems(metric, segments.names, independent, references, groups=groups, notes=notes, settings=settings)
