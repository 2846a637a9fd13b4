"""What can be kept of two distributions over the same tokens: divergences, and how many of the best tokens agree.

All sums are over f(x) times p_A with x = p_B / p_A - 1, in forms that keep their digits where the models are close: the
terms are of the size of the divergence, not of the probabilities. Where sums are off one by rounding, a divergence is off
by that share of itself only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.numerics.units import LN_2
from lmgauge.scores.distributions.reductions import Columns, largest
from lmgauge.scores.distributions.tile import LOWEST, Array, Tile, as_numpy, dot, possible, ready

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
