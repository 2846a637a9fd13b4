"""From blocks of segments to scores of segments, and of systems, in memory that does not grow with the text.

Empty outputs and references are counted and shown, and refused where nothing else is left to score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.paths import refuse_file_names
from lmgauge.base.progress import say_progress
from lmgauge.numerics.resampling import CodedSums, UnitSums, in_one_order
from lmgauge.tasks.comparison import Systems, compare_systems
from lmgauge.tasks.metrics.protocol import Floats, Statistics, TaskMetric, TaskScore, with_whole_statistics
from lmgauge.tasks.segment_examples import SegmentChooser
from lmgauge.tasks.settings import ComparisonSettings
from lmgauge.tasks.significance import IndependentRows
from lmgauge.tasks.texts import (
    TAKES_FILES,
    Block,
    GivenReferences,
    Integers,
    ParallelSegments,
    ParallelTexts,
    References,
    Texts,
    refuse_two_readings,
)
from lmgauge.text.segment_metadata import BY_NAMES, UNKNOWN, Names


@dataclass(frozen=True, slots=True)
class Blanks:
    """How many hypotheses and references are blank: nothing, or nothing but white space."""

    segments: int = 0  # how many segments were looked at
    texts: int = 0  # how many references they have together
    hypotheses: int = 0
    references: int = 0
    first_hypothesis: int | None = None  # index of the first segment with a blank hypothesis
    first_reference: int | None = None  # index of the first segment with a blank reference

    @classmethod
    def of(cls, hypotheses: Texts, references: References) -> Blanks:
        """Count the blank ones of texts as they were given, before any preparation."""
        outputs, texts = blank_texts(hypotheses), blank_texts(references.texts)
        first = int(np.searchsorted(references.offsets, texts[0], side="right")) - 1 if len(texts) else None
        first_output = int(outputs[0]) if len(outputs) else None
        return cls(len(hypotheses), len(references.texts), len(outputs), len(texts), first_output, first)

    def joined(self, other: Blanks) -> Blanks:
        """Return the counts of these segments and of those that follow."""
        sums = ("segments", "texts", "hypotheses", "references")
        return Blanks(
            **{name: getattr(self, name) + getattr(other, name) for name in sums},
            first_hypothesis=self._earlier(self.first_hypothesis, other.first_hypothesis),
            first_reference=self._earlier(self.first_reference, other.first_reference),
        )

    def _earlier(self, mine: int | None, later: int | None) -> int | None:
        return mine if mine is not None or later is None else self.segments + later

    def check(self, metric: TaskMetric, system: str = "", *, silence: bool = True) -> None:
        """Refuse to score nothing."""
        # An error rate is a plain number also where one side is blank (all is deleted, or inserted), and silence may be
        # what is measured; a BLEU, chrF or TER of nothing would be a number that says nothing of a system.
        of = f" of {system}" if system else ""
        if not self.segments:
            raise InputError(f"there is no segment{of} to score; give at least one hypothesis and its reference")
        if self.hypotheses == self.segments and not metric.is_error_rate:
            raise InputError(f"all {self.segments:,} hypotheses{of} are blank: there is nothing to score; check the output")
        if self.references == self.texts and not (metric.is_error_rate and silence):
            raise InputError(f"all {self.texts:,} references are blank: there is nothing to score against; check the file")

    def notes(self, system: str = "") -> list[str]:
        """Return a sentence for each side that has blanks."""
        of = f" of {system}" if system else ""
        sides = (
            (self.first_hypothesis, f"{self.hypotheses:,} of {self.segments:,} hypotheses{of}"),
            (self.first_reference, f"{self.references:,} of {self.texts:,} references"),
        )
        return [f"{what} are blank, the first that of segment {first + 1:,}" for first, what in sides if first is not None]


def blank_texts(texts: Texts) -> NDArray[np.int64]:
    """Return which texts are empty or white space and nothing else (as `str.isspace` has it)."""
    # -> int64 [blank texts], their indexes.
    # blank_texts(Texts.of_strings(["a", " ", ""])) -> [1, 2]
    sizes = texts.ends - texts.starts
    inside = np.flatnonzero(sizes)
    first = texts.data[texts.starts[inside]]
    # Most texts are known not to be blank by their first byte: white space is below "!" in ASCII, and in UTF-8 begins with
    # C2 (U+0085, U+00A0), E1 (U+1680), E2 (U+2000 to U+205F) or E3 (U+3000).
    doubtful = inside[(first <= 0x20) | np.isin(first, np.array([0xC2, 0xE1, 0xE2, 0xE3], dtype=np.uint8))]
    # All of these but those of C2 are three bytes, E1 9A, E2 80, E2 81 or E3 80: most kana and Chinese are something else.
    second = texts.data[np.minimum(texts.starts[doubtful] + 1, len(texts.data) - 1)]
    three = texts.data[texts.starts[doubtful]] >= 0xE1
    doubtful = doubtful[~three | np.isin(second, np.array([0x80, 0x81, 0x9A], dtype=np.uint8))]
    blank = sizes == 0
    for i in doubtful.tolist():
        blank[i] = texts.data[texts.starts[i] : texts.ends[i]].tobytes().decode().isspace()
    return np.flatnonzero(blank)


@dataclass(frozen=True, slots=True)
class SegmentScores:
    """Scores of the segments of a block, each on its own."""

    names: tuple[str, ...]
    first: int  # index of the block's first segment
    statistics: tuple[NDArray[Any], ...]  # of each system, int64 (or float64, if the metric's are) [segments, columns]
    scores: tuple[Floats, ...]  # of each system, float64 [segments], in the metric's unit
    groups: list[str] | None  # name of each segment's group, or None
    references: NDArray[np.int64]  # int64 [segments], how many each segment has


def check_sources(metric: TaskMetric, present: bool) -> None:
    """Refuse a metric without the source texts it needs, and source texts that it would not look at."""
    if isinstance(metric, type) or not hasattr(metric, "needs_sources"):
        raise UsageError(f"metric {metric!r} is not a metric: write lmgauge.tasks.BLEU(), for example")
    if metric.needs_sources and not present:
        raise UsageError(f"{metric.name} needs the source texts: give sources, one for each segment")
    if present and not metric.needs_sources:
        raise UsageError(f"{metric.name} does not use source texts: leave out sources")


def block_of_strings(
    metric: TaskMetric,
    hypotheses: Mapping[str, Sequence[str]],
    references: GivenReferences,
    sources: Sequence[str] | None = None,
    documents: Sequence[str] | None = None,
) -> Block:
    """Return what a caller has as strings as a block, after all checks."""
    check_sources(metric, sources is not None)
    against, outputs = References.of_lists(references), []
    refuse_two_readings(references)
    for name, lines in hypotheses.items():
        outputs.append(Texts.of_strings(lines, "hypothesis" if len(hypotheses) == 1 else f"{name}: hypothesis"))
        _check_lengths(len(outputs[-1]), len(against))
    refuse_file_names([text for texts in (against.texts, *outputs) for text in texts.part(0, 1).strings()], TAKES_FILES)
    originals = None if sources is None else Texts.of_strings(sources, "source")
    _check_number("sources", originals, len(against))
    numbers = None if documents is None else document_codes(documents, len(against))
    return Block(against, tuple(outputs), documents=numbers, sources=originals)


def texts_in_memory(
    metric: TaskMetric,
    hypotheses: Mapping[str, Sequence[str]],
    references: GivenReferences,
    sources: Sequence[str] | None,
    groups: Sequence[str] | None,
    documents: Sequence[str] | None,
) -> ParallelTexts:
    """Return the outputs of systems that a caller has as strings."""
    if not hypotheses:
        raise UsageError("no system to score: give a list of hypotheses by the name of each")
    block, of_groups = block_of_strings(metric, hypotheses, references, sources, documents), Names()
    if groups is not None:
        _check_number("groups", groups, len(block))
        block = replace(block, groups=of_groups.numbers(map(str, groups)))
    return ParallelTexts(list(hypotheses), [block], of_groups.known, UNKNOWN if documents is None else BY_NAMES)


def _check_lengths(hypotheses: int, references: int) -> None:
    if hypotheses != references:
        longer, more = (
            ("hypotheses", hypotheses - references) if hypotheses > references else ("references", references - hypotheses)
        )
        raise InputError(
            f"{hypotheses:,} hypotheses and {references:,} references: there are {more:,} {longer} too many; "
            "give a reference (or a list of them) for each hypothesis"
        )


def _check_number(what: str, given: Sized | None, segments: int, one: str = "one") -> None:
    if given is not None and len(given) != segments:
        raise InputError(f"{len(given):,} {what} for {segments:,} segments: give {one} for each")


def document_codes(names: Sequence[str], segments: int) -> Integers:
    """Return documents as numbers, by their names."""
    # -> int64 [segments], from 0 in order of appearance.
    if isinstance(names, str):
        raise UsageError("documents is one string: give a list with the name of the document of each segment")
    _check_number("documents", names, segments, "the name of a document")
    return Names().numbers(str(name) for name in names)


def block_statistics(metric: TaskMetric, block: Block, threads: int | None) -> Iterator[NDArray[Any]]:
    """Yield the statistics of each system's segments, [segments, columns]; the references are prepared once."""
    shared: References | None = None
    for k, hypotheses in enumerate(block.hypotheses):
        own = block.against(k)
        if own is block.references and shared is not None:
            references = shared
        else:
            references = shared = own.with_texts(metric.prepared_references(own.texts))
        yield metric.statistics(metric.prepared(hypotheses), references, threads, block.sources)


