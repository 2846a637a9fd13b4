"""Numbers that look random and are the same on every machine and in every version: the mixing step of SplitMix64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Step between the states of SplitMix64: 2**64 over the golden ratio, odd."""


def mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the output of the SplitMix64 generator (Steele, Lea, Flood 2014) for its states: it permutes 64-bit numbers."""
    # state: uint64 [any shape].
    # -> uint64 of the same shape.
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
