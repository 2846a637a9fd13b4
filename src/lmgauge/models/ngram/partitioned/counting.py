"""Counting in partitions, and the requests for suffixes.

Input: the ids of the text in chunks.
Output: for each partition p and order k from 2, `parents/{k}/{p}`, `words/{k}/{p}` and `counts/{k}/{p}`, uint32 [rows]: an
n-gram is the row of its beginning in the order below (order 2: the id of the first word) and its last word. And, in linked
shapes, `fresh/{c}` uint8 [tokens], the smallest order that is new where a window begins, and `requests/{k}/{p}/{c}`.

For the text `<s> a b a b`, order 3 and one partition:

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
from lmgauge.models.ngram.partitioned.shape import Shape
from lmgauge.work.stage import Array, Read, Stage

TABLE_BYTES = 24
"""Of memory for each n-gram of a partition while it is counted: 16-byte entries in a table that is filled to 7/10."""


@dataclass(frozen=True)
class Counting:
    """What all tasks that count know."""

    shape: Shape
    expected: list[int]  # about how many n-grams of order 2, 3, ... a partition has.


def counting_stages(work: Counting) -> Iterator[Stage]:
    """Yield the stages from the tokens of the text, `ids/{c}`, to counts and requests."""
    shape = work.shape
    yield Stage(
        "count",
        shape.partitions,
        _count,
        work,
        needs=lambda p: shape.names("ids/{c}"),
        makes=lambda p: [
            *(name for c in range(shape.chunks if shape.linked else 0) for name in (f"rows/{p}/{c}", f"new/{p}/{c}")),
            *(f"{column}/{k}/{p}" for k in reversed(shape.orders) for column in ("parents", "words", "counts")),
        ],
        title="counting n-grams",
    )
    if shape.linked:
        yield Stage(
            "route",
            shape.chunks,
            _route,
            shape,
            needs=lambda c: [f"ids/{c}", *shape.names("rows/{p}/{c}", c=[c]), *shape.names("new/{p}/{c}", c=[c])],
            makes=lambda c: [f"fresh/{c}", *shape.names("requests/{k}/{p}/{c}", k=shape.inner, c=[c])],
            drops=["rows", "new"],
            title="asking for suffixes",
        )


def _count(read: Read, partition: int, work: Counting) -> Iterator[Array]:
    shape = work.shape
    counter = _native.PartitionCounter(shape.order, shape.partitions, partition, work.expected)
    for chunk in range(shape.chunks):
        rows, fresh = counter.add(read(f"ids/{chunk}"))
        if shape.linked:
            yield rows
            yield fresh
    for k in reversed(shape.orders):  # the largest table first, so that its memory is free for the columns of the others
        columns = [np.empty(counter.rows(k), np.uint32) for _ in range(3)]
        counter.take(k, *columns)
        yield from columns


def _route(read: Read, chunk: int, shape: Shape) -> Iterator[Array]:
    fresh = [read(name) for name in shape.names("new/{p}/{c}", c=[chunk])]
    rows = [read(name) for name in shape.names("rows/{p}/{c}", c=[chunk])]
    marks, requests = _native.route_requests(read(f"ids/{chunk}"), shape.order, fresh, rows)
    yield marks
    for of_order in requests:
        yield from of_order


def dealing_stage(shape: Shape, k: int, values: str, dealt: str, *, back: bool = False) -> Stage:
    """Return the stage that deals answers to requests for n-grams of order k to the n-grams of order k + 1 that asked."""
    # values: what the arrays `{values}/{k}/{p}/{c}` are called, uint8, uint32 or uint64, one value for each request.
    # Forward an answer goes to the longer n-grams that asked; back, what they say goes to the shorter one that was asked
    # for.
    source, target = (k + 1, k) if back else (k, k + 1)
    return Stage(
        f"deal-{dealt}-{target}",
        shape.chunks,
        _deal,
        (shape, k, f"{values}/{source}", back),
        needs=lambda c: [f"ids/{c}", f"fresh/{c}", *shape.names(f"{values}/{source}/{{p}}/{{c}}", c=[c])],
        makes=lambda c: shape.names(f"{dealt}/{target}/{{p}}/{{c}}", c=[c]),
        drops=[f"{values}/{source}"],
        title=f"dealing to {target}-grams",
    )


def _deal(read: Read, chunk: int, settings: tuple[Shape, int, str, bool]) -> Iterator[Array]:
    shape, k, streams, back = settings
    values = [read(f"{streams}/{p}/{chunk}") for p in range(shape.partitions)]
    yield from _native.route_values(read(f"ids/{chunk}"), shape.order, k, read(f"fresh/{chunk}"), values, back)