def score_strings(
    metric: TaskMetric, hypotheses: Sequence[str], references: GivenReferences, threads: int | None = None
) -> TaskScore:
    """Score the outputs of one system that a caller has as strings, by a metric whose statistics are whole numbers."""
    block = block_of_strings(metric, {"": hypotheses}, references)
    Blanks.of(block.hypotheses[0], block.references).check(metric)
    (rows,) = block_statistics(metric, block, threads)
    return metric.score(rows.sum(axis=0), block.references.count)


def segment_scores(metric: TaskMetric, segments: ParallelSegments, threads: int | None = None) -> Iterator[SegmentScores]:
    """Score each segment on its own, a block at a time."""
    first = 0
    for block in segments:
        statistics = tuple(block_statistics(metric, block, threads))
        scores = tuple(metric.scores(rows.astype(np.float64)) for rows in statistics)
        groups = None if block.groups is None else [segments.group_names[code] for code in block.groups.tolist()]
        yield SegmentScores(tuple(segments.names), first, statistics, scores, groups, np.diff(block.against(0).offsets))
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


def say_segments(done: int) -> None:
    """Say how many segments are scored."""
    say_progress(f"{done:,} segments")


def score_parallel(
    metric: TaskMetric,
    segments: ParallelSegments,
    settings: ComparisonSettings,
    progress: Callable[[int], None] | None = None,  # say_segments if not given
    chooser: SegmentChooser | None = None,
) -> Systems:
    """Score systems on the same segments, and compare each with the first."""
    # segments: of all systems; read once.
    metric = with_whole_statistics(metric)
    sums = [_SystemSums(len(metric.columns)) for _ in segments.names]
    counts: set[int | None] = set()
    done = 0
    for block in segments:
        counts.add(block.against(0).count)
        statistics = list(block_statistics(metric, block, settings.threads))
        if chooser is not None:
            chooser.see(segments.names, segments.group_names, block, statistics)
        for k, (of_system, rows) in enumerate(zip(sums, statistics, strict=True)):
            of_system.add(rows, block, Blanks.of(block.hypotheses[k], block.against(k)))
        done += len(block)
        (progress or say_segments)(done)
    if not done:
        raise InputError("there is no segment to score; give at least one hypothesis and its reference")
    named = zip(sums, segments.names, strict=True)
    notes = [note for of_system, name in named for note in of_system.notes(metric, name, len(sums) == 1)]
    units = [of_system.units.rows() for of_system in sums]
    independent = IndependentRows(units, done, sums[0].units.segments_per_unit, segments.documents_by)
    if len(sums[0].documents.sums):
        independent = independent.with_documents(in_one_order([of_system.documents.sums for of_system in sums]))
    groups = [dict(zip(segments.group_names, of_system.groups.sums, strict=False)) for of_system in sums]
    references = counts.pop() if len(counts) == 1 else None
    notes = [*segments.notes, *notes]
    return compare_systems(metric, segments.names, independent, references, groups=groups, notes=notes, settings=settings)
