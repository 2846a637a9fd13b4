"""Whole predictive distributions of a few consecutive events: what a reduction sees, and what is thrown away afterwards."""

# A tile has few rows and the whole vocabulary, not many rows and a slice of it: the rows of one tile stay in a core's cache
# while all reductions go over them, they are normalized, and a reduction is a plain function of an array.

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

LOWEST = -1e30  # stands for ln 0: its exponential is 0, and 0 times it is 0, where -inf would give NaN
_IMPOSSIBLE = LOWEST / 2

Array = Any  # of NumPy or torch, on any device: [n, vocabulary] or [n]


class Tile:
    """Log-probabilities of all tokens at a few events, in the arrays of whatever library computed them.

    Args:
        compute: gives natural log-probabilities [n, vocabulary]; float32 or float64, -inf allowed, NaN not. It is called
            when they are first asked for, and may be called from another thread.
        targets: int64 [n], the token that came.

    Example:
        >>> import numpy as np
        >>> tile = Tile(lambda: np.log([[0.5, 0.25, 0.25]]), np.array([1]))
        >>> len(tile), tile.p.tolist(), np.exp(tile.of_targets()).tolist()
        (1, [[0.5, 0.25, 0.25]], [0.25])
    """

    def __init__(self, compute: Callable[[], Array], targets: NDArray[np.int64]) -> None:
        self._compute, self.targets = compute, targets
        self.states: Array | None = None  # [n, width], what an output layer makes them of, where a network tells it

    def __len__(self) -> int:
        return len(self.targets)

    @cached_property
    def logprob(self) -> Array:
        """Natural log-probabilities [n, vocabulary]; `LOWEST` for what cannot come."""
        values = self._compute()
        return array_api_compat.array_namespace(values).clip(values, min=LOWEST)

    @cached_property
    def xp(self) -> Any:
        """The namespace of the library behind the arrays, by the array API standard."""
        return array_api_compat.array_namespace(self.logprob)

    @cached_property
    def p(self) -> Array:
        """Probabilities [n, vocabulary]."""
        return self.xp.exp(self.logprob)

    @cached_property
    def own_targets(self) -> Array:
        """The targets as an array of the same library and device: int64 [n]."""
        return self.xp.asarray(self.targets, device=array_api_compat.device(self.logprob))

    def of_targets(self) -> NDArray[np.float64]:
        """Return float64 [n], the natural log-probability of each token that came; -inf where it was impossible."""
        values = as_numpy(self.xp.take_along_axis(self.logprob, self.own_targets[:, None], axis=1)[:, 0])
        return np.where(values < _IMPOSSIBLE, -np.inf, np.minimum(values, 0.0))

    def part(self, begin: int, end: int) -> Tile:
        """Return some of the rows as a tile.

        Args:
            begin, end: rows begin to end, the last not included.
        """
        whole = self
        part = Tile(lambda: whole.logprob[begin:end], self.targets[begin:end])
        if "p" in self.__dict__:
            part.p = self.p[begin:end]
        return part


def ready(logprob: Array, p: Array | None, targets: NDArray[np.int64]) -> Tile:
    """Return a tile of arrays that are there already."""
    # logprob: log-probabilities in nats, [n, vocabulary], none below `LOWEST`; targets: int64 [n].
    # ready(np.log([[0.5, 0.5]]), None, [0]).p -> [[0.5, 0.5]]
    tile = Tile(lambda: logprob, targets)
    tile.logprob = logprob
    if p is not None:
        tile.p = p
    return tile


def as_numpy(values: Array) -> NDArray[Any]:
    """Return an array of any library as NumPy's, floating-point ones as float64.

    >>> as_numpy(np.array([1.5], np.float32)).dtype
    dtype('float64')
    """
    moved = np.asarray(array_api_compat.to_device(values, "cpu"))
    return moved.astype(np.float64, copy=False) if np.issubdtype(moved.dtype, np.floating) else moved


def dot(a: Array, b: Array) -> Array:
    """Return the sums of products of each row, [n]."""
    # Not by a library of linear algebra, whose threads would wait for others.
    # a, b: [n, m] of one library.
    # dot([[1.0, 2.0]], [[3.0, 4.0]]) -> [11.0]
    return array_api_compat.array_namespace(a).sum(a * b, axis=1)


def possible(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log-probabilities with -inf again for what cannot come."""
    # values: float64, nats, `LOWEST` for what cannot come.
    # possible([-1.0, LOWEST]) -> [-1.0, -inf]
    return np.where(values < _IMPOSSIBLE, -np.inf, values)
