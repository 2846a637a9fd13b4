"""Random distributions, for the tests of stored bases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lmgauge.scores.distributions.tile import Tile

Floats = NDArray[np.float64]


def random_logprob(rng: np.random.Generator, n: int, vocabulary: int, spread: float = 2.0) -> Floats:
    """Return float64 [n, vocabulary], nats."""
    return normalized(rng.normal(0, spread, (n, vocabulary)))


def near_by(rng: np.random.Generator, logprob: Floats, spread: float) -> Floats:
    """Return distributions whose logarithms are off by normal noise."""
    return normalized(logprob + rng.normal(0, spread, logprob.shape))


def normalized(values: Floats) -> Floats:
    """Return values less the logarithm of the sum of their exponentials, row by row."""
    result: Floats = values - np.log(np.exp(values).sum(axis=1, keepdims=True))
    return result


def tile(logprob: Floats) -> Tile:
    """Return a tile whose true tokens are all 0."""
    return Tile(lambda: logprob, np.zeros(len(logprob), np.int64))
