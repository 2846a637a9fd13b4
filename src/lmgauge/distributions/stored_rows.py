"""What is stored of a base's distributions: the most probable tokens as they are, and draws from the rest.

The rest of an event, its tail, has the mass R. It is cut into m = ceil(D R) pieces of equal mass, and a token is drawn from
each in proportion to its probability, by a generator that the seed and the number of the event start. D, draws per unit
of probability, is the same everywhere: a draw stands for a mass of at most 1 / D, wherever it is, so that an event whose
tail is small needs few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import DEFAULT_BASE_SAMPLES, DEFAULT_BASE_TOP
from lmgauge.distributions.reductions import largest
from lmgauge.distributions.tile import Tile, as_numpy, dot, possible
from lmgauge.scores.table import TOKEN

Floats = NDArray[np.float64]
Ids = NDArray[np.uint32]
LOWEST_STORED = -700.0  # nats; what is less probable is taken as impossible: its probability hardly fits a float64


@dataclass(frozen=True, slots=True, eq=False)
class BaseRows:
    """What every stored base has of consecutive events."""

    token_ids: Ids  # uint32 [n], the true tokens
    kind: NDArray[np.uint8]  # uint8 [n], as in a score table
    logprob: Floats  # float64 [n], of the true tokens, nats
    mass: Floats  # float64 [n], what the probabilities summed to before they were divided by it; 0 where nothing is possible

    def __len__(self) -> int:
        return len(self.token_ids)

    def part(self, begin: int, end: int) -> Self:
        """Return some of the rows."""
        return type(self)(*(getattr(self, field.name)[begin:end] for field in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return consecutive rows as one."""
        columns = [[getattr(part, field.name) for part in parts] for field in fields(cls)]
        return parts[0] if len(parts) == 1 else cls(*map(np.concatenate, columns))


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
    # 50 draws for the whole probability: a tail of 0.3 has 15, each for a mass of 0.02; one of 0.01 has 1.
    draws = np.ceil(samples * tail_mass).astype(np.int64)
    owner = np.repeat(np.arange(len(tile)), draws)
    drawn = _drawn(cumulative, draws, first, seed)
    rows = xp.asarray(owner, device=array_api_compat.device(tile.logprob))
    columns = xp.asarray(drawn, device=array_api_compat.device(tile.logprob))
    of_drawn = as_numpy(tile.logprob[rows, columns])
    weighted = dot(tile.p, tile.logprob)
    return StoredRows(
        token_ids=tile.targets.astype(np.uint32),
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
