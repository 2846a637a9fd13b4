"""Level 4: the text was not seen in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from lmgauge.errors import InputError
from lmgauge.evaluation.audit.results import Check, judge
from lmgauge.evaluation.options import AuditSettings

if TYPE_CHECKING:
    from lmgauge.text.overlap.results import Overlap

LEVEL, NAME = "contamination", "training text"


class NothingToCompareError(InputError):
    """Both texts could be read, but one of them has no words to compare."""


OverlapSource: TypeAlias = "Overlap | Callable[[], Overlap]"
"""An overlap with the training text, or the function that finds it."""


def check_contamination(
    overlap: OverlapSource | None, max_overlap: float = AuditSettings.max_overlap, skipped: str = ""
) -> Check:
    """Check the share of the text that is in the training text."""
    if skipped or overlap is None:
        return judge(LEVEL, NAME, skipped=skipped or "the training text was not named (--train)")
    try:
        counts = overlap() if callable(overlap) else overlap
    except NothingToCompareError as error:
        return judge(LEVEL, NAME, skipped=str(error))
    share = counts.long_contaminated_bytes / counts.bytes if counts.bytes else 0.0
    evidence = (
        f"{100 * share:.2f} % of the bytes ({counts.long_contaminated_bytes:,} of {counts.bytes:,}) are in the training "
        f"text, in runs of {counts.n} {counts.unit}s or more or as whole segments of 20 bytes or more; "
        f"{100 * max_overlap:g} % are allowed."
    )
    if 2 * counts.contaminated_bytes > counts.bytes:
        repeated = 100 * counts.contaminated_bytes / counts.bytes
        skipped = f"{repeated:.0f} % of the bytes are lines that the training text has too, but short ones, which repeat by "
        skipped += "nature: judge by lmgauge overlap"
    elif counts.unspaced:
        skipped = "words were compared, but spaces do not separate them here: name --overlap-unit character"
    no_runs = f" No run of {counts.n} {counts.unit}s fits in the text: only whole segments were compared."
    details = {name: getattr(counts, name) for name in ("bytes", "long_contaminated_bytes", "segments")}
    details |= {"contaminated_segments": counts.contaminated_segments, "share": share, "max_overlap": max_overlap}
    bad = evidence if share > max_overlap else ""
    return judge(LEVEL, NAME, bad=bad, skipped=skipped, good=evidence + ("" if counts.ngrams else no_runs), details=details)
