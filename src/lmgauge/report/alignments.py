"""Alignments of transcripts as people read them, and as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict

from lmgauge.json_text import safe
from lmgauge.readable import for_output
from lmgauge.report.terminal import console, readable
from lmgauge.tasks.alignment import AlignedSegment, ErrorCounts, error_counts


def print_alignments(segments: Iterable[AlignedSegment], *, as_json: bool) -> None:
    """Prints the segments that have an error.

    Args:
        segments: alignments of the segments of all systems.
        as_json: an object for each segment and system on a line of its own, those without error too.
    """
    width = None if as_json or not sys.stdout.isatty() else console().width
    for found in segments:
        if as_json:
            sys.stdout.write(safe(json.dumps(_object(found), ensure_ascii=False)) + "\n")
        elif found.alignment.substitutions + found.alignment.deletions + found.alignment.insertions:
            sys.stdout.write(for_output(_block(found, width)))


def _block(found: AlignedSegment, width: int | None) -> str:
    counts = found.alignment
    head = (
        f"segment {found.segment + 1:,} of {readable(found.system)}: {counts.substitutions} substituted, "
        f"{counts.deletions} deleted, {counts.insertions} inserted, {counts.hits} right"
    )
    return "\n".join([head, *("\n".join(rows) for rows in counts.lines(width))]) + "\n\n"


def _object(found: AlignedSegment) -> dict[str, object]:
    alignment = found.alignment
    return {
        "segment": found.segment + 1,
        "system": found.system,
        "hits": alignment.hits,
        "substitutions": alignment.substitutions,
        "deletions": alignment.deletions,
        "insertions": alignment.insertions,
        "reference": list(alignment.reference),
        "hypothesis": list(alignment.hypothesis),
        "chunks": [asdict(chunk) for chunk in alignment.chunks],
    }


def errors_by_system(segments: Iterable[AlignedSegment]) -> dict[str, ErrorCounts]:
    """Counts the errors of each system.

    Args:
        segments: alignments of the segments of all systems.
    """
    by_system: dict[str, ErrorCounts] = {}
    for found in segments:
        mine = error_counts([found.alignment])
        kept = by_system.setdefault(found.system, ErrorCounts())
        kept.substitutions.update(mine.substitutions)
        kept.deletions.update(mine.deletions)
        kept.insertions.update(mine.insertions)
    return by_system


def print_error_counts(by_system: dict[str, ErrorCounts], count: int) -> None:
    """Prints the most frequent errors of each system.

    Args:
        by_system: the errors of each.
        count: how many of each kind.
    """
    out = console()
    for system, counts in by_system.items():
        out.print(f"\nMost frequent errors of {readable(system)}", style="bold", markup=False, highlight=False)
        out.print(str(counts.most_frequent(count)) or "none", markup=False, highlight=False)
