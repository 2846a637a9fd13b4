"""What is stored of a base's distributions, and the divergences of a model's from these.

Stored are the most probable tokens as they are, and draws from the rest.

The rest of an event, its tail, has the mass R. It is cut into m = ceil(D R) pieces of equal mass, and a token is drawn from
each in proportion to its probability, by a generator that the seed and the number of the event start. D, draws per unit
of probability, is the same everywhere: a draw stands for a mass of at most 1 / D, wherever it is, so that an event whose
tail is small needs few.

Of divergences the top is exact, and the tail is estimated from its draws.

Every figure is an f-divergence: the sum over tokens of p f(r) with r = q / p, p of the base and q of the candidate, and f
convex with f(1) = 0 (Csiszar 1967, "Information-type measures of difference of probability distributions"): -ln r for
KL(A || B), r ln r for KL(B || A), (r ln r - (1 + r) ln((1 + r) / 2)) / 2 for Jensen-Shannon, |r - 1| / 2 for total
variation. As q sums to one, f may be replaced by f - c (r - 1) with any c. Two such forms are used.

*Near*: c is the slope of f at 1, so that the terms are at least 0 and of the size of the divergence. For KL(A || B) it is
r - 1 - ln r, known as k3 (Schulman 2020, "Approximating KL divergence"). In the tail, whose masses R and Q under base and
candidate are known, c is the slope at Q / R: the sum is R f(Q / R), which no tail of these masses has less than (Jensen's
inequality), and the mean under the tail of what f lies above its tangent there, which is at least 0. The estimates are of
this form. That of total variation is max(1 - r, 0) in top and tail, c = 1 / 2, which is at least 0 and at most 1.

*Far*: c is the slope of f at infinity, so that f falls everywhere, and is largest at the smallest r, which the candidate can
bound: r is at least the smallest q of the tail over the largest p of the tail. It is for upper bounds; KL(B || A) has none.

**No estimate is biased, whatever the candidate**: only our own draws are random. Let the tail's tokens lie side by side on
[0, R], each as long as its probability, x(u) the token at u. Draw j of m is x(u) for u uniform in [j R / m, (j + 1) R / m),
so the mean of R / m times the sum of f(r(x_j)) is the integral of f(r(x(u))) du over [0, R], which is the sum of p f(r).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import DEFAULT_BASE_SAMPLES, DEFAULT_BASE_TOP, StoredType
from lmgauge.numerics.units import LN_2
from lmgauge.scores.distributions.reductions import FIGURES, Floats, best_tokens, largest
from lmgauge.scores.distributions.tile import LOWEST, Tile, as_numpy, dot, possible
from lmgauge.scores.table import TOKEN

Ids = NDArray[np.uint32]
LOWEST_STORED = -700.0  # nats; what is less probable is taken as impossible: its probability hardly fits a float64
_SLOPE = {"kl_ab": 0.0, "js": LN_2 / 2, "tv": 0.5}  # of f at infinity; that of r ln r is infinite
_NEAR_SLOPE = {"kl_ab": 1.0, "kl_ba": np.inf, "js": LN_2 / 2, "tv": 0.0}  # of the near forms
_FLOAT32 = 1e-5  # nats: more than a stored logarithm is off by rounding


@dataclass(frozen=True)
class LastLayer:
    """The output layer of a network, for hidden states that were stored."""

    width: int  # numbers of a state
    dtype: StoredType  # that holds each of them
    digest: str  # SHA-256 of all that distributions depend on besides the states
    # of states, float32 [n, width], natural log-probabilities and probabilities [m, vocabulary], for a few at a time
    distributions: Callable[[NDArray[np.float32]], Iterator[tuple[Any, Any]]]


@dataclass(frozen=True, slots=True, eq=False)
class BaseRows:
    """What every stored base has of consecutive events."""

    token: Ids  # uint32 [n], the true tokens
    kind: NDArray[np.uint8]  # uint8 [n], as in a score table
    logprob: Floats  # float64 [n], of the true tokens, nats
    mass: Floats  # float64 [n], what the probabilities summed to before they were divided by it; 0 where nothing is possible

    def __len__(self) -> int:
        return len(self.token)

    def part(self, begin: int, end: int) -> Self:
        """Return some of the rows."""
        return type(self)(*(getattr(self, field.name)[begin:end] for field in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return consecutive rows as one."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


@dataclass(frozen=True, slots=True, eq=False)
class StoredRows(BaseRows):
    """What is stored of the distributions at consecutive events."""

    entropy: Floats  # float64 [n], nats
    top_ids: Ids  # uint32 [n, k], the most probable tokens, the most probable first, ties by id
    top_logprobs: Floats  # float64 [n, k], nats, rounded to float32; -inf for what cannot come
    tail_mass: Floats  # float64 [n], the probability of all other tokens
    tail_tokens: NDArray[np.int64]  # int64 [n], how many of these are possible
    draws: NDArray[np.int64]  # int64 [n], how many were drawn from the tail
    drawn_ids: Ids  # uint32 [draws of all events], ascending within an event
    drawn_logprobs: Floats  # float64 [draws of all events], nats, rounded to float32

    def part(self, begin: int, end: int) -> StoredRows:
        """Return some of the rows."""
        before = np.concatenate(([0], np.cumsum(self.draws)))
        drawn = slice(int(before[begin]), int(before[end]))
        ids, logprobs = self.drawn_ids[drawn], self.drawn_logprobs[drawn]
        return replace(BaseRows.part(self, begin, end), drawn_ids=ids, drawn_logprobs=logprobs)


def stored_rows(
    tile: Tile, first: int, top: int = DEFAULT_BASE_TOP, samples: int = DEFAULT_BASE_SAMPLES, seed: int = 0
) -> StoredRows:
    """Return what is stored of a tile, all events as ordinary tokens: the top ones, and draws for a probability of 1."""
    xp: Any = tile.xp
    mass = as_numpy(xp.sum(tile.p, axis=1, dtype=xp.float64))
    log_mass = np.log(np.where(mass > 0, mass, 1.0))
    top_ids, of_top = largest(tile.logprob, top)
    tail = _tail(tile, top_ids, log_mass)
    # tail [0, 0.1, 0, 0.2] -> cumulative [0, 0.1, 0.1, 0.3]; tokens of the top take no room in it, so that no draw is one
    # of them.
    cumulative = array_api_compat.array_namespace(tail).cumulative_sum(tail, axis=1)
    tail_mass = np.minimum(as_numpy(cumulative[:, -1]), 1.0)
    draws = draws_of(tail_mass, samples)
    owner = np.repeat(np.arange(len(tile)), draws)
    drawn = _drawn(cumulative, draws, first, seed)
    rows = xp.asarray(owner, device=array_api_compat.device(tile.logprob))
    columns = xp.asarray(drawn, device=array_api_compat.device(tile.logprob))
    of_drawn = as_numpy(tile.logprob[rows, columns])
    weighted = dot(tile.p, tile.logprob)
    return StoredRows(
        token=tile.targets.astype(np.uint32),
        kind=np.full(len(tile), TOKEN, np.uint8),
        logprob=tile.of_targets(),
        mass=mass,
        entropy=np.where(mass > 0, np.maximum(log_mass - as_numpy(weighted) / np.where(mass > 0, mass, 1.0), 0.0), 0.0),
        top_ids=top_ids.astype(np.uint32),
        top_logprobs=_rounded(possible(of_top) - log_mass[:, None]),
        tail_mass=tail_mass,
        tail_tokens=as_numpy(xp.count_nonzero(tail > 0, axis=1)).astype(np.int64),
        draws=draws,
        drawn_ids=drawn.astype(np.uint32),
        drawn_logprobs=_rounded(of_drawn - log_mass[owner]),
    )


def draws_of(tail_mass: Floats, samples: int) -> NDArray[np.int64]:
    """Return how many tokens are drawn from tails, of `samples` for a probability of 1."""
    # 50 draws for the whole probability: a tail of 0.3 has 15, each for a mass of 0.02; one of 0.01 has 1.
    return np.ceil(samples * tail_mass).astype(np.int64)


def possible_tokens(tile: Tile) -> NDArray[np.bool_]:
    """Return which tokens can come at any of the events of a tile, bool [vocabulary]."""
    # possible_tokens(Tile(lambda: np.log([[1.0, 1e-320, 1e-300]]), [0])) -> [True, False, True]
    can: NDArray[np.bool_] = as_numpy(tile.xp.any(tile.logprob >= LOWEST_STORED, axis=0))
    return can


def _tail(tile: Tile, top_ids: NDArray[np.int64], log_mass: Floats) -> Any:
    # Probabilities, divided by their sum, with 0 for the most probable tokens: float64 [n, vocabulary].
    xp: Any = tile.xp
    offset = xp.asarray(log_mass, device=array_api_compat.device(tile.logprob))
    logprob = xp.astype(tile.logprob, xp.float64) - offset[:, None]
    return with_values(xp.where(logprob < LOWEST_STORED, 0.0, xp.exp(logprob)), top_ids, 0.0)


def with_values(values: Any, ids: NDArray[np.int64], value: float) -> Any:
    """Return an array [n, vocabulary] of any library with one value at some places of each row; a copy."""
    # with_values([[1.0, 2.0, 3.0]], [[0, 2]], 0.0) -> [[0.0, 2.0, 0.0]]
    # values: [n, vocabulary]; ids: int64 [n, k], the places.
    if array_api_compat.is_torch_array(values):
        return values.scatter(1, array_api_compat.array_namespace(values).asarray(ids, device=values.device), value)
    changed = values.copy()
    np.put_along_axis(changed, ids, value, axis=1)
    return changed


def _drawn(cumulative: Any, draws: NDArray[np.int64], first: int, seed: int) -> NDArray[np.int64]:
    # Token for each piece of equal mass of each row's tail, int64 [draws of all rows], by id within a row.
    # A draw u, uniform in the j-th of m pieces [j R / m, (j + 1) R / m), is the first token whose cumulative mass is above
    # u.
    places = []
    for row, m in enumerate(draws.tolist()):
        if not m:
            continue
        own = as_numpy(cumulative[row])
        generator = np.random.Generator(np.random.Philox(key=np.array([seed, first + row], np.uint64)))
        at = (np.arange(m) + generator.random(m)) * (own[-1] / m)
        places.append(np.searchsorted(own, np.minimum(at, np.nextafter(own[-1], 0.0)), side="right"))
    return np.concatenate(places) if places else np.zeros(0, np.int64)


def _rounded(logprob: Floats) -> Floats:
    # Log-probabilities as the file keeps them: float32, at most 0, -inf for what is lower than it keeps.
    rounded = np.minimum(logprob, 0.0).astype(np.float32).astype(np.float64)
    return np.where(rounded < LOWEST_STORED, -np.inf, rounded)


# --- divergences from what is stored ---


@dataclass(frozen=True)
class StoredDivergences:
    """How far a candidate's distributions are from stored ones; a row an event."""

    # Columns: those of `distributions.pairs.Divergences`, whose estimates may leave their range at single events, as
    # cutting them off there would bias their mean; and for each of `kl_ab`, `kl_ba`, `js` and `tv`, with the name in front,
    # what `storage_bounds` needs, all float64 [n]:
    # * `_variance`: of the estimate, from the spread of the draws;
    # * `_near`: the estimate in the near form, which is too low where the base rules out tokens of the tail that are
    #   possible at other events; there the estimate is of the far form;
    # * `_square` and `_square_expected`: the sum of squares of what each draw adds in the near form, and what the top
    #   tokens, which are no draws, let expect of it;
    # * `_least`: no less is possible, by Jensen's inequality: the top and R f(Q / R), Q the candidate's mass of the tail;
    # * `_far`, `_far_square`, `_far_square_expected`: the estimate in the far form, and the same sums around the far form of
    #   Q / R; `_reach`: by how much a draw can lower the estimate at most. Not of `kl_ba`.
    # And `tail_mass`, R: how much of the probability is not stored token by token.

    # for which K to give the column `overlap_K`; ascending, at most as many as are stored
    top_k: tuple[int, ...] = (1, 5, 10)
    ruled_out: tuple[int, ...] = ()  # tokens that the base rules out at every event; they are not of the tail

    def __call__(self, rows: StoredRows, tile: Tile) -> dict[str, NDArray[Any]]:
        seen = _look(rows, tile, np.array(self.ruled_out, np.int64))
        columns: dict[str, Floats] = {}
        for name in FIGURES:
            columns |= {name + ending: values for ending, values in _figure(name, rows, seen).items()}
        undefined = (rows.mass == 0) | (seen.mass == 0)
        for values in columns.values():
            values[undefined] = np.nan
        masses = {"mass_a": rows.mass, "mass_b": seen.mass, "tail_mass": rows.tail_mass}
        return columns | masses | best_tokens(self.top_k, (rows.top_ids, rows.top_logprobs), tile)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is taken from a candidate's distributions, divided by their sums."""

    # `mass` [n] of all, `top` [n, k] ln q of the stored top, `drawn` [draws] of the draws, `tail_mass` [n], `tail_least`
    # [n] the smallest ln q of the tail, and of its tokens how many there are (`tail_size`) and may come, `tail_possible`
    # [n]; `ruled_out` [n] the mass of tokens that the base rules out everywhere; `owner` [draws] the event of each draw.

    mass: Floats
    top: Floats
    drawn: Floats
    tail_mass: Floats
    tail_least: Floats
    tail_size: NDArray[np.int64]
    tail_possible: NDArray[np.int64]
    ruled_out: Floats
    owner: NDArray[np.int64]


