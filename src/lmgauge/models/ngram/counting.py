"""Counting in partitions, and the requests for suffixes.

Of each partition the n-grams of every order from 2: an n-gram is the row of its beginning in the order below (order 2: the
id of the first word) and its last word. For the text `<s> a b a b`, order 3 and one partition:

    window      <s> a b    a b a    b a b    a b
    bigram      0          1        2        1        rows, by first occurrence
    trigram     0          1        2        -
    requests    1          2        1                 the suffixes of the trigrams, `a b`, `b a`, `a b`

`a b` is asked for twice, as two different tokens precede it: its count for Kneser-Ney smoothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lmgauge._kernels import _native
from lmgauge.models.ngram.links import Links, Shape, transposed
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored

TABLE_BYTES = 24
"""Of memory for each n-gram of a partition while it is counted: 16-byte entries in a table that is filled to 7/10."""


@dataclass(frozen=True)
class Counts:
    """The n-grams of one order in a partition, uint32 [rows] each."""

    parents: Stored
    words: Stored
    counts: Stored


@dataclass(frozen=True)
class Counted:
    """What was counted in a partition."""

    ways: list[tuple[Stored, Stored]]  # of each chunk: the rows of its windows, and the smallest order that is new there
    orders: dict[int, Counts]


def count_text(engine: Engine, shape: Shape, types: list[int], ids: list[Stored]) -> tuple[list[Counted], Links]:
    """Count the n-grams of a text in partitions, and let them ask for their suffixes."""
    # types: about how many n-grams of order 2, 3, ... there are; ids: of each chunk.
    if shape.order == 1:
        return [], Links(shape, ids, [], {})
    # Dealing by hash is even: 2 % more than the mean is seldom passed, and a table that is too small grows.
    expected = [int(1.02 * n / shape.partitions) + 64 for n in types]
    # the largest table first, so that its memory is free for the columns of the others
    orders = {k: Counts(NEW, NEW, NEW) for k in reversed(shape.orders)}
    makes = Counted([(NEW, NEW)] * (shape.chunks if shape.linked else 0), orders)
    takes = [(shape, p, expected, ids) for p in range(shape.partitions)]
    counted = engine.run("count", _count, takes, makes, "counting n-grams")
    if not shape.linked:
        return counted, Links(shape, ids, [], {})
    ways = [(shape.order, chunk, [own.ways[c] for own in counted]) for c, chunk in enumerate(ids)]
    requests = [[NEW] * shape.partitions for _ in shape.inner]
    routed = engine.run("route", _route, ways, (NEW, requests), "asking for suffixes")
    engine.drop([own.ways for own in counted])
    asked = {k: transposed(own[k - 2] for _, own in routed) for k in shape.inner}
    return counted, Links(shape, ids, [fresh for fresh, _ in routed], asked)


def _count(taken: tuple[Shape, int, list[int], list[Stored]], read: Read) -> Iterator[Array]:
    shape, partition, expected, ids = taken
    counter = _native.PartitionCounter(shape.order, shape.partitions, partition, expected)
    for chunk in ids:
        made = counter.add(read(chunk), shape.linked)
        yield from made if shape.linked else ()
    for k in reversed(shape.orders):
        columns = [np.empty(counter.rows(k), np.uint32) for _ in range(3)]
        counter.take(k, *columns)
        yield from columns


def _route(taken: tuple[int, Stored, list[tuple[Stored, Stored]]], read: Read) -> Iterator[Array]:
    order, ids, ways = taken
    fresh, rows = [read(new) for _, new in ways], [read(rows) for rows, _ in ways]
    marks, requests = _native.route_requests(read(ids), order, fresh, rows)
    yield marks
    for of_order in requests:
        yield from of_order
