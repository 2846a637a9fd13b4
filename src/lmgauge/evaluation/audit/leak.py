"""Level 4: the text was not seen in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lmgauge.evaluation.audit.results import FAIL, PASS, Check, counted, not_checked

DEFAULT_MAX_OVERLAP = 0.01


class OverlapResult(Protocol):
    """What level 4 asks of a comparison with the training text."""

    @property
    def segments(self) -> int: ...  # noqa: D102
    @property
    def touched_segments(self) -> int: ...  # noqa: D102
    @property
    def bytes(self) -> int: ...  # noqa: D102
    @property
    def touched_bytes(self) -> int: ...  # noqa: D102


Overlap = OverlapResult | Callable[[], OverlapResult]


def check_leak(overlap: Overlap | None, max_overlap: float = DEFAULT_MAX_OVERLAP) -> Check:
    """Level 4: the share of the text that was seen in training.

    Args:
        overlap: a finished comparison, or what makes one when called; None if the training text is not at hand.
        max_overlap: FAIL where a larger share of the bytes than this is touched.
    """
    if overlap is None:
        return not_checked("leak", "the training text was not named (--train)", "training text")
    found = overlap() if callable(overlap) else overlap
    share = found.touched_bytes / found.bytes if found.bytes else 0.0
    verdict = PASS if share <= max_overlap else FAIL
    evidence = (
        f"{100 * share:.2f} % of the bytes ({found.touched_bytes:,} of {found.bytes:,}) lie in stretches of the training "
        f"text, in {found.touched_segments:,} of {counted(found.segments, 'segment')}; {100 * max_overlap:g} % are allowed."
    )
    details = {
        "bytes": found.bytes,
        "touched_bytes": found.touched_bytes,
        "segments": found.segments,
        "touched_segments": found.touched_segments,
        "share": share,
        "max_overlap": max_overlap,
    }
    return Check("leak", "training text", verdict, evidence, details)
