"""What of the bits of each event is letters of an unseen word, and white space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import SEPARATOR, SPELLING, ScoreBatch


def spelled_parts(table: ScoreBatch) -> dict[str, NDArray[np.float64]]:
    """Return what of the bits of events is letters and white space, [rows], by column.

    >>> from lmgauge.scores import example_batch
    >>> spelled_parts(example_batch())
    {}
    """
    # Empty of a model that spells nothing.
    return {name: nats_to_bits(-table.extra[name]) for name in (SPELLING, SEPARATOR) if name in table.extra}
