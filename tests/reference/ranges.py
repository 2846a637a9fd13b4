"""Slow twin of `evaluation/slicing/span_alignment.py`: boundaries as Python sets, segment by segment."""

from __future__ import annotations

from collections.abc import Sequence

Range = tuple[int, int, int, int, tuple[int, ...]]  # segment, start, end, position, events of each table


def shared_ranges(tables: Sequence[Sequence[Sequence[int]]]) -> list[Range]:
    """Ranges between shared boundaries.

    Args:
        tables: of each table, for each segment, where its rows end; rising.
    """
    found: list[Range] = []
    for segment, rows in enumerate(zip(*tables, strict=True)):
        length = max((ends[-1] for ends in rows if ends), default=0)
        # The last row goes to the line end, one byte behind the text, and so does the segment in a table without rows.
        laid = [[*ends[:-1], length + 1] if ends else [] for ends in rows]
        boundaries = set.intersection(*({*ends, length + 1} for ends in laid))
        start = 0
        for position, end in enumerate(sorted(boundaries)):
            first = position == 0
            events = tuple(sum((first or e > start) and e <= end for e in ends) for ends in laid)
            found.append((segment, start, min(end, length), position, events))
            start = end
    return found