def _look(rows: StoredRows, tile: Tile, ruled_out: NDArray[np.int64]) -> _Seen:
    xp: Any = tile.xp
    device = array_api_compat.device(tile.logprob)
    mass = as_numpy(xp.sum(tile.p, axis=1, dtype=xp.float64))
    log_mass = np.log(np.where(mass > 0, mass, 1.0))
    top_ids = rows.top_ids.astype(np.int64)
    of_top = xp.take_along_axis(tile.logprob, xp.asarray(top_ids, device=device), axis=1)
    top = possible(as_numpy(of_top) - log_mass[:, None])
    owner = np.repeat(np.arange(len(rows)), rows.draws)
    places = xp.asarray(owner, device=device), xp.asarray(rows.drawn_ids.astype(np.int64), device=device)
    # Tokens that the base rules out may be among the top, where little else is possible.
    apart = np.concatenate([top_ids, np.broadcast_to(ruled_out, (len(rows), len(ruled_out)))], axis=1)
    p_apart = xp.take_along_axis(tile.p, xp.asarray(apart, device=device), axis=1)
    of_ruled_out = as_numpy(xp.sum(p_apart[:, top_ids.shape[1] :], axis=1, dtype=xp.float64))
    twice = np.isin(top_ids, ruled_out) & (rows.top_logprobs == -np.inf) if len(ruled_out) else np.zeros(top_ids.shape, bool)
    tail = with_values(tile.logprob, apart, 0.0)
    size = int(tile.logprob.shape[1]) - apart.shape[1] + twice.sum(axis=1)
    return _Seen(
        mass=mass,
        top=top,
        drawn=possible(as_numpy(tile.logprob[places]) - log_mass[owner]),
        tail_mass=as_numpy(xp.sum(with_values(tile.p, apart, 0.0), axis=1, dtype=xp.float64)) / np.exp(log_mass),
        tail_least=np.where(size > 0, possible(as_numpy(xp.min(tail, axis=1)) - log_mass), 0.0),
        tail_size=size,
        tail_possible=size - as_numpy(xp.count_nonzero(tail < LOWEST / 2, axis=1)).astype(np.int64),
        ruled_out=np.maximum(of_ruled_out / np.exp(log_mass) - (np.exp(top) * twice).sum(axis=1), 0.0),
        owner=owner,
    )


