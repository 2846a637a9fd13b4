"""Which word of a transcript stands for which of the reference: alignments to read, and the most frequent errors."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.display import Displayable
from lmgauge.base.errors import UsageError
from lmgauge.base.paths import refuse_file_names
from lmgauge.base.result_list import Tabled
from lmgauge.tasks.metrics.error_rates import UNITS, EditRate
from lmgauge.tasks.texts import ParallelSegments, Texts

Unit = Literal["word", "character"]

OPERATIONS = ("equal", "substitute", "delete", "insert")
EQUAL, SUBSTITUTE, DELETE, INSERT = range(4)
MARKS = " SDI"
SEGMENTS_AT_A_TIME = 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of the same operation: units `ref_start` to `ref_end` (excluded) of the reference, and so of the hypothesis."""

    type: str
    ref_start: int
    ref_end: int
    hyp_start: int
    hyp_end: int


@dataclass(frozen=True, repr=False)
class Alignment(Displayable):
    """One segment and its reference, unit by unit."""

    unit: Unit
    reference: tuple[str, ...]
    hypothesis: tuple[str, ...]
    # uint8 [operations], what makes the hypothesis of the reference from left to right: 0 equal, 1 substitute, 2 delete, 3
    # insert
    operations: NDArray[np.uint8] = field(repr=False, compare=False)

    @property
    def hits(self) -> int:
        """Return units that are the same in both."""
        return self._count(EQUAL)

    @property
    def substitutions(self) -> int:
        """Return units of the reference with another one in their place."""
        return self._count(SUBSTITUTE)

    @property
    def deletions(self) -> int:
        """Return units of the reference with none in their place."""
        return self._count(DELETE)

    @property
    def insertions(self) -> int:
        """Return units of the hypothesis that stand for none of the reference."""
        return self._count(INSERT)

    def _count(self, operation: int) -> int:
        return int(np.count_nonzero(self.operations == operation))

    @property
    def chunks(self) -> list[Chunk]:
        """Runs of the same operation, as jiwer gives them."""
        runs, ref, hyp = [], 0, 0
        for operation, run in groupby(self.operations.tolist()):
            size = len(list(run))
            ref_end, hyp_end = ref + size * (operation != INSERT), hyp + size * (operation != DELETE)
            runs.append(Chunk(OPERATIONS[operation], ref, ref_end, hyp, hyp_end))
            ref, hyp = ref_end, hyp_end
        return runs

    def pairs(self) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield operation, unit of the reference, unit of the hypothesis; None where there is none."""
        ref, hyp = iter(self.reference), iter(self.hypothesis)
        for operation in self.operations.tolist():
            one = next(ref) if operation != INSERT else None
            other = next(hyp) if operation != DELETE else None
            yield OPERATIONS[operation], one, other

    def lines(self, width: int | None = None) -> list[tuple[str, str, str]]:
        """Return the three lines REF, HYP and EVAL, units below each other; wide characters take two columns."""
        # align("a b c", "a c").lines(10) -> [('REF:  a b', 'HYP:  a *', 'EVAL:   D'), ('REF:  c', 'HYP:  c', 'EVAL:')]
        gap = " " if self.unit == "word" else ""
        rows: list[tuple[str, str, str]] = []
        parts: list[tuple[str, str, str]] = []
        used = 0
        for operation, one, other in self.pairs():
            shown = [_visible(text) for text in (one or "", other or "")]
            columns = max(1, *map(_columns, shown))
            if parts and width is not None and len(_TITLES[0]) + used + columns > width:
                rows.append(_row(parts, gap))
                parts, used = [], 0
            ref = "*" * columns if one is None else _padded(shown[0], columns)
            hyp = "*" * columns if other is None else _padded(shown[1], columns)
            parts.append((ref, hyp, _padded(MARKS[OPERATIONS.index(operation)], columns)))
            used += columns + len(gap)
        return [*rows, _row(parts, gap)]

    def _in_brief(self) -> str:
        return f"{self.substitutions} substituted, {self.deletions} deleted, {self.insertions} inserted, {self.hits} right"


_TITLES = ("REF:  ", "HYP:  ", "EVAL: ")


def _row(parts: list[tuple[str, str, str]], gap: str) -> tuple[str, str, str]:
    ref, hyp, marks = ((title + gap.join(part[i] for part in parts)).rstrip() for i, title in enumerate(_TITLES))
    return ref, hyp, marks


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _columns(text: str) -> int:
    # How many columns a terminal gives the text: two for wide characters, none for marks that combine.
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _padded(text: str, columns: int) -> str:
    return text + " " * (columns - _columns(text))


def align(reference: str, hypothesis: str, unit: Unit = "word") -> Alignment:
    """Align a transcript with its reference, as jiwer does.

    Args:
        reference: what was said.
        hypothesis: what was recognized.
        unit: "word" (parted by white space) or "character" (white space at the ends left out).

    Raises:
        UsageError: the unit is unknown, or a text is not a string.
        InputError: a text holds NUL or a lone surrogate.

    >>> print(align("short one here", "shoe order one"))
    REF:  **** short one here
    HYP:  shoe order one ****
    EVAL: I    S         D
    """
    refuse_file_names([reference, hypothesis], "lmgauge.tasks.align_files(...)")
    references, hypotheses = Texts.of_strings([reference], "reference"), Texts.of_strings([hypothesis], "hypothesis")
    return next(align_all(references, hypotheses, unit))


def align_all(references: Texts, hypotheses: Texts, unit: Unit = "word") -> Iterator[Alignment]:
    """Align many segments, one after the other, so that memory is bounded by the longest."""
    if unit not in UNITS:
        raise UsageError(f"unit {unit!r}: give word or character")
    if len(references) != len(hypotheses):
        raise UsageError(f"{len(hypotheses)} hypotheses and {len(references)} references: they must be equally many")
    stop = np.zeros(1, dtype=np.uint8)
    for begin in range(0, len(references), SEGMENTS_AT_A_TIME):
        refs = references.part(begin, begin + SEGMENTS_AT_A_TIME)
        hyps = hypotheses.part(begin, begin + SEGMENTS_AT_A_TIME)
        operations, ends = _native.edit_operations(refs.arrays, hyps.arrays, UNITS[unit], 0, len(refs), stop)
        bounds = [0, *ends.tolist()]
        for i, (one, other) in enumerate(zip(_units(refs, unit), _units(hyps, unit), strict=True)):
            yield Alignment(unit, one, other, operations[bounds[i] : bounds[i + 1]])


def _units(texts: Texts, unit: Unit) -> Iterator[tuple[str, ...]]:
    for text in texts.encoded():
        string = text.decode("utf-8")
        yield tuple(string.split() if unit == "word" else string.strip())


@dataclass(frozen=True, repr=False)
class AlignedSegment(Displayable):
    """The alignment of one segment of one system."""

    segment: int
    system: str
    alignment: Alignment  # with the segment's reference, after normalization

    def _in_brief(self) -> str:
        return f"segment {self.segment + 1:,} of {self.system}: {self.alignment._in_brief()}"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, the units of both texts, and the runs of the same operation; the segment from 1."""
        alignment = self.alignment
        return {
            "segment": self.segment + 1,
            "system": self.system,
            **{name: getattr(alignment, name) for name in ("hits", "substitutions", "deletions", "insertions")},
            "reference": list(alignment.reference),
            "hypothesis": list(alignment.hypothesis),
            "chunks": [asdict(chunk) for chunk in alignment.chunks],
        }


