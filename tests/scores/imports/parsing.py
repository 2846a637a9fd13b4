"""Parsing as tests do it: the segments of one file, and what is said of them."""

from __future__ import annotations

from pathlib import Path

from tests.scores.imports.outputs import written

from lmgauge.scores.imports.log import LoggedSegment
from lmgauge.scores.imports.programs import open_logs


def parsed(folder: Path, content: str | bytes, program: str | None = None, unit: str | None = None) -> list[LoggedSegment]:
    """The segments of a file with this content."""
    return noted(folder, content, program, unit)[0]


def noted(
    folder: Path, content: str | bytes, program: str | None = None, unit: str | None = None
) -> tuple[list[LoggedSegment], str]:
    """The segments of a file with this content, and what a reader must know."""
    logs = open_logs([written(folder, content)], program, unit)
    return list(logs.segments()), "\n".join(logs.log.notes())
