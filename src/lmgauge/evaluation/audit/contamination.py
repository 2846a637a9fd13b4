"""Level 4: the text was not seen in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lmgauge.errors import InputError
from lmgauge.evaluation.audit.results import FAIL, NOT_CHECKED, PASS, Check

DEFAULT_MAX_OVERLAP = 0.01


class NothingToCompareError(InputError):
    """A comparison that could not be made, though both texts could be read: one of them has no words."""


class OverlapCounts(Protocol):
    """What level 4 asks of a comparison with the training text; `lmgauge.Overlap` has it."""

    @property
    def segments(self) -> int: ...  # noqa: D102
    @property
    def contaminated_segments(self) -> int: ...  # noqa: D102
    @property
    def bytes(self) -> int: ...  # noqa: D102
    @property
    def contaminated_bytes(self) -> int: ...  # noqa: D102
    @property
    def long_contaminated_bytes(self) -> int: ...  # noqa: D102
    @property
    def ngrams(self) -> int: ...  # noqa: D102
    @property
    def n(self) -> int: ...  # noqa: D102
    @property
    def unit(self) -> str: ...  # noqa: D102
    @property
    def unspaced(self) -> bool: ...  # noqa: D102


OverlapSource = OverlapCounts | Callable[[], OverlapCounts]
"""A finished comparison, or what makes one when called."""


def check_contamination(overlap: OverlapSource | None, max_overlap: float = DEFAULT_MAX_OVERLAP) -> Check:
    """Level 4: the share of the text that was seen in training.

    Args:
        overlap: a finished comparison, or what makes one when called; None if the training text is not at hand.
        max_overlap: FAIL where a larger share of the bytes than this was seen in long runs or whole segments.
    """
    name = "training text"
    if overlap is None:
        return Check("contamination", name, NOT_CHECKED, "the training text was not named (--train)")
    try:
        found = overlap() if callable(overlap) else overlap
    except NothingToCompareError as error:
        return Check("contamination", name, NOT_CHECKED, str(error))
    share = found.long_contaminated_bytes / found.bytes if found.bytes else 0.0
    details = {
        "bytes": found.bytes,
        "long_contaminated_bytes": found.long_contaminated_bytes,
        "segments": found.segments,
        "contaminated_segments": found.contaminated_segments,
        "share": share,
        "max_overlap": max_overlap,
    }
    evidence = (
        f"{100 * share:.2f} % of the bytes ({found.long_contaminated_bytes:,} of {found.bytes:,}) are in the training text, "
        f"in runs of {found.n} {found.unit}s or more or as whole segments of 20 bytes or more; "
        f"{100 * max_overlap:g} % are allowed."
    )
    if share > max_overlap:
        return Check("contamination", name, FAIL, evidence, details)
    if 2 * found.contaminated_bytes > found.bytes:
        reason = (
            f"{100 * found.contaminated_bytes / found.bytes:.0f} % of the bytes are lines that the training text has too, "
            "but short ones, which repeat by nature: judge by lmgauge overlap"
        )
        return Check("contamination", name, NOT_CHECKED, reason, details)
    if found.unspaced:
        reason = "words were compared, but they are not set apart by spaces here: name --overlap-unit character"
        return Check("contamination", name, NOT_CHECKED, reason, details)
    if not found.ngrams:
        evidence += f" No run of {found.n} {found.unit}s fits in the text: only whole segments were compared."
    return Check("contamination", name, PASS, evidence, details)
