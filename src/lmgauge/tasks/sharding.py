"""A kernel over the segments of a text, shared among threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lmgauge.errors import InputError
from lmgauge.tasks.metric import Statistics
from lmgauge.tasks.texts import References, Texts
from lmgauge.threads import run_ranges, thread_count

# Below this a second thread costs more than it saves.
BYTES_PER_THREAD = 1 << 17

LONGEST = 1 << 30
"""Bytes that no text reaches: kernels count its words in 32 bits."""

Kernel = Callable[[int, int, Statistics], None]
"""Fills rows `begin` to `end` (excluded) of the statistics."""


def count_segments(
    hypotheses: Texts, references: References, columns: int, threads: int | None, kernel: Kernel
) -> Statistics:
    """The statistics that a kernel finds of each segment.

    Args:
        hypotheses: one for each segment.
        references: of as many segments.
        columns: statistics a segment.
        threads: how many to use, all cores if None; the result does not depend on it.
        kernel: what counts.

    Returns:
        int64 [segments, columns].

    Raises:
        InputError: numbers of segments differ, or a segment has no reference.
    """
    segments = len(hypotheses)
    if segments != len(references):
        raise InputError(f"{segments:,} hypotheses and references of {len(references):,} segments: give as many")
    counts = np.diff(references.offsets)
    if segments and not counts.all():
        raise InputError(f"segment {int(np.argmin(counts)) + 1} has no reference; give at least one (it may be empty)")
    rows = np.zeros((segments, columns), dtype=np.int64)
    for texts in (hypotheses, references.texts):
        if len(texts) and int((texts.ends - texts.starts).max()) >= LONGEST:
            raise InputError("a segment has 1 GiB or more: is the file without line ends? Cut it into segments")
    size = int((hypotheses.ends - hypotheses.starts).sum()) + int((references.texts.ends - references.texts.starts).sum())
    useful = max(1, min(segments, size // BYTES_PER_THREAD))
    run_ranges(lambda begin, end: kernel(begin, end, rows), segments, min(thread_count(threads), useful))
    return rows
