"""What can be kept of a whole distribution, or of two over the same tokens: each reduction turns a tile into columns, a
value an event.

All sums of two are over f(x) times p_A with x = p_B / p_A - 1, in forms that keep their digits where the models are close:
the terms are of the size of the divergence, not of the probabilities. Where sums are off one by rounding, a divergence is
off by that share of itself only.
"""

# They are written once, for arrays of any library that follows the array API standard. Logarithms are natural.

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from lmgauge.numerics.units import LN_2
from lmgauge.scores.distributions.tile import LOWEST, Array, Tile, as_numpy, dot, possible, ready

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


Floats = NDArray[np.float64]
_TINY = float(np.nextafter(0.0, 1.0))
FIGURES = ("kl_ab", "kl_ba", "js", "tv")
_ROUNDED_MASS = 1e-4  # of float32 arrays, and of files that round


@dataclass(frozen=True)
class Divergences:
    """How far two distributions are apart; a row an event.

    Columns: `kl_ab`, `kl_ba` (Kullback & Leibler 1951) and `js` (Lin 1991), nats; `tv`, the total variation; `mass_a` and
    `mass_b`, what the probabilities summed to before they were divided by it; `overlap_K` for each K: which share of A's K
    most probable tokens is among B's; and, if there is any K, the most probable token of each, `top_a` and `top_b` (ids,
    int64), with `top_a_logprob` and `top_b_logprob`, nats. A KL divergence is inf where the second distribution rules out
    what the first holds possible; all are NaN where either gives nothing a probability.

    Attributes:
        top_k: for which K, ascending.

    Example:
        >>> from lmgauge.scores.distributions import Tile
        >>> import numpy as np
        >>> a, b = (Tile(lambda p=p: np.log([p]), np.array([0])) for p in ([0.5, 0.5], [0.25, 0.75]))
        >>> found = Divergences(())(a, b)
        >>> {name: round(float(values[0]), 4) for name, values in found.items()}
        {'kl_ab': 0.1438, 'kl_ba': 0.1308, 'js': 0.0338, 'tv': 0.25, 'mass_a': 1.0, 'mass_b': 1.0}
    """

    top_k: tuple[int, ...] = (1, 5, 10)

    def __call__(self, a: Tile, b: Tile) -> Columns:
        a, b = _alike(a, b)
        figures, masses = _figures(a, b, _close_forms)
        names = dict(zip(FIGURES, figures, strict=True))
        ours = largest(a.logprob, self.top_k[-1]) if self.top_k else ()
        return names | {"mass_a": masses[0], "mass_b": masses[1]} | best_tokens(self.top_k, ours, b)


def best_tokens(top_k: Sequence[int], ours: tuple[NDArray[Any], ...], b: Tile) -> dict[str, NDArray[Any]]:
    """Return the most probable token of two distributions at each event, and which share of the best of A is among B's."""
    # top_k: for which K to count, ascending; ours: ids and log-probabilities of A's best tokens, [n, k] each.
    if not top_k:
        return {}
    theirs = largest(b.logprob, top_k[-1])
    columns: dict[str, NDArray[Any]] = {}
    for name, (ids, values) in (("top_a", ours), ("top_b", theirs)):
        columns |= {name: ids[:, 0].astype(np.int64), f"{name}_logprob": possible(values[:, 0])}
    for k in top_k:
        # Tokens that A rules out are no best tokens: A may have fewer than k.
        counted = ours[1][:, :k] > LOWEST / 2
        same = (ours[0][:, :k, None] == theirs[0][:, None, :k]).any(axis=2) & counted
        columns[f"overlap_{k}"] = same.sum(axis=1) / np.maximum(1, counted.sum(axis=1))
    return columns


@dataclass(frozen=True)
class KullbackLeibler:
    """The Kullback-Leibler divergence KL(A || B) alone, nats: column `kl_ab`, float64 [n] (Kullback & Leibler 1951).

    As `Divergences` has it; two n-gram models give it without looking at all tokens.

    Example:
        >>> from lmgauge.scores.distributions import Tile
        >>> import numpy as np
        >>> a, b = (Tile(lambda p=p: np.log([p]), np.array([0])) for p in ([0.5, 0.5], [0.25, 0.75]))
        >>> KullbackLeibler()(a, b)["kl_ab"].round(4).tolist()
        [0.1438]
    """

    def __call__(self, a: Tile, b: Tile) -> Columns:
        figures, _ = _figures(*_alike(a, b), _first_close_form)
        return {"kl_ab": figures[0]}


def _alike(a: Tile, b: Tile) -> tuple[Tile, Tile]:
    if type(a.logprob) is type(b.logprob):
        return a, b
    one, other = (ready(as_numpy(tile.logprob), None, tile.targets) for tile in (a, b))
    return one, other


