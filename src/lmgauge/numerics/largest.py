"""The largest of many values that pass by."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Largest:
    """The places of the largest keys, largest first; of equal ones those with the larger second key, then the earlier."""

    def __init__(self, most: int) -> None:
        self._most, self._rows = most, np.empty((0, 3))

    def add(self, places: NDArray[np.int64], keys: NDArray[np.float64], seconds: ArrayLike = 0.0) -> None:
        """Add places, int64 [n], with their keys, float64 [n] each."""
        rows = np.column_stack(np.broadcast_arrays(keys, seconds, places))
        if len(rows) > 4 * self._most > 0:  # most are out of the question
            rows = rows[keys >= np.partition(keys, len(keys) - self._most)[len(keys) - self._most]]
        rows = np.concatenate((self._rows, rows))
        self._rows = rows[np.lexsort((rows[:, 2], -rows[:, 1], -rows[:, 0]))[: self._most]]

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows[:, 2].astype(np.int64).tolist())
