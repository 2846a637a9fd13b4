"""What is shown of a shard of a job: which it is, and where it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmgauge.report.blocks import Document, Lines

if TYPE_CHECKING:
    from lmgauge.cluster.shards import FinishedShard


def blocks(result: FinishedShard) -> Document:
    """Return a line for each thing that is known of a shard."""
    state = "computed" if result.computed else "was complete before"
    pairs = (
        ("shard", f"{result.shard} of {result.of}"),
        ("of", result.job),
        ("pieces of the text", f"{result.parts:,}"),
        ("folder", result.folder),
        ("state", state),
    )
    return (Lines(pairs),)
