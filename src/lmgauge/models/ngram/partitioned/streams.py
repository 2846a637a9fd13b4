"""What stages do with arrays of partitions and chunks: add them up, join them, take what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lmgauge.models.ngram.partitioned.shape import Shape
from lmgauge.stages.stage import Array, Engine, Read


def add_up(engine: Engine, part: str, partitions: range) -> Array:
    """Return the sum of an array of all partitions; an empty one of no partitions.

    Args:
        engine: holds `{part}/{p}`.
        part: what the arrays are called.
        partitions: all of them.

    Example:
        >>> from lmgauge.stages.memory_engine import MemoryEngine
        >>> engine = MemoryEngine()
        >>> engine.write("sums/0", np.array([2, 0, 1]))
        >>> engine.write("sums/1", np.array([1, 5, 0]))
        >>> add_up(engine, "sums", range(2)).tolist()
        [3, 5, 1]
    """
    total: Array = np.zeros(0, np.int64)
    for p in partitions:
        total = engine.read(f"{part}/{p}").copy() if p == 0 else np.add(total, engine.read(f"{part}/{p}"), out=total)
    return total


def joined(read: Read, names: Sequence[str], rows: int, dtype: Any) -> Array:
    """Return the parts of an array, one after another.

    Args:
        read: returns a part.
        names: of the parts.
        rows: length of the whole.
        dtype: of the whole.

    Raises:
        ValueError: the parts have fewer values than rows, or more.

    Example:
        >>> parts = {"lower/3/0/0": np.array([7, 8]), "lower/3/0/1": np.array([9])}
        >>> joined(parts.__getitem__, list(parts), 3, np.uint32).tolist()
        [7, 8, 9]
    """
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
    """Yield a value for each request for an n-gram of order k, chunk by chunk.

    Args:
        read: returns the requests.
        p: the partition.
        shape: of the training.
        k: the order.
        values: of the n-grams, [rows].

    Example:
        >>> requests = {"requests/2/0/0": np.array([1, 2, 1])}
        >>> answers = answers_to(requests.__getitem__, 0, Shape(3, 1, 1, 5, True), 2, np.array([0.5, 0.25, 1.0]))
        >>> [of_chunk.tolist() for of_chunk in answers]
        [[0.25, 1.0, 0.25]]
    """
    for name in shape.names("requests/{k}/{p}/{c}", k=[k], p=[p]):
        yield np.take(values, read(name), mode="clip")
