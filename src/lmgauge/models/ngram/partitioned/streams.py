"""What stages do with arrays of partitions and chunks: add them up, join them, take what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lmgauge.models.ngram.partitioned.shape import Shape
from lmgauge.work.stage import Array, Engine, Read


def add_up(engine: Engine, part: str, partitions: range) -> Array:
    """Return the sum of an array of all partitions; an empty one of no partitions."""
    # parts [2, 0, 1] and [1, 5, 0] -> [3, 5, 1]; one is in memory beside the sum, however many there are.
    total: Array = np.zeros(0, np.int64)
    for p in partitions:
        total = engine.read(f"{part}/{p}").copy() if p == 0 else np.add(total, engine.read(f"{part}/{p}"), out=total)
    return total


def joined(read: Read, names: Sequence[str], rows: int, dtype: Any) -> Array:
    """Return the parts of an array, one after another."""
    # parts [7, 8] and [9] of 3 rows -> [7, 8, 9]
    whole = np.empty(rows, dtype)
    start = 0
    for name in names:
        part = read(name)
        whole[start : start + len(part)] = part
        start += len(part)
    if start != rows:
        raise ValueError(f"{start:,} values for {rows:,} n-grams")
    return whole


def answers_to(read: Read, p: int, shape: Shape, k: int, values: Array) -> Iterator[Array]:
    """Yield a value for each request for an n-gram of order k, chunk by chunk."""
    # values: of the n-grams, [rows].
    # requests [1, 2, 1] and values [0.5, 0.25, 1.0] -> [0.25, 1.0, 0.25]
    for name in shape.names("requests/{k}/{p}/{c}", k=[k], p=[p]):
        yield np.take(values, read(name), mode="clip")