def aligned_segments(metric: EditRate, segments: ParallelSegments) -> Iterator[AlignedSegment]:
    """Align several systems with the references, block by block; the systems of a segment come one after the other."""
    first = 0
    for block in segments:
        if block.against(0).count not in (0, 1):
            raise UsageError("alignments need one reference for each segment, and some have several: name one file of them")
        own = [metric.prepared(block.against(k).texts) for k in range(len(block.hypotheses) if block.chosen else 1)]
        streams = [
            align_all(own[k % len(own)], metric.prepared(texts), metric.unit) for k, texts in enumerate(block.hypotheses)
        ]
        for i, alignments in enumerate(zip(*streams, strict=True)):
            for name, alignment in zip(segments.names, alignments, strict=True):
                yield AlignedSegment(first + i, name, alignment)
        first += len(block)


@dataclass(frozen=True, repr=False)
class ErrorCounts(Tabled):
    """How often each error was made; every word (character) is an error of its own, as in the error rate."""

    substitutions: Counter[tuple[str, str]] = field(default_factory=Counter)
    deletions: Counter[str] = field(default_factory=Counter)  # unit of the reference -> how often
    insertions: Counter[str] = field(default_factory=Counter)  # unit of the hypothesis -> how often

    def add(self, alignment: Alignment) -> None:
        """Count the errors of a further segment."""
        for operation, reference, hypothesis in alignment.pairs():
            if operation == "substitute":
                self.substitutions[reference or "", hypothesis or ""] += 1
            elif operation == "delete":
                self.deletions[reference or ""] += 1
            elif operation == "insert":
                self.insertions[hypothesis or ""] += 1

    def most_frequent(self, count: int | None = None) -> list[tuple[int, str, str]]:
        """Return the most frequent errors of each kind, in order; equals in order of the alphabet."""
        # of align("a b", "x b"): [(1, 'substituted', 'a -> x')]
        rows = [(n, "substituted", " -> ".join(pair)) for pair, n in _ordered(self.substitutions)[:count]]
        rows += [(n, "deleted", unit) for unit, n in _ordered(self.deletions)[:count]]
        return rows + [(n, "inserted", unit) for unit, n in _ordered(self.insertions)[:count]]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each error, the most frequent of each kind first."""
        return [{"times": n, "error": kind, "what": what} for n, kind, what in self.most_frequent()]

    def _in_brief(self) -> str:
        counts = (self.substitutions.total(), self.deletions.total(), self.insertions.total())
        return "{:,} substitutions, {:,} deletions, {:,} insertions".format(*counts)


def _ordered(counts: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def errors_by_system(segments: Iterable[AlignedSegment]) -> dict[str, ErrorCounts]:
    """Return the errors of each system."""
    by_system: dict[str, ErrorCounts] = {}
    for segment in segments:
        by_system.setdefault(segment.system, ErrorCounts()).add(segment.alignment)
    return by_system