def _figure(name: str, rows: StoredRows, seen: _Seen) -> dict[str, Floats]:
    # Columns of one figure, by what stands behind its name.
    p = np.exp(rows.top_logprobs)
    # What one draw stands for: the mass of its piece.
    weight = rows.tail_mass / np.maximum(rows.draws, 1)
    near_top, terms = _of_top(name, p, rows.top_logprobs, seen.top)
    near_top = near_top + _at_infinity(name, seen.ruled_out)
    middle = _log_ratio(rows.tail_mass, seen.tail_mass)
    least = near_top + rows.tail_mass * _near(name, middle)
    d = rows.drawn_logprobs - seen.drawn
    near = _near(name, d) if name == "tv" else _above_tangent(name, d, middle[seen.owner])
    estimate = (near_top if name == "tv" else least) + weight * _sums(near, rows.draws)
    columns = {
        "": estimate,
        "_near": estimate,
        "_variance": weight**2 * _scatter(near, rows.draws),
        "_square": weight**2 * _sums(near**2, rows.draws),
        "_square_expected": weight**2 * rows.draws * _mean_under(p, terms**2),
        "_least": least,
    }
    ruled_out = rows.tail_tokens < seen.tail_size  # what the base rules out adds q times the slope: only the far form has it
    if name in _SLOPE:
        far = _far_columns(name, rows, seen, weight)
        columns |= far
        for ending, other in (("", "_far"), ("_variance", "_far_variance")):
            columns[ending] = np.where(ruled_out, columns[other], columns[ending])
        del columns["_far_variance"]
    lacking = {"kl_ab": rows.tail_tokens > seen.tail_possible, "kl_ba": seen.tail_possible > rows.tail_tokens}
    if name in lacking:  # some tail token of the one must be a token that the other rules out
        columns[""] = np.where(lacking[name], np.inf, columns[""])
    return columns


