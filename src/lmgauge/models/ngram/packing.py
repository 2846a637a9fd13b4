"""The tables of a model from partitions of its n-grams, a part at a time, or of all of them as one partition.

A table is cut into buckets, neighboring lines. Order by order from the bigrams:

    stage    partition   deals its n-grams to buckets, with the slots of their beginnings
    measure  bucket      counts how many n-grams have each line as their home, and says where the next bucket can begin
    place    bucket      writes its n-grams to their places, and tells each partition their slots

Between `measure` and `place` the program computes where each bucket begins. No keys travel back: a partition gets the slots
in the order in which it dealt its n-grams. The lines of neighboring buckets overlap by 15 or so, as an n-gram may lie behind
its home: these are arrays of their own, the tail of a bucket and the head of the next (`PackedOrder.pieces`).

What a task holds at most, in bytes, with P partitions:

    stage    36 for each n-gram of a partition and order, and 4 for each shorter one; at the highest order 26 and 4
    measure  16 / P + 0.25 for each n-gram of a bucket
    place    20 / P + 19 for each n-gram of a bucket, at the highest order 12 / P + 13

Among the arrays an n-gram has at most 37 at a time: 16 (staged) + 16 (lines) + 5 (its slot and bucket); of the orders that
are done there are only the lines, 16, and 12 at the highest order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lmgauge._kernels import _native
from lmgauge.base.threads import thread_count
from lmgauge.models.ngram.links import Grams, transposed
from lmgauge.models.ngram.model import NgramModel, load_ngram_model
from lmgauge.models.ngram.packed_tables import (
    Bounds,
    Lines,
    PackedTable,
    Parts,
    RepeatedNgramsError,
    Slots,
    check_lines_of_table,
    homes_for,
    line_width,
    more_homes,
    new_lines,
    stage_in_parts,
)
from lmgauge.models.ngram.storage import ArrayInPieces, write_model
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored

BYTES_IN_BUCKET = 24
"""What placing takes for an n-gram of a bucket, with eight partitions or more; see above."""

_QUICK_BUCKET = 1 << 20  # n-grams whose lines lie in a processor's cache
_LEAST_HOMES = 64  # of a bucket: lines that overlap are of two buckets, and of no third
_SPARE = int(_native.SPARE_LINES)
_HASHES = 64  # bits
ALL_MEMORY = 1 << 40  # buckets of lines are then as large as a processor's cache

_Bucket = tuple[int, int, int, bool, int, int]


@dataclass(frozen=True)
class Packing:
    """What is packed, and within which memory."""

    order: int
    vocabulary: int  # ids of words are below it
    memory: int  # bytes that a task may use: buckets are as many as that asks for, 255 at most


@dataclass(frozen=True)
class _Cut:
    """A table, cut into buckets: what every task of one order knows."""

    k: int  # the order
    last: bool
    buckets: int
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

    def kernel(self, bucket: int) -> _Bucket:
        first = self.first_line(bucket)
        return self.lines, *self.bounds, self.last, first, self.end_line(bucket) - _SPARE - first


@dataclass(frozen=True)
class _Placed:
    """What a bucket is: its lines, those it shares with the bucket before or the next one apart."""

    head: Stored
    middle: Stored
    tail: Stored
    sums: Stored  # the checksum of the lines in the middle, repeated n-grams and blanks
    slots: list[Stored]  # of each partition, of what it dealt; none at the highest order


@dataclass(frozen=True)
class PackedOrder:
    """The table of one order, in pieces that an engine holds."""

    table: PackedTable  # the same table without its lines
    lines: int
    checksum: int  # of all lines, as `PackedTable.check` computes it
    entries: int  # n-grams in it, blanks among them
    blanks: int  # how many of them are no n-grams of the model, but begin or end longer ones
    # bucket by bucket: lines that are the bucket's own, and those it shares with the next
    parts: list[tuple[Stored, tuple[Stored, Stored] | None]]

    def pieces(self, engine: Engine) -> Iterator[Lines]:
        """Yield the lines of 64 bytes, uint32 [n, 16], from the first to the last."""
        for middle, joint in self.parts:
            yield engine.read(middle)
            if joint is not None:
                yield _joined(engine, joint)

    def whole(self, engine: Engine) -> PackedTable:
        """Return the table in memory; the engine forgets its pieces."""
        if len(self.parts) == 1:
            return replace(self.table, lines=engine.read(self.parts[0][0]))
        lines, start = new_lines(self.lines), 0
        for piece in self.pieces(engine):
            lines[start : start + len(piece)] = piece
            start += len(piece)
        engine.drop(self.parts)
        return replace(self.table, lines=lines)


def pack_partitions(engine: Engine, packing: Packing, grams: list[list[Grams]], entries: Sequence[int]) -> list[PackedOrder]:
    """Make the tables of order 2, 3, ... from partitions of n-grams, which the engine then forgets."""
    # grams: of each order, those of each partition; entries: how many of each order stay.
    orders: list[PackedOrder] = []
    bounds = (packing.vocabulary, packing.vocabulary)
    below = list[tuple[Stored, list[Stored]] | None]()
    for k, (own, count) in enumerate(zip(grams, entries, strict=True), 2):
        cut = _new_cut(k, packing.order, count, bounds, packing.memory)
        longer: Sequence[Grams | None] = [None] * len(own) if cut.last else grams[k - 1]
        staged = _stage_order(engine, cut, zip(own, longer, below or [None] * len(own), strict=True))
        engine.drop(own, below)
        packed, slots = _pack_order(engine, cut, count, transposed(parts for parts, _ in staged))
        below = [(buckets[0], of_row) for (_, buckets), of_row in zip(staged, slots, strict=True)] if not cut.last else []
        orders.append(packed)
        bounds = (packed.lines * line_width(last=cut.last), packing.vocabulary)
    return orders


def _new_cut(k: int, order: int, entries: int, bounds: Bounds, memory: int) -> _Cut:
    homes = homes_for(entries, bounds, last=k == order)
    check_lines_of_table(homes + _SPARE)
    return _Cut(k, k == order, _bucket_count(entries, homes, memory), bounds, homes)


def _stage_order(
    engine: Engine, cut: _Cut, partitions: Iterable[tuple[Grams, Grams | None, tuple[Stored, list[Stored]] | None]]
) -> list[tuple[list[Stored], list[Stored]]]:
    # Deal the n-grams of each partition to buckets: what goes to each bucket; and where each row went.
    takes, makes = [(cut, *own) for own in partitions], ([NEW] * cut.buckets, [NEW] * (not cut.last))
    return engine.run(f"stage-{cut.k}", _stage, takes, makes, f"dealing {cut.k}-grams to buckets")


def _bucket_count(entries: int, homes: int, memory: int) -> int:
    # As many as the memory asks for, or as let the lines of a bucket lie in the cache; fewer if there are few lines, and
    # one byte names a bucket.
    wanted = max(-(-entries * BYTES_IN_BUCKET // max(1, memory)), entries // _QUICK_BUCKET)
    return max(1, min(wanted, homes // _LEAST_HOMES, int(_native.MOST_BUCKETS)))


def _pack_order(
    engine: Engine, cut: _Cut, entries: int, staged: list[list[Stored]]
) -> tuple[PackedOrder, list[list[Stored]]]:
    # Measure and place the staged n-grams of one order; return the table, and the slots of each partition by buckets.
    k = cut.k
    while True:
        takes = [(cut.kernel(b), own) for b, own in enumerate(staged)]
        made = engine.run(f"measure-{k}.{cut.attempt}", _measure, takes, (NEW, NEW), f"measuring buckets of {k}-grams")
        rows = [engine.read(sizes).tolist() for _, sizes in made]
        measured, repeated = [row[:3] for row in rows], sum(row[3] for row in rows)
        if repeated:
            raise RepeatedNgramsError(repeated)
        starts = _starts(measured)
        if starts is not None:
            break
        # Too crowded somewhere: the same n-grams over more lines. `attempt` is in the name of the stage, so that a resumed
        # run does not take the arrays of a cut that was given up.
        cut = replace(cut, homes=more_homes(cut.homes), attempt=cut.attempt + 1)
        check_lines_of_table(cut.lines)
    if sum(size for size, _, _ in measured) != entries:
        raise ValueError(f"there are {sum(size for size, _, _ in measured):,} n-grams of order {k}, not {entries:,}")
    cut = replace(cut, starts=starts)
    calls = [(cut, b, homes, own) for b, ((homes, _), own) in enumerate(zip(made, staged, strict=True))]
    makes = _Placed(NEW, NEW, NEW, NEW, [NEW] * (0 if cut.last else len(staged[0])))
    placed = engine.run(f"place-{k}", _place, calls, makes, f"placing {k}-grams")
    engine.drop(staged)
    checksums, twice, blanks = zip(*(engine.read(own.sums).tolist() for own in placed), strict=True)
    if any(twice):
        raise RepeatedNgramsError(sum(twice))
    table = PackedTable(np.zeros((0, 16), np.uint32), *cut.bounds, cut.last)
    joints = [(one.tail, other.head) for one, other in pairwise(placed)]
    shared = sum(_native.digest_lines(_joined(engine, joint), cut.first_line(b)) for b, joint in enumerate(joints, 1))
    parts = [(own.middle, joint) for own, joint in zip(placed, [*joints, None], strict=True)]
    packed = PackedOrder(table, cut.lines, (sum(checksums) + shared) % 2**64, entries, sum(blanks), parts)
    return packed, transposed(own.slots for own in placed)


def _joined(engine: Engine, joint: tuple[Stored, Stored]) -> Lines:
    # Lines that two buckets share: their n-grams stand in different places, and their marks add up.
    tail, head = map(engine.read, joint)
    return np.bitwise_or(tail, head)


def _starts(measured: list[list[int]]) -> tuple[int, ...] | None:
    # Slot at which each bucket begins; None if an n-gram would then lie too far from its home.
    # measured: for each bucket its size; the slot that is free behind it, if it begins at its first home; and the slot that
    # it must begin before: [[3, 3, 9], [2, 7, 12], [1, 9, 20]] -> (0, 3, 7), as 3 is max(0 + 3, 3), and 7 is max(3 + 2, 7).
    starts = [*accumulate(measured, lambda start, bucket: max(start + bucket[0], bucket[1]), initial=0)][:-1]
    return tuple(starts) if all(start < limit for start, (_, _, limit) in zip(starts, measured, strict=True)) else None


class TableBuilder:
    """Pack the n-grams of a model, order after order from 2, as one partition."""

    # threads: how many threads share the work; the tables do not depend on it.

    def __init__(self, vocabulary: int, order: int, threads: int | None = None) -> None:
        self.vocabulary, self.order, self._engine = vocabulary, order, Engine(thread_count(threads))
        self.tables: list[PackedTable] = []

    def add(self, parents: Slots, words: Slots, probabilities: NDArray[np.floating], weights: NDArray[np.floating]) -> None:
        """Make the table of the next order."""
        # parents: [n], slots of the beginnings; ids of words at order 2; words: [n], ids of the last words; probabilities:
        # [n], linear; negative for blanks; weights: [n], back-off weights, linear; not used at the highest order.
        engine, k = self._engine, len(self.tables) + 2
        below = self.tables[-1] if self.tables else None
        cut = _new_cut(k, self.order, len(parents), (below.slots if below else self.vocabulary, self.vocabulary), ALL_MEMORY)

        def _held(name: str, column: ArrayLike, kind: type) -> Stored:
            return engine.write(f"{name}-{k}", np.ascontiguousarray(column, kind))

        own = Grams(
            _held("parents", parents, np.uint32),
            _held("words", words, np.uint32),
            _held("probabilities", probabilities, np.float32),
            _held("dropped", (), np.uint8),
            _held("weights", weights, np.float32),
        )
        ((parts, rest),) = _stage_order(engine, cut, [(own, None, None)])
        packed, slots = _pack_order(engine, cut, len(parents), [[part] for part in parts])
        if below is not None:
            _native.mark_parents(below.lines, engine.read(own.parents))
        self.tables.append(packed.whole(engine))
        engine.drop(own, rest, slots)


def packed_model(
    engine: Engine, orders: Sequence[PackedOrder], unigrams: NgramModel, path: str | Path | None = None
) -> NgramModel:
    """Make the model of tables that an engine holds: in memory, whereupon it forgets them, or in a folder."""
    # The bytes of the folder are those that `NgramModel.save` writes. The model is mapped from it, and its pages are read as
    # they are used: this process has just written them, so it does not look at all of them again; the next load does.
    # Raises OutputError: it cannot be written; nothing is left behind, and the engine still has all, so that it can be done
    # again.
    tables = replace(unigrams.tables, tables=[order.table if path else order.whole(engine) for order in orders])
    model = NgramModel(tables, unigrams.vocabulary, unigrams.tokenizer, unigrams.settings, unigrams.record)
    model.__dict__["checksums"] = [order.checksum for order in orders]
    model.__dict__["types"] = [unigrams.types[0], *(order.entries - order.blanks for order in orders)]
    if path is None:
        return model
    write_model(path, model, [_array(engine, order) for order in orders])
    return load_ngram_model(path, just_written=True)


def _array(engine: Engine, order: PackedOrder) -> ArrayInPieces:
    return ArrayInPieces(np.dtype(np.uint32), (order.lines, 16), lambda: order.pieces(engine))


_Staging = tuple[_Cut, Grams, Grams | None, tuple[Stored, list[Stored]] | None]
"""The n-grams of one order in a partition, those of the order above, and of the order below the buckets of rows and the
slots of each bucket."""


def _stage(taken: _Staging, read: Read) -> Iterator[Array]:
    # Deal the n-grams of a partition to buckets; yield what goes to each, and the bucket of each row, 255 if dropped.
    cut, own, above, below = taken
    parents, dropped = read(own.parents), read(own.dropped)
    longer = np.zeros(0 if cut.last else len(parents), np.uint8)
    if above is not None:
        _native.mark_longer(read(above.parents), read(above.dropped), longer)
    slots = np.zeros(0, np.uint32)
    if below is not None:
        dealt, sent_back = read(below[0]), list(map(read, below[1]))
        slots = np.empty(len(dealt), np.uint32)
        _native.replay_slots(dealt, sent_back, slots)
        del sent_back, dealt
    weights = np.zeros(0, np.float32) if own.weights is None else read(own.weights)
    columns = parents, read(own.words), read(own.probabilities), weights
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


def _measure(taken: tuple[_Bucket, list[Stored]], read: Read) -> Iterator[Array]:
    # How many n-grams of a bucket have each line as their home, and what `_starts` wants to know.
    bucket, staged = taken
    counts, size = np.zeros(bucket[-1], np.uint8), 0
    for stored in staged:
        ngrams = read(stored)
        _native.count_homes(bucket, ngrams, counts)
        size += len(ngrams)
    free, limit = _native.measure_homes(bucket, counts)
    repeated = 0
    if not limit:  # too many have one home: are they the same?
        keys = np.concatenate([read(stored)[:, :2] for stored in staged])
        repeated = len(keys) - len(np.unique(keys, axis=0))
    yield counts
    yield np.array([size, free, limit, repeated], np.uint64)


def _place(taken: tuple[_Cut, int, Stored, list[Stored]], read: Read) -> Iterator[Array]:
    # Lines of a bucket: those the bucket before may write to, its own, those the next one may write to; then the checksum
    # of its own lines, repeated n-grams and blanks; and for each partition the slots of what it dealt, in order.
    cut, b, homes, staged = taken
    bucket, counts = cut.kernel(b), read(homes)
    lines, cursors = new_lines(bucket[-1] + _SPARE), np.empty(len(counts), np.uint32)
    _native.open_homes(bucket, counts, cut.starts[b], cursors)
    for stored in staged:
        _native.write_ngrams(bucket, read(stored), cursors, lines)
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
    for stored in () if cut.last else staged:
        ngrams = read(stored)
        slots = np.empty(len(ngrams), np.uint32)
        _native.list_slots(bucket, ngrams, cursors, shifts, slots)
        yield slots
