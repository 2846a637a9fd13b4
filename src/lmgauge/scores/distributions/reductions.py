"""What can be kept of a whole distribution: each reduction turns a tile into columns, a value an event."""

# They are written once, for arrays of any library that follows the array API standard. Logarithms are natural.

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from lmgauge.scores.distributions.tile import LOWEST, Array, Tile, as_numpy, dot, possible

Columns = Mapping[str, NDArray[Any]]


class Reduction(Protocol):
    """What is kept of each distribution: any function of a tile. A model with a closed form knows ours by their type.

    Example:
        >>> from lmgauge.scores.distributions import Tile
        >>> import numpy as np
        >>> def most_probable(tile):  # a reduction of one's own, for NumPy and torch alike
        ...     return {"most": np.asarray(tile.xp.max(tile.p, axis=1))}
        >>> most_probable(Tile(lambda: np.log([[0.5, 0.25, 0.25]]), np.array([1])))["most"].tolist()
        [0.5]
    """

    def __call__(self, tile: Tile) -> Columns:
        # Columns by name, each [n] or [n, k], of a tile.
        ...


class PairReduction(Protocol):
    """What is kept of two distributions over the same tokens after the same context: any function of two tiles.

    Example:
        >>> from lmgauge.scores.distributions import Tile
        >>> import numpy as np
        >>> def largest_change(a, b):
        ...     return {"change": np.abs(a.p - b.p).max(axis=1)}
        >>> tiles = [Tile(lambda p=p: np.log([p]), np.array([0])) for p in ([0.5, 0.5], [0.25, 0.75])]
        >>> largest_change(*tiles)["change"].tolist()
        [0.25]
    """

    def __call__(self, a: Tile, b: Tile) -> Columns:
        # Columns by name, each [n] or [n, k].
        ...


@dataclass(frozen=True)
class Entropy:
    """The entropy of the distribution, nats: column `entropy`, float64 [n] (Shannon 1948).

    Example:
        >>> from lmgauge.scores.distributions import Tile
        >>> import numpy as np
        >>> Entropy()(Tile(lambda: np.log([[0.5, 0.5]]), np.array([0])))["entropy"].round(4).tolist()
        [0.6931]
    """

    def __call__(self, tile: Tile) -> Columns:
        return {"entropy": -as_numpy(dot(tile.p, tile.logprob))}


@dataclass(frozen=True)
class Rank:
    """How many tokens are more probable than the one that came, and one: column `rank`, int64 [n].

    Example:
        >>> from lmgauge.scores.distributions import Tile
        >>> import numpy as np
        >>> Rank()(Tile(lambda: np.log([[0.5, 0.25, 0.25]]), np.array([2])))["rank"].tolist()
        [2]
    """

    def __call__(self, tile: Tile) -> Columns:
        xp = tile.xp
        of_target = xp.take_along_axis(tile.logprob, tile.own_targets[:, None], axis=1)
        return {"rank": 1 + as_numpy(xp.count_nonzero(tile.logprob > of_target, axis=1)).astype(np.int64)}


@dataclass(frozen=True)
class TopK:
    """The most probable tokens: columns `top_ids`, uint32 [n, k], and `top_logprobs`, nats, float64 [n, k].

    The most probable comes first; equally probable ones by id, as far as NumPy computes them.

    Attributes:
        k: how many; at most the vocabulary.

    Example:
        >>> from lmgauge.scores.distributions import Tile
        >>> import numpy as np
        >>> top = TopK(2)(Tile(lambda: np.log([[0.2, 0.5, 0.3]]), np.array([0])))
        >>> top["top_ids"].tolist(), np.exp(top["top_logprobs"]).round(2).tolist()
        ([[1, 2]], [[0.5, 0.3]])
    """

    k: int

    def __call__(self, tile: Tile) -> Columns:
        ids, values = largest(tile.logprob, self.k)
        return {"top_ids": ids.astype(np.uint32), "top_logprobs": possible(values)}


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of log p under the distribution itself, nats: `mean_logprob`, `logprob_deviation`.

    The mean is minus the entropy.

    Example:
        >>> from lmgauge.scores.distributions import Tile
        >>> import numpy as np
        >>> found = Moments()(Tile(lambda: np.log([[0.5, 0.25, 0.25]]), np.array([0])))
        >>> [column.round(4).tolist() for column in found.values()]
        [[-1.0397], [0.3466]]
    """

    def __call__(self, tile: Tile) -> Columns:
        xp = tile.xp
        mean = dot(tile.p, tile.logprob)
        # Around the mean, as the difference of the squares would lose the digits of a narrow distribution.
        variance = as_numpy(dot(tile.p, xp.where(tile.p > 0, tile.logprob - mean[:, None], 0.0) ** 2))
        return {"mean_logprob": as_numpy(mean), "logprob_deviation": np.sqrt(variance)}


@dataclass(frozen=True)
class Mass:
    """The probability of a set of tokens: a column, float64 [n].

    Attributes:
        ids: of the tokens; all of the vocabulary if None, whose mass should be one.
        name: of the column.

    Example:
        >>> from lmgauge.scores.distributions import Tile
        >>> import numpy as np
        >>> Mass((0, 2))(Tile(lambda: np.log([[0.5, 0.25, 0.25]]), np.array([0])))["mass"].tolist()
        [0.75]
    """

    ids: tuple[int, ...] | None = None
    name: str = "mass"

    def __call__(self, tile: Tile) -> Columns:
        p = tile.p
        if self.ids is not None:
            device = array_api_compat.device(tile.logprob)
            p = tile.xp.take(p, tile.xp.asarray(self._array, device=device), axis=1)
        return {self.name: as_numpy(tile.xp.sum(p, axis=1))}

    @cached_property
    def _array(self) -> NDArray[np.int64]:
        # Ids, int64 [n]: made once, not for each tile.
        return np.array(self.ids, np.int64)


def largest(values: Array, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return where the k largest values of each row are, and the values, largest first; equal ones by place."""
    # values: [n, m].
    # -> int64 [n, k] and float64 [n, k].
    # [found.tolist() for found in largest([[0.1, 0.7, 0.1, 0.1]], 2)] -> [[[1, 0]], [[0.7, 0.1]]]
    k = min(k, values.shape[1])
    if array_api_compat.is_torch_array(values):
        chosen = values.topk(k, dim=1)
        found, ids = as_numpy(chosen.values), as_numpy(chosen.indices)
        order = np.lexsort((ids, -found))
        return np.take_along_axis(ids, order, 1), np.take_along_axis(found, order, 1)
    ids = np.array([_largest_of_row(row, k) for row in values], np.int64).reshape(len(values), k)
    return ids, as_numpy(np.take_along_axis(values, ids, 1))


def _largest_of_row(row: NDArray[Any], k: int) -> NDArray[np.int64]:
    bound = row.min() if k == len(row) else np.partition(row, len(row) - k)[len(row) - k]
    candidates = np.flatnonzero(row >= bound)
    chosen: NDArray[np.int64] = candidates[np.argsort(-row[candidates], kind="stable")[:k]]
    return chosen


# --- every entry of a distribution as a forecast: how many of about the same probability there are, and which came true ---

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
