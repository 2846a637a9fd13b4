"""The tables of a model from partitions of its n-grams, a part at a time: the bytes are those of `packed_tables`.

A table is cut into buckets, neighboring lines. Order by order from the bigrams:

    stage    partition   deals its n-grams to buckets, with the slots of their beginnings: `staged/{k}/{b}/{p}`
    measure  bucket      counts how many n-grams have each line as their home, and says where the next bucket can begin
    place    bucket      writes its n-grams to their places, and tells each partition their slots: `slots/{k}/{p}/{b}`

Between `measure` and `place` the program computes where each bucket begins. No keys travel back: a partition gets the slots
in the order in which it dealt its n-grams. The lines of neighboring buckets overlap by 15 or so, as an n-gram may lie behind
its home: these are arrays of their own, `tail/{k}/{b}` and `head/{k}/{b + 1}`, which belong together (`PackedOrder.pieces`).

What a task holds at most, in bytes, with P partitions:

    stage    36 for each n-gram of a partition and order, and 4 for each shorter one; at the highest order 26 and 4
    measure  16 / P + 0.25 for each n-gram of a bucket
    place    20 / P + 19 for each n-gram of a bucket, at the highest order 12 / P + 13

Among the arrays an n-gram has at most 37 at a time: 16 (staged) + 16 (lines) + 5 (its slot and bucket); of the orders that
are done there are only the lines, 16, and 12 at the highest order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.models.ngram.model import NgramModel, load_ngram_model
from lmgauge.models.ngram.packed_tables import (
    Bounds,
    Lines,
    PackedTable,
    Parts,
    RepeatedNgramsError,
    check_lines_of_table,
    homes_for,
    line_width,
    more_homes,
    new_lines,
    stage_in_parts,
)
from lmgauge.models.ngram.storage import ArrayInPieces, write_model
from lmgauge.work.stage import Array, Engine, Read, Stage

BYTES_IN_BUCKET = 24
"""What placing takes for an n-gram of a bucket, with eight partitions or more; see above."""

_QUICK_BUCKET = 1 << 20  # n-grams whose lines lie in a processor's cache
_LEAST_HOMES = 64  # of a bucket: lines that overlap are of two buckets, and of no third
_SPARE = int(_native.SPARE_LINES)
_HASHES = 64  # bits

Bytes = NDArray[np.uint8]
Slots = NDArray[np.uint32]


@dataclass(frozen=True)
class Packing:
    """What is packed, and within which memory."""

    order: int
    partitions: int  # of the n-grams of each order
    vocabulary: int  # ids of words are below it
    memory: int  # bytes that a task may use: buckets are as many as that asks for, 255 at most


@dataclass(frozen=True)
class _Cut:
    """A table, cut into buckets: what every task of one order knows."""

    k: int  # the order
    last: bool
    partitions: int
    buckets: int
    below: int  # buckets of the table below; 0 at order 2
    bounds: Bounds  # slots of parents and ids of words are below these
    homes: int
    attempt: int = 0  # how often `homes` turned out to be too few
    starts: tuple[int, ...] = ()  # the slot at which each bucket begins; empty as long as that is not known

    @property
    def lines(self) -> int:
        return self.homes + _SPARE

    def first_line(self, bucket: int) -> int:
        # First home of a bucket, which the bucket before may share.
        # The first hash of a bucket is ceil(bucket 2^64 / buckets), and the home of a hash is floor(hash homes / 2^64).
        # With 4 buckets and 10 homes they begin at homes 0, 2, 5, 7; Python's integers make it exact.
        return (-(-(bucket << _HASHES) // self.buckets) * self.homes) >> _HASHES

    def end_line(self, bucket: int) -> int:
        # The last hash of the bucket; its n-grams may lie up to `_SPARE` lines behind their home.
        highest = -(-((bucket + 1) << _HASHES) // self.buckets) - 1
        return ((highest * self.homes) >> _HASHES) + 1 + _SPARE

    def kernel(self, bucket: int) -> tuple[int, int, int, bool, int, int]:
        first = self.first_line(bucket)
        return self.lines, *self.bounds, self.last, first, self.end_line(bucket) - _SPARE - first

    def staged(self, bucket: int) -> list[str]:
        return [f"staged/{self.k}/{bucket}/{p}" for p in range(self.partitions)]

    def slots(self, bucket: int) -> list[str]:
        return [] if self.last else [f"slots/{self.k}/{p}/{bucket}" for p in range(self.partitions)]

    def measured(self, bucket: int) -> list[str]:
        return [f"homes/{self.k}.{self.attempt}/{bucket}", f"measured/{self.k}.{self.attempt}/{bucket}"]

    def placed(self, bucket: int) -> list[str]:
        return [f"{part}/{self.k}/{bucket}" for part in ("head", "middle", "tail", "placed")]


@dataclass(frozen=True)
class PackedOrder:
    """The table of one order, in pieces that an engine holds."""

    table: PackedTable  # the same table without its lines
    lines: int
    checksum: int  # of all lines, as `PackedTable.check` computes it
    entries: int  # n-grams in it, blanks among them
    blanks: int  # how many of them are no n-grams of the model, but begin or end longer ones
    # the names of the pieces, bucket by bucket: lines that are the bucket's own, and those it shares with the next
    parts: list[tuple[str, tuple[str, str] | None]]

    def pieces(self, engine: Engine) -> Iterator[Lines]:
        """Yield the lines of 64 bytes, uint32 [n, 16], from the first to the last."""
        for middle, joint in self.parts:
            yield engine.read(middle)
            if joint is not None:
                yield _joined(engine, joint)


def pack_partitions(engine: Engine, packing: Packing, entries: Sequence[int]) -> list[PackedOrder]:
    """Make the tables of order 2, 3, ... from partitions of n-grams, which the engine holds and then forgets."""
    # engine: has for each order k from 2 and partition p, with a value for each n-gram, which is its row: `parents/{k}/{p}`
    # uint32, the row of the n-gram without its last word in (k - 1, p), at order 2 the first word; `words/{k}/{p}` uint32,
    # the last word; `probabilities/{k}/{p}` float32, linear, negative for a blank; `weights/{k}/{p}` float32, back-off
    # weights, linear, of all orders but the highest; `dropped/{k}/{p}` uint8, 1 where an n-gram is left out, and so are all
    # that begin with it; empty if none is.
    orders: list[PackedOrder] = []
    bounds, below = (packing.vocabulary, packing.vocabulary), 0
    for k, count in enumerate(entries, 2):
        last = k == packing.order
        homes = homes_for(count, bounds, last=last)
        check_lines_of_table(homes + _SPARE)
        cut = _Cut(k, last, packing.partitions, _bucket_count(count, homes, packing.memory), below, bounds, homes)
        engine.run(_staging(cut))
        orders.append(_pack_order(engine, cut, count))
        bounds, below = (orders[-1].lines * line_width(last=last), packing.vocabulary), cut.buckets
    return orders


def _bucket_count(entries: int, homes: int, memory: int) -> int:
    # As many as the memory asks for, or as let the lines of a bucket lie in the cache; fewer if there are few lines, and
    # one byte names a bucket.
    wanted = max(-(-entries * BYTES_IN_BUCKET // max(1, memory)), entries // _QUICK_BUCKET)
    return max(1, min(wanted, homes // _LEAST_HOMES, int(_native.MOST_BUCKETS)))


def _pack_order(engine: Engine, cut: _Cut, entries: int) -> PackedOrder:
    # Measure and place the staged n-grams of one order.
    while True:
        engine.run(_measuring(cut))
        measured = [engine.read(cut.measured(b)[1]).tolist() for b in range(cut.buckets)]
        starts = _starts(measured)
        if starts is not None:
            break
        # Too crowded somewhere: the same n-grams over more lines. `attempt` is in the names of arrays, so that a resumed
        # run does not take those of a cut that was given up.
        cut = replace(cut, homes=more_homes(cut.homes), attempt=cut.attempt + 1)
        check_lines_of_table(cut.lines)
    if sum(size for size, _, _ in measured) != entries:
        raise ValueError(f"there are {sum(size for size, _, _ in measured):,} n-grams of order {cut.k}, not {entries:,}")
    engine.run(_placing(replace(cut, starts=starts)))
    checksums, twice, blanks = zip(*(engine.read(cut.placed(b)[3]).tolist() for b in range(cut.buckets)), strict=True)
    if any(twice):
        raise RepeatedNgramsError(sum(twice))
    table = PackedTable(np.zeros((0, 16), np.uint32), *cut.bounds, cut.last)
    joints = [(cut.placed(b)[2], cut.placed(b + 1)[0]) for b in range(cut.buckets - 1)]
    parts = [(cut.placed(b)[1], joint) for b, joint in enumerate([*joints, None])]
    shared = sum(_native.digest_lines(_joined(engine, joint), cut.first_line(b)) for b, joint in enumerate(joints, 1))
    return PackedOrder(table, cut.lines, (sum(checksums) + shared) % 2**64, entries, sum(blanks), parts)


def _joined(engine: Engine, joint: tuple[str, str]) -> Lines:
    # Lines that two buckets share: their n-grams stand in different places, and their marks add up.
    tail, head = map(engine.read, joint)
    return np.bitwise_or(tail, head)


def _starts(measured: list[list[int]]) -> tuple[int, ...] | None:
    # Slot at which each bucket begins; None if an n-gram would then lie too far from its home.
    # measured: for each bucket its size; the slot that is free behind it, if it begins at its first home; and the slot that
    # it must begin before: [[3, 3, 9], [2, 7, 12], [1, 9, 20]] -> (0, 3, 7), as 3 is max(0 + 3, 3), and 7 is max(3 + 2, 7).
    starts = [*accumulate(measured, lambda start, bucket: max(start + bucket[0], bucket[1]), initial=0)][:-1]
    return tuple(starts) if all(start < limit for start, (_, _, limit) in zip(starts, measured, strict=True)) else None


def save_packed(engine: Engine, orders: Sequence[PackedOrder], unigrams: NgramModel, path: str | Path) -> NgramModel:
    """Write the folder of a model whose tables an engine holds; it still does afterwards, so that all can be done again."""
    # The bytes are those that `NgramModel.save` writes. The model is mapped from the folder, and its pages are read as they
    # are used: this process has just written them, so it does not look at all of them again; the next load does.
    # Raises OutputError: it cannot be written; nothing is left behind.
    tables = replace(unigrams.tables, tables=[order.table for order in orders])
    model = NgramModel(tables, unigrams.vocabulary, unigrams.tokenizer, unigrams.settings, unigrams.record)
    model.__dict__["checksums"] = [order.checksum for order in orders]
    model.__dict__["types"] = [unigrams.types[0], *(order.entries - order.blanks for order in orders)]
    lines = [_array(engine, order) for order in orders]
    write_model(path, model, lines)
    return load_ngram_model(path, just_written=True)


def _array(engine: Engine, order: PackedOrder) -> ArrayInPieces:
    return ArrayInPieces(np.dtype(np.uint32), (order.lines, 16), lambda: order.pieces(engine))


def _staging(cut: _Cut) -> Stage:
    k, buckets = cut.k, range(cut.buckets)
    own = ["parents", "words", "probabilities", "dropped", *([] if cut.last else ["weights"])]

    def _needs(p: int) -> list[str]:
        names = [f"{name}/{k}/{p}" for name in own]
        names += [f"buckets/{k - 1}/{p}", *(f"slots/{k - 1}/{p}/{b}" for b in range(cut.below))] if cut.below else []
        return names + ([] if cut.last else [f"parents/{k + 1}/{p}", f"dropped/{k + 1}/{p}"])

    def _makes(p: int) -> list[str]:
        return [f"staged/{k}/{b}/{p}" for b in buckets] + ([] if cut.last else [f"buckets/{k}/{p}"])

    drops = [*(f"{name}/{k}" for name in own), f"buckets/{k - 1}", f"slots/{k - 1}"]
    return Stage(f"stage-{k}", cut.partitions, _stage, cut, _needs, _makes, drops, f"dealing {k}-grams to buckets")


def _stage(read: Read, p: int, cut: _Cut) -> Iterator[Array]:
    # Deal the n-grams of a partition to buckets; yield what goes to each, and the bucket of each row, 255 if dropped.
    parents, dropped = read(f"parents/{cut.k}/{p}"), read(f"dropped/{cut.k}/{p}")
    longer = np.zeros(0 if cut.last else len(parents), np.uint8)
    if not cut.last:
        _native.mark_longer(read(f"parents/{cut.k + 1}/{p}"), read(f"dropped/{cut.k + 1}/{p}"), longer)
    slots = np.zeros(0, np.uint32)
    if cut.below:
        sent_back = [read(f"slots/{cut.k - 1}/{p}/{b}") for b in range(cut.below)]
        dealt = read(f"buckets/{cut.k - 1}/{p}")
        slots = np.empty(len(dealt), np.uint32)
        _native.replay_slots(dealt, sent_back, slots)
        del sent_back, dealt
    weights = np.zeros(0, np.float32) if cut.last else read(f"weights/{cut.k}/{p}")
    columns = parents, read(f"words/{cut.k}/{p}"), read(f"probabilities/{cut.k}/{p}"), weights
    buckets = np.empty(len(longer), np.uint8)

    def _fill(parts: Parts) -> None:
        _native.stage_rows(columns, (dropped, longer, slots), cut.bounds, parts, buckets)

    entries = len(parents) - int(np.count_nonzero(dropped))
    staged, sizes = stage_in_parts(entries, cut.buckets, 3 if cut.last else 4, _fill)
    room = len(staged) // cut.buckets
    for b, size in enumerate(sizes.tolist()):
        yield staged[b * room : b * room + size]
    if not cut.last:
        yield buckets


def _measuring(cut: _Cut) -> Stage:
    name, title = f"measure-{cut.k}.{cut.attempt}", f"measuring buckets of {cut.k}-grams"
    return Stage(name, cut.buckets, _measure, cut, cut.staged, cut.measured, title=title)


def _measure(read: Read, b: int, cut: _Cut) -> Iterator[Array]:
    # How many n-grams of a bucket have each line as their home, and what `_starts` wants to know.
    bucket, size = cut.kernel(b), 0
    counts = np.zeros(bucket[-1], np.uint8)
    for name in cut.staged(b):
        ngrams = read(name)
        _native.count_homes(bucket, ngrams, counts)
        size += len(ngrams)
    yield counts
    yield np.array([size, *_native.measure_homes(bucket, counts)], np.uint64)


def _placing(cut: _Cut) -> Stage:
    def _needs(b: int) -> list[str]:
        return [cut.measured(b)[0], *cut.staged(b)]

    def _makes(b: int) -> list[str]:
        return [*cut.placed(b), *cut.slots(b)]

    title = f"placing {cut.k}-grams"
    return Stage(f"place-{cut.k}", cut.buckets, _place, cut, _needs, _makes, [f"staged/{cut.k}"], title)


def _place(read: Read, b: int, cut: _Cut) -> Iterator[Array]:
    # Lines of a bucket: those the bucket before may write to, its own, those the next one may write to; then the checksum
    # of its own lines, repeated n-grams and blanks; and for each partition the slots of what it dealt, in order.
    bucket, counts = cut.kernel(b), read(cut.measured(b)[0])
    lines, cursors = new_lines(bucket[-1] + _SPARE), np.empty(len(counts), np.uint32)
    _native.open_homes(bucket, counts, cut.starts[b], cursors)
    for name in cut.staged(b):
        _native.write_ngrams(bucket, read(name), cursors, lines)
    shifts = np.empty(0 if cut.last else len(lines) * line_width(last=False), np.int8)
    twice, blanks = _native.sort_homes(bucket, counts, cursors, lines, shifts)
    first = cut.first_line(b)
    own = cut.end_line(b - 1) - first if b else 0
    shared = cut.first_line(b + 1) - first if b + 1 < cut.buckets else len(lines)
    yield lines[:own]
    yield lines[own:shared]
    yield lines[shared:]
    yield np.array([_native.digest_lines(lines[own:shared], first + own), twice, blanks], np.uint64)
    del lines
    if not cut.last:
        yield from _slots(read, bucket, cut.staged(b), cursors, shifts)


def _slots(
    read: Read, bucket: tuple[Any, ...], names: Sequence[str], cursors: Slots, shifts: NDArray[np.int8]
) -> Iterator[Slots]:
    for name in names:
        ngrams = read(name)
        slots = np.empty(len(ngrams), np.uint32)
        _native.list_slots(bucket, ngrams, cursors, shifts, slots)
        yield slots