def _far_columns(name: str, rows: StoredRows, seen: _Seen, weight: Floats) -> dict[str, Floats]:
    p = np.exp(rows.top_logprobs)
    with np.errstate(divide="ignore", invalid="ignore"):
        highest = np.minimum(rows.top_logprobs[:, -1] + _FLOAT32, np.log(rows.tail_mass))
        least = np.where(rows.tail_mass > 0, highest - seen.tail_least, 0.0)
    d = _differences(rows.top_logprobs, seen.top)
    of_top = _far(name, d)
    top = np.where(p > 0, p * np.where(p > 0, of_top, 0.0), 0.0).sum(axis=1) + _SLOPE[name]
    far = _far(name, rows.drawn_logprobs - seen.drawn)
    middle = _far(name, _log_ratio(rows.tail_mass, seen.tail_mass))
    middle = np.where(np.isfinite(middle), middle, 0.0)
    return {
        "_far": top + weight * _sums(far, rows.draws),
        "_far_variance": weight**2 * _scatter(far, rows.draws),
        "_far_square": weight**2 * _sums((far - middle[seen.owner]) ** 2, rows.draws),
        "_far_square_expected": weight**2 * rows.draws * _mean_under(p, (of_top - middle[:, None]) ** 2),
        "_reach": np.where(rows.draws > 0, weight * np.maximum(_far(name, least) - middle, 0.0), 0.0),
    }


