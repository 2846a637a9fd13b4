"""What storing draws in place of whole distributions can have cost: standard errors, and proven bounds.

The draws of all events are independent, and nothing else is random: the text, the base and the candidate are what they
are. Let a draw of weight w (R / m of its event) add Y = w f(r), with the mean M over our draws. What follows of the sum of
Y - M holds for any base, any candidate and any number of events.

*From below*, near form, Y >= 0. As exp(a y - a^2 y^2 / 2) <= 1 + a y for y, a >= 0, the mean of
exp(a (Y - M) - a^2 Y^2 / 2) is at most (1 + a M) exp(-a M) <= 1. So is that of the product over all draws, and by Markov's
inequality, with probability 1 - exp(-t), the sum of Y - M is at most (t + a^2 / 2 times the sum of Y^2) / a.

*From above*, far form, Y <= c + h with c (w times the far form of Q / R) and h (the reach) that do not depend on draws.
With psi(a) = (-ln(1 - a h) - a h) / h^2, exp(a x - psi(a) x^2) <= 1 + a x for x >= -h and 0 <= a h < 1 (Fan, Grama & Liu
2015, "Exponential inequalities for martingales with applications", lemma 4.1). Put x = c - Y: as above, the sum of M - Y is
at most (t + the sum of psi(a) (Y - c)^2) / a. No range from below is needed, and no variance has to be known.

The number `a` must not depend on the draws: a few are tried, around the best one if draws were like the top tokens, each
with its share of the error probability. Where that guess is bad, the bound is wide, and still holds.

An empirical Bernstein bound (Maurer & Pontil 2009, theorem 11) is of the same shape with 7 / 3 in place of 1 before t h.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import UsageError
from lmgauge.evaluation.divergence.base_file import BaseFile
from lmgauge.evaluation.divergence.divergence_result import Storage, StorageError
from lmgauge.numerics.units import LN_2

Floats = NDArray[np.float64]
CONFIDENCE = StorageError.confidence
_GUESSES = (0.25, 1.0, 4.0, 16.0)  # times what the top lets expect
_FIGURES = {
    "kl_ab_nats": ("kl_ab", 1.0),
    "kl_ba_nats": ("kl_ba", 1.0),
    "jensen_shannon_bits": ("js", 1 / LN_2),
    "total_variation": ("tv", 1.0),
}
"""Of figures the columns of events that they are of, and their unit in that of the columns."""
_MOST = {"js": LN_2, "tv": 1.0}


def storage_of(base: BaseFile, columns: Mapping[str, NDArray[Any]]) -> Storage:
    """Return what storing can have done to the figures of a divergence."""
    header, tail_mass, event_error = base.header, 0.0, 0.0
    errors: dict[str, StorageError | None] = {}
    if header.stored == "top":
        tail_mass = float(np.mean(columns["tail_mass"]))
        variance = columns["kl_ab_variance"]
        variance = variance[np.isfinite(variance)]
        event_error = float(np.sqrt(np.mean(variance))) if len(variance) else 0.0
        errors = {name: storage_error(columns, column, scale=scale) for name, (column, scale) in _FIGURES.items()}
        apart = errors["total_variation"]
        if apart is not None and apart.high is not None:
            errors["acceptance_rate"] = replace(apart, low=1 - apart.high, high=1 - apart.low)
    return Storage(
        file=str(base.path),
        stored=header.stored,
        top=header.top,
        samples=header.samples,
        file_bytes=base.size_bytes,
        whole_bytes=header.whole_bytes,
        tail_mass=tail_mass,
        event_error_nats=event_error,
        errors={name: error for name, error in errors.items() if error is not None},
    )


def storage_error(
    columns: Mapping[str, NDArray[Any]], name: str, confidence: float = CONFIDENCE, scale: float = 1.0
) -> StorageError | None:
    """Return what storage can have done to the mean of a figure over events, times a scale."""
    # columns: of `StoredDivergences`, float64 [n].
    if not 0 < confidence < 1:
        raise UsageError(f"confidence must be between 0 and 1; got {confidence}")
    used = ~np.isnan(columns[name])
    n = int(np.count_nonzero(used))
    if not n:
        return None
    own = {
        key[len(name) :]: np.asarray(values, np.float64)[used]
        for key, values in columns.items()
        if key == name or key.startswith(f"{name}_")
    }
    if np.isinf(own[""]).any():
        return StorageError(None, math.inf, math.inf, confidence)
    # Two sides with four guesses each: every bound may fail with an eighth of 1 - confidence, so that exp(-t) is that.
    t = math.log(2 * len(_GUESSES) / (1 - confidence))
    error = math.sqrt(math.fsum(own["_variance"].tolist())) / n
    low = max(_low(own, t), math.fsum(own["_least"].tolist())) / n
    high: float | None = None
    if not np.any(columns["tail_mass"][used]):
        low = high = math.fsum(own[""].tolist()) / n
    elif "_far" in own:
        high = min(_high(own, t) / n, _MOST.get(name, math.inf))
        low = min(low, high)
    return StorageError(scale * error, scale * max(low, 0.0), None if high is None else scale * high, confidence)


def _low(own: Mapping[str, Floats], t: float) -> float:
    # Lower bound of the sum over events.
    squares = math.fsum(own["_square"].tolist())
    scale = math.sqrt(math.fsum(own["_square_expected"].tolist()) / (2 * t)) or 1e-9 * len(own[""])
    # (t + a^2 / 2 sum Y^2) / a with a = 1 / (scale guess); the least is at a = sqrt(2 t / sum Y^2), which is the guess 1 if
    # the draws are as expected.
    cost = min(t * scale * guess + squares / (2 * scale * guess) for guess in _GUESSES)
    return math.fsum(own["_near"].tolist()) - cost


def _high(own: Mapping[str, Floats], t: float) -> float:
    # Upper bound of the sum over events; inf where the candidate may rule out what the base holds possible.
    reach, squares = own["_reach"], own["_far_square"]
    if not np.isfinite(reach).all() or not np.isfinite(squares).all():
        return math.inf
    scale = math.sqrt(math.fsum(own["_far_square_expected"].tolist()) / (2 * t)) or 1e-9 * len(reach)
    costs = []
    for guess in _GUESSES:
        # Then a h < 1 for the largest reach, as psi needs.
        a = 1.0 / (float(reach.max()) + scale * guess)
        costs.append((t + math.fsum((_psi(a, reach) * squares).tolist())) / a)
    return math.fsum(own["_far"].tolist()) + min(costs)


def _psi(a: float, reach: Floats) -> Floats:
    """Return (-ln(1 - a h) - a h) / h^2 of each h, a^2 / 2 for h = 0.

    >>> _psi(1.0, np.array([0.0, 0.5])).round(4).tolist()
    [0.5, 0.7726]
    """
    y = a * reach
    # -ln(1 - y) - y = y^2 / 2 + y^3 / 3 + ...: divided by h^2 it is a^2 (1/2 + y / 3 + ...); for small y the difference
    # itself has no digits left.
    small = y < 1e-4
    safe = np.where(small, 0.5, y)
    return np.asarray(a**2 * np.where(small, 0.5 + y / 3 + y**2, (-np.log1p(-safe) - safe) / safe**2))
