"""Alignments of transcripts, and their most frequent errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lmgauge.report import blocks as doc
from lmgauge.tasks.alignment import AlignedSegment, Alignment, ErrorCounts


def blocks(segments: Iterable[AlignedSegment]) -> Iterator[doc.Block]:
    """Yield the segments that have an error, one after the other."""
    for segment in segments:
        counts = segment.alignment
        if counts.substitutions + counts.deletions + counts.insertions:
            yield doc.Text(
                f"segment {segment.segment + 1:,} of {segment.system}: {counts.substitutions} substituted, "
                f"{counts.deletions} deleted, {counts.insertions} inserted, {counts.hits} right"
            )
            yield doc.Aligned(counts)


def blocks_of_one(alignment: Alignment) -> doc.Document:
    """Return one alignment."""
    return (doc.Aligned(alignment),)


def error_blocks_of_one(errors: ErrorCounts) -> doc.Document:
    """Return all errors, the most frequent of each kind first."""
    return tuple(_errors("Errors, most frequent first", errors.most_frequent()))


def error_blocks(by_system: Mapping[str, ErrorCounts], count: int) -> doc.Document:
    """Return the most frequent errors of each system."""
    return tuple(
        block
        for system, counts in by_system.items()
        for block in _errors(f"Most frequent errors of {system}", counts.most_frequent(count))
    )


def _errors(title: str, rows: list[tuple[int, str, str]]) -> Iterator[doc.Block]:
    if not rows:
        yield from (doc.Heading(title), doc.Text("none"))
        return
    times, kinds, units = zip(*rows, strict=True)
    columns = (doc.numbers("times", times, form="count"), doc.labels("error", kinds), doc.labels("what", units))
    yield doc.Table(columns, title)