# --- the forms of f, of d = ln p - ln q = -ln r ------------------------------------------------------------


def _near(name: str, d: Floats) -> Floats:
    # The near form f(r) - f'(1) (r - 1), at least 0, with the digits that are left where r is nearly 1.
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.expm1(-d)
        if name == "kl_ab":
            return np.maximum(d + x, 0.0)
        if name == "kl_ba":
            return np.where(d == np.inf, 1.0, np.maximum(-(1.0 + x) * d - x, 0.0))
        if name == "tv":
            return np.asarray(np.maximum(-x, 0.0))
        js = 0.5 * (-(2.0 + x) * np.log1p(0.5 * x) - (1.0 + x) * d)
        return np.where(d == np.inf, LN_2 / 2, np.maximum(js, 0.0))


def _above_tangent(name: str, d: Floats, middle: Floats) -> Floats:
    # How far f(r) lies above the tangent at r0, for d = -ln r and middle = -ln r0; 0 where r0 is 0, as all r are.
    known = np.where(np.isfinite(middle), middle, 0.0)
    r0 = np.exp(-known)
    if name == "kl_ab":
        above = _near(name, d - known)
    elif name == "kl_ba":
        above = r0 * _near(name, d - known)
    else:
        slope = 0.5 * (LN_2 - np.logaddexp(0.0, known))
        above = np.maximum(_near(name, d) - _near(name, known) - slope * (np.exp(-d) - r0), 0.0)
    return np.where(np.isfinite(middle), above, 0.0)


