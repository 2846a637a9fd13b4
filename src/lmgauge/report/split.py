"""A text in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmgauge.report import blocks as doc

if TYPE_CHECKING:
    from lmgauge.text.split import SplitText


def blocks(split: SplitText) -> doc.Document:
    """Return a row for each part, and what is needed to split the text in this way again."""
    parts = split.parts
    columns = (
        doc.labels("part", [part.name for part in parts]),
        doc.numbers("segments", [part.segments for part in parts], form="count"),
        doc.numbers("share", [part.segments / split.segments for part in parts], 2, "percent"),
        doc.numbers("bytes", [part.bytes for part in parts], form="count"),
        doc.labels("file", [str(part.path) for part in parts], wraps=True),
    )
    return (doc.Table(columns), *doc.notes([*split.notes, f"seed {split.seed}, text {split.text_sha256[:6]}"]))
