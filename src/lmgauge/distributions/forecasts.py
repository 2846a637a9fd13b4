"""Every entry of a distribution as a forecast: how many of about the same probability there are, and which one came true."""

from __future__ import annotations

import math
from dataclasses import dataclass

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from lmgauge.distributions.reductions import Columns
from lmgauge.distributions.tile import LOWEST, Tile, as_numpy, dot

DECADES = 9  # the lowest: above 0, up to 1e-8
TENTHS = 10
_LN_10 = math.log(10.0)
# The logarithm of 0.1 and back is not 0.1 to the last digit, but 0.1 belongs to the bins that end there.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Forecasts:
    """What a context adds to the reliability of forecasts (Brier 1950; Guo et al. 2017)."""

    # Columns, with n events: `decades`, float64 [n, 9, 2], of each power of ten, the highest first, closed above, the
    # lowest down to 0: how many tokens have such a probability, and the sum of their probabilities; `tenths`, float64 [n,
    # 10, 2], the same of ten equal bins, the lowest first; `impossible`, int64 [n], tokens of probability 0; `confidence`,
    # float64 [n], probability of the most probable token, and `right`, bool [n], whether it came (the first by id if
    # several are); `brier`, float64 [n], sum of squared differences between forecast and what happened; `entropy` and
    # `came`, float64 [n], nats: of the distribution, and log-probability of the token that came.

    def __call__(self, tile: Tile) -> Columns:
        xp, logprob, p = tile.xp, tile.logprob, tile.p
        came = tile.of_targets()
        highest = as_numpy(xp.max(logprob, axis=1))
        impossible = as_numpy(xp.count_nonzero(logprob < LOWEST / 2, axis=1))
        decades, tenths = _binned(tile)
        decades[:, -1, 0] -= impossible
        tenths[:, 0, 0] -= impossible
        return {
            "decades": decades,
            "tenths": tenths,
            "impossible": impossible.astype(np.int64),
            "confidence": np.exp(highest),
            "right": (as_numpy(xp.argmax(logprob, axis=1)) == tile.targets) & (came > -math.inf),
            "brier": as_numpy(dot(p, p)) - 2 * np.exp(came) + 1,
            "entropy": -as_numpy(dot(p, logprob)),
            "came": came,
        }


def _binned(tile: Tile) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # Counts and sums of all entries, float64 [n, 9, 2] by decades and [n, 10, 2] by tenths.
    xp, n = tile.xp, len(tile)
    # Not in the array API's standard, but in NumPy and torch: the decade of each entry, and 9 places a row to count in.
    powers = xp.clip((_ROUNDING - tile.logprob) * (1 / _LN_10), min=0.0, max=float(DECADES - 1))
    own_places = xp.arange(0, n * DECADES, DECADES, device=array_api_compat.device(powers))
    places = xp.reshape(xp.astype(powers, xp.int64) + own_places[:, None], (-1,))
    p = xp.reshape(xp.astype(tile.p, xp.float64), (-1,))
    counted = (xp.bincount(places, weights, n * DECADES) for weights in (None, p))
    decades = np.stack([as_numpy(kind).astype(np.float64).reshape(n, DECADES) for kind in counted], axis=2)
    # All but a few forecasts are in the lowest tenth: only the few are looked at one by one.
    rows, columns = (as_numpy(at) for at in xp.nonzero(tile.logprob > _ROUNDING - _LN_10))
    high = np.exp(as_numpy(tile.logprob[rows, columns]))
    at = rows * TENTHS + tenth_of(high)
    tenths = np.stack([np.bincount(at, w, n * TENTHS).reshape(n, TENTHS) for w in (None, high)], axis=2).astype(np.float64)
    tenths[:, 0] += decades[:, 1:].sum(axis=1)
    return decades, tenths


def bins_of(came: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bins of some forecasts: the decade and the tenth of each, int64 [n]."""
    # came: float64 [n], nats; what is impossible is in the lowest bins.
    # [bins.tolist() for bins in bins_of(np.log([0.1, 0.11, 1.0]))] -> [[1, 0, 0], [0, 1, 9]]
    decades = np.clip((_ROUNDING - came) / _LN_10, 0, DECADES - 1).astype(np.int64)
    return decades, tenth_of(np.exp(came))


def tenth_of(p: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return which of ten equal bins, closed above, each probability is in."""
    # tenth_of([0.1, 0.11, 1.0]) -> [0, 1, 9]
    # p: float64 [n], 0 to 1.
    # -> int64 [n], 0 to 9.
    tenths: NDArray[np.int64] = (np.ceil(p * (TENTHS * (1 - _ROUNDING))).astype(np.int64) - 1).clip(0, TENTHS - 1)
    return tenths