def _far(name: str, d: Floats) -> Floats:
    # The far form f(r) - f'(infinity) r, plus what keeps it 0 at 1 with `_SLOPE` added back.
    if name == "kl_ab":
        return d
    with np.errstate(over="ignore", invalid="ignore"):
        r = np.exp(-d)
        if name == "tv":
            return np.maximum(0.5 - r, -0.5)
        crossed = np.where(d == np.inf, 0.0, -r * np.log1p(np.exp(np.minimum(d, 700.0))))
        crossed = np.where(d < -30.0, -1.0, crossed)
        return 0.5 * (LN_2 - np.logaddexp(0.0, -d) + crossed)


def _differences(log_p: Floats, log_q: Floats) -> Floats:
    # The differences ln p - ln q, +inf for q = 0 alone; where p = 0 any number, as nothing may use it.
    return np.where(log_p == -np.inf, 0.0, log_p - np.where(log_p == -np.inf, 0.0, log_q))


def _of_top(name: str, p: Floats, log_p: Floats, log_q: Floats) -> tuple[Floats, Floats]:
    # Sum over the top of p f(r), near form, [n], and the terms without p, [n, k].
    q = np.exp(log_q)
    terms = _near(name, _differences(log_p, log_q))
    terms = np.where(p > 0, terms, 0.0)
    return np.where(p > 0, p * terms, _at_infinity(name, q)).sum(axis=1), terms


def _at_infinity(name: str, q: Floats) -> Floats:
    # What tokens add that the base rules out, of their q: q times the slope of the near form at infinity.
    return np.where(q > 0, _NEAR_SLOPE[name] * np.where(q > 0, q, 1.0), 0.0)


def _log_ratio(tail_mass: Floats, other: Floats) -> Floats:
    # The logarithm of R / Q, [n]: 0 without a tail, inf where the candidate gives it nothing.
    with np.errstate(divide="ignore"):
        return np.where(tail_mass > 0, np.log(np.where(tail_mass > 0, tail_mass, 1.0)) - np.log(other), 0.0)


def _sums(values: Floats, draws: NDArray[np.int64]) -> Floats:
    # Sum of the draws of each event, [n].
    owner = np.repeat(np.arange(len(draws)), draws)
    # draws [2, 0, 1], values [5, 6, 7] -> owners [0, 0, 2] -> sums [11, 0, 7]
    return np.bincount(owner, values, len(draws)).astype(np.float64, copy=False)


def _scatter(values: Floats, draws: NDArray[np.int64]) -> Floats:
    # Variance of a sum of draws, [n]: m times that of one; of a single draw its square, which is no less.
    with np.errstate(invalid="ignore"):
        means = np.where(draws > 1, _sums(values, draws) / np.maximum(draws, 1), 0.0)
        squares = _sums((values - means[np.repeat(np.arange(len(draws)), draws)]) ** 2, draws)
        # draws [1, 3]: their mean 2, squares 1 + 1, times 2 / (2 - 1) = 4, the variance of a sum of two whose variance is
        # 2.
        return squares * draws / np.maximum(draws - 1, 1)


def _mean_under(p: Floats, values: Floats) -> Floats:
    # Mean of values under the top's probabilities, both [n, k]; infinite values left out.
    values = np.where(np.isfinite(values), values, 0.0)
    return np.asarray((p * values).sum(axis=1) / np.maximum(p.sum(axis=1), 1e-300))