def _figures(a: Tile, b: Tile, close_forms: Callable[[Tile, Array], Floats]) -> tuple[Floats, tuple[Floats, Floats]]:
    # Figures of n events, float64 [figures, n] in the order of `FIGURES`, and the masses, float64 [n] each.
    # What either model rules out, or a mass that is not one, takes the direct sums.
    mass_a, mass_b = (as_numpy(tile.xp.sum(tile.p, axis=1)) for tile in (a, b))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        d = a.logprob - b.logprob
        figures = close_forms(a, d)
        if a.logprob.dtype == np.float64:  # rounding of float32 would be more than what is put right
            # KL(A || B) of what is divided by its sum, as sum p_A x = mass_b - mass_a.
            # Masses are 1 but for rounding, which is as large as the divergence of models that nearly agree.
            grown, ratio = mass_b - mass_a, np.log(mass_b / mass_a)
            figures[0] = (figures[0] - grown) / mass_a + ratio
            figures[1:2] = (figures[1:2] + grown) / mass_b - ratio
    figures = np.maximum(figures, 0)
    odd = as_numpy(a.xp.maximum(a.xp.max(d, axis=1), -a.xp.min(d, axis=1))) > -0.1 * LOWEST  # ruled out by one of them
    odd |= ~np.isfinite(figures).all(axis=0)
    odd |= (np.abs(mass_a - 1) > _ROUNDED_MASS) | (np.abs(mass_b - 1) > _ROUNDED_MASS)
    for row in np.flatnonzero(odd).tolist():
        whole = direct(*(possible(as_numpy(tile.logprob[row])) for tile in (a, b)))
        figures[:, row] = whole[: len(figures)]
    return figures, (mass_a, mass_b)


def _first_close_form(a: Tile, d: Array) -> Floats:
    # float64 [1, n]: KL(A || B) alone; see `_close_forms`.
    return as_numpy(dot(a.p, d + a.xp.expm1(-d)))[None]


def _close_forms(a: Tile, d: Array) -> Floats:
    # float64 [4, n]: KL both ways, Jensen-Shannon, total variation, by sums of p_A times what is small.
    # With d = ln p_A - ln p_B and x = p_B / p_A - 1 = exp(-d) - 1:
    # KL(A || B) = sum p_A (d + x), as sum p_A x = 0;  KL(B || A) = -sum p_A (d + x + x d);
    # JS = sum p_A (-(2 + x) ln(1 + x / 2) - (1 + x) d) / 2;  TV = sum p_A |x| / 2.
    # p_A = [0.5, 0.5], p_B = [0.25, 0.75]: x = [-0.5, 0.5], d = [0.693, -0.405], KL(A || B) = (0.193 + 0.095) / 2 = 0.144.
    xp: Any = a.xp
    x = xp.expm1(-d)
    product = x * d
    kl_ab, crossed = dot(a.p, d + x), dot(a.p, product)
    js = dot(a.p, -(2 + x) * xp.log1p(0.5 * x) - d - product)
    tv = dot(a.p, xp.abs(x))
    kl_ab, crossed, js, tv = (as_numpy(column) for column in (kl_ab, crossed, js, tv))
    return np.stack([kl_ab, -kl_ab - crossed, np.minimum(0.5 * js, LN_2), np.minimum(0.5 * tv, 1)])


def direct(log_a: Floats, log_b: Floats) -> tuple[float, float, float, float]:
    """Return the same of one event by the definitions, over what both hold possible and what only one does."""
    # log_a, log_b: float64 [vocabulary], nats, -inf allowed; each is divided by its sum first.
    # -> KL(a || b), KL(b || a), Jensen-Shannon, nats, and total variation; NaN where a sum is 0.
    # direct(np.log([0.5, 0.5]), [0.0, -np.inf])[:2] -> (inf, 0.6931471805599453)
    sums = [float(np.exp(values).sum()) for values in (log_a, log_b)]
    if not all(math.isfinite(total) and total > 0 for total in sums):
        return math.nan, math.nan, math.nan, math.nan
    log_a, log_b = log_a - math.log(sums[0]), log_b - math.log(sums[1])
    if np.array_equal(log_a, log_b):
        return 0.0, 0.0, 0.0, 0.0
    in_a, in_b = log_a > -np.inf, log_b > -np.inf
    both = in_a & in_b
    only_a, only_b = float(np.exp(log_a[in_a & ~both]).sum()), float(np.exp(log_b[in_b & ~both]).sum())
    p_a, p_b = np.exp(log_a[both]), np.exp(log_b[both])
    difference = log_a[both] - log_b[both]
    kl_ab = math.inf if (in_a & ~both).any() else max(0.0, float((p_a * difference).sum()))
    kl_ba = math.inf if (in_b & ~both).any() else max(0.0, -float((p_b * difference).sum()))
    # As in information/distributions.py: p + q in place of their mean, and ln 2 to make up for it.
    log_sum = np.log(np.maximum(p_a + p_b, _TINY))
    js = 0.5 * float((p_a * (log_a[both] - log_sum) + p_b * (log_b[both] - log_sum)).sum()) + LN_2
    tv = min(1.0, 0.5 * (float(np.abs(p_a - p_b).sum()) + only_a + only_b))
    return kl_ab, kl_ba, min(max(0.0, js), LN_2), tv
