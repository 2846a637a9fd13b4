"""Translation edit rate from sums of edits and reference lengths.

Source: Snover, Dorr, Schwartz, Micciulla & Makhoul (2006), "A study of translation edit rate with targeted human
annotation": TER = edits / average number of reference words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lmgauge.metrics.reference_length import LENGTH_SCALE

__all__ = ["ter_scores"]

Floats = NDArray[np.float64]


def ter_scores(sums: Floats) -> Floats:
    """TER times 100: edits for each 100 words of reference, which may be more than 100.

    Without reference words it is 100 where there are edits and 0 where there are none.

    Args:
        sums: float64 [rows, 2]: edits, and reference words times `LENGTH_SCALE`.

    Returns:
        float64 [rows].

    >>> ter_scores(np.array([[2.0, 5 * LENGTH_SCALE], [3.0, 0.0]])).tolist()
    [40.0, 100.0]
    """
    edits, length = sums[:, 0], sums[:, 1] / LENGTH_SCALE
    return 100 * np.divide(edits, length, out=np.where(edits > 0, 1.0, 0.0), where=length > 0)
