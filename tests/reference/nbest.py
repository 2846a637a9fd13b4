"""Slow twins of the search for weights: a list at a time, a place at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from numpy.typing import NDArray


def best_of(features: NDArray, offsets: Sequence[int], weights: Sequence[float]) -> list[int]:
    """The index of the best hypothesis of each list; of equal ones the first."""
    best = []
    for begin, end in pairwise(offsets):
        totals = [sum(w * f for w, f in zip(weights, features[:, i].tolist(), strict=True)) for i in range(begin, end)]
        best.append(begin + totals.index(max(totals)))
    return best


def errors_at(features: NDArray, offsets: Sequence[int], errors: Sequence[int], weights: Sequence[float]) -> int:
    """The errors of the best hypotheses together."""
    return sum(errors[i] for i in best_of(features, offsets, weights))
