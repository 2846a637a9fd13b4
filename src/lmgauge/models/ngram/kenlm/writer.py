"""Writing KenLM's binary files: what its build_binary makes of the model's ARPA file, without either."""

# Tables of ours go from the first word of an n-gram to the last, KenLM's from the last to the first. So each n-gram is found
# below its *suffix*, itself without its first word, and `_Order` says which that is. Order after order is sorted (trie) or
# hashed (probing) by it, and written when the next order has told which n-grams begin or end longer ones.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import UsageError
from lmgauge.base.files import writing
from lmgauge.base.threads import run_ranges, thread_count
from lmgauge.models.ngram.arpa_writer import check_arpa_form, printable
from lmgauge.models.ngram.kenlm.form import KenlmForm
from lmgauge.models.ngram.packed_tables import PackedTable
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.text.vocabulary import UNK

if TYPE_CHECKING:
    from lmgauge.models.ngram.model import NgramModel

_PROBING, _TRIE, _QUANTIZED, _ARRAY = 0, 2, 1, 2  # a trie's number grows by what it has
_PARTS = 4  # of a table, that threads may fill at the same time
_NO_UNK = -100.0  # log10, as build_binary has it where there is no <unk>
_SIGN = np.uint32(0x80000000)
_Shape = tuple[int, list[int], int, int, int]


def write_kenlm(model: NgramModel, path: str | Path, form: KenlmForm | None = None) -> None:
    """Write a binary file that KenLM, and whatever decodes with it, loads."""
    model = model.listed()
    check_arpa_form(model)
    if model.order < 2:
        raise UsageError("a KenLM file holds n-grams of two words or more; train with --order 2 or higher")
    offsets, strings = printable(model)
    words = _Words(offsets, strings, closed=model.vocabulary.closed)
    with writing(path) as file:
        (_write_trie if (form or KenlmForm()).trie else _write_probing)(model.tables, words, form or KenlmForm(), file)


@dataclass(frozen=True)
class _Words:
    """The words of the file: where each begins, int64 [words + 1], and their bytes."""

    offsets: NDArray[np.int64]
    strings: NDArray[np.uint8]
    closed: bool

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def hashes(self) -> NDArray[np.uint64]:
        # Hash of each word, uint64 [words].
        hashes = np.empty(len(self), np.uint64)
        _native.hash_kenlm_words(self.offsets, self.strings, hashes)
        return hashes

    def listed(self, order: NDArray[np.uint32]) -> bytes:
        # Words in an order, uint32 [words], each followed by a zero byte.
        return _native.join_words(self.offsets, self.strings, order)

    def unigrams(self, tables: NgramTables) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        # Log10 of probabilities and of back-off weights, float32 [words].
        probability, backoff = (_log10(tables, 1, slice(None), tables.unigrams[:, i], i) for i in (0, 1))
        if self.closed:
            probability[UNK], backoff[UNK] = _NO_UNK, 0
        return probability, backoff


@dataclass(frozen=True)
class _Order:
    """The n-grams of one order, in the order of their slots; all [n] but what is by slot."""

    slots: NDArray[np.uint32]  # which entries of the table they are
    parents: NDArray[np.uint32]  # slots, in the order below, of each without its last word
    suffixes: NDArray[np.uint32]  # slots, in the order below, of each without its first word
    first: NDArray[np.uint32]  # ids of first words
    # log10, with the sign bit cleared where a longer n-gram may end with it is for others to do
    probability: NDArray[np.float32]
    backoff: NDArray[np.float32]  # log10
    size: int

    def by_slot(self, values: NDArray[np.uint32]) -> NDArray[np.uint32]:
        # Values, uint32 [n], by slot, [size].
        spread = np.zeros(self.size, np.uint32)
        spread[self.slots] = values
        return spread


def _orders(tables: NgramTables) -> Iterator[_Order]:
    # N-grams of order 2, 3, ..., each with its suffix.
    words = np.arange(len(tables.unigrams), dtype=np.uint32)
    first_by_slot, suffix_by_slot = words, words
    for k, table in enumerate(tables.tables, 2):
        entries = table.entries()
        parents, last = entries.parents, entries.words
        suffixes = last if k == 2 else _find(tables.tables[k - 3], suffix_by_slot, parents, last)
        first = first_by_slot[parents]
        probability = _log10(tables, k, entries.slots, entries.probabilities, 0)
        backoff = np.zeros(0, np.float32) if k == tables.order else _log10(tables, k, entries.slots, entries.weights, 1)
        order = _Order(entries.slots, parents, suffixes, first, probability, backoff, table.slots)
        yield order
        if k < tables.order:
            first_by_slot, suffix_by_slot = order.by_slot(first), order.by_slot(suffixes)


def _find(
    table: PackedTable, suffixes: NDArray[np.uint32], parents: NDArray[np.uint32], last: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    # Slots of n-grams, uint32 [n], from their parents' suffixes, by slot, and last words.
    shares = run_ranges(lambda a, b: table.find(suffixes[parents[a:b]], last[a:b]), len(last), thread_count())
    return np.concatenate(shares)


def _log10(
    tables: NgramTables, k: int, slots: NDArray[np.uint32] | slice, linear: NDArray[np.float32], column: int
) -> NDArray[np.float32]:
    # Log10 of values of order k, float32 [n], as an ARPA file said them or else as they are here.
    linear, log10 = np.ascontiguousarray(linear), np.empty(len(linear), np.float32)
    run_ranges(lambda a, b: _native.log10_of(linear[a:b], log10[a:b]), len(linear), thread_count())
    if not tables.logs:
        return log10
    said = tables.logs[k - 1][slots, column]
    return np.where(np.isnan(said), log10, said)


def _flags(size: int, slots: NDArray[np.uint32]) -> NDArray[np.bool_]:
    flags = np.zeros(size, np.bool_)
    flags[slots] = True
    return flags


def _backoff_bits(backoff: NDArray[np.float32], begins: NDArray[np.bool_]) -> NDArray[np.uint32]:
    # Back-off weights as bits, uint32 [n]; zero with a sign where no longer n-gram begins with it.
    bits = backoff.view(np.uint32).copy()
    # KenLM tells from the sign of a zero whether a longer n-gram can follow: -0 where none begins so, and a decoder's state
    # need not hold the word.
    bits[(backoff == 0) & ~begins] = _SIGN
    bits[(backoff == 0) & begins] = 0
    return bits


def _probability_bits(probability: NDArray[np.float32], ends: NDArray[np.bool_]) -> NDArray[np.uint32]:
    # Log10 of probabilities as bits, uint32 [n]; with a sign where no longer n-gram ends with it.
    # Logs are never above 0, so that the sign is free to say something else: it is set where no longer n-gram ends so.
    return np.where(ends, probability.view(np.uint32) & ~_SIGN, probability.view(np.uint32) | _SIGN)


def _header(shape: _Shape) -> NDArray[np.uint8]:
    (vocabulary, *_), _ = _native.plan_kenlm(shape)
    header = np.empty(vocabulary, np.uint8)
    _native.write_kenlm_header(shape, header)
    return header


def _write_probing(tables: NgramTables, words: _Words, form: KenlmForm, file: IO[bytes]) -> None:
    counts = [len(words), *(table.count()[0] for table in tables.tables)]
    shape = (_PROBING, counts, 8, 8, 0)
    (*_, vocabulary_buckets), levels = _native.plan_kenlm(shape)
    file.write(_header(shape).data)
    file.write(np.array([0, len(words)], np.uint32).data)
    lookup = np.zeros(12 * vocabulary_buckets, np.uint8)
    ids = np.arange(1, len(words), dtype=np.uint32)
    _fill(lookup, words.hashes()[1:], ids[:, None], vocabulary_buckets)
    file.write(lookup.data)
    probability, backoff = words.unigrams(tables)
    key_by_slot = np.arange(len(words), dtype=np.uint64)
    keys: NDArray[np.uint64] | None = None
    slots, size = np.arange(len(words), dtype=np.uint32), len(words)
    for k, order in enumerate(_orders(tables), 2):
        begins, ends = _flags(size, order.parents)[slots], _flags(size, order.suffixes)[slots]
        values = np.stack((_probability_bits(probability, ends), _backoff_bits(backoff, begins)), axis=1)
        _write_table(file, keys, values, levels[k - 3][1])
        if keys is not None:
            key_by_slot = np.zeros(size, np.uint64)
            key_by_slot[slots] = keys
        keys = _combined(key_by_slot, order)
        probability, backoff, slots, size = order.probability, order.backoff, order.slots, order.size
    values = _probability_bits(probability, np.zeros(len(probability), np.bool_))[:, None]
    _write_table(file, keys, values, levels[-1][1])
    file.write(words.listed(np.arange(len(words), dtype=np.uint32)))


def _combined(key_by_slot: NDArray[np.uint64], order: _Order) -> NDArray[np.uint64]:
    # Keys of n-grams, uint64 [n], from those of their suffixes by slot.
    keys = np.empty(len(order.slots), np.uint64)

    def share(begin: int, end: int) -> None:
        _native.combine_kenlm(key_by_slot[order.suffixes[begin:end]], order.first[begin:end], keys[begin:end])

    run_ranges(share, len(keys), thread_count())
    return keys


def _write_table(file: IO[bytes], keys: NDArray[np.uint64] | None, values: NDArray[np.uint32], buckets: int) -> None:
    # Write a table; unigrams, which have no keys, follow each other, and one more could.
    if keys is None:
        file.write(np.ascontiguousarray(values).data)
        file.write(bytes(8))
        return
    table = np.zeros((8 + 4 * values.shape[1]) * buckets, np.uint8)
    _fill(table, keys, values, buckets)
    file.write(table.data)


def _fill(table: NDArray[np.uint8], keys: NDArray[np.uint64], values: NDArray[np.uint32], buckets: int) -> None:
    # Fill a table in parts of its own, whatever the number of threads, so that its bytes are always the same.
    width = values.shape[1]

    def part(begin: int, end: int) -> list[NDArray[np.uint32]]:
        # buckets 10, all four parts -> bounds [0, 2, 5, 7, 10]
        bounds = [buckets * i // _PARTS for i in range(begin, end + 1)]
        return [_native.fill_probing(table, keys, values.reshape(-1), width, pair) for pair in pairwise(bounds)]

    left = np.concatenate([rows for rows_of in run_ranges(part, _PARTS, thread_count()) for rows in rows_of])
    _native.fill_probing(table, keys[left], values[left].reshape(-1), width, (0, buckets))


def _write_trie(tables: NgramTables, words: _Words, form: KenlmForm, file: IO[bytes]) -> None:
    counts = [len(words), *(table.count()[0] for table in tables.tables)]
    kind = _TRIE + _QUANTIZED * (form.quantize is not None) + _ARRAY * (form.array is not None)
    probability_bits, backoff_bits = form.quantize or (8, 8)
    shape = (kind, counts, probability_bits, backoff_bits, 0 if form.array is None else form.array)
    hashes = words.hashes()
    # hashes [-, 50, 20, 90] -> ranked [0, 2, 1, 3]; <unk> stays first
    ranked = np.concatenate(([0], 1 + np.argsort(hashes[1:]))).astype(np.uint32)  # our ids in the order of theirs
    file.write(_header(shape).data)
    file.write(np.array([len(words) - 1], np.uint64).data)
    file.write(hashes[ranked[1:]].data)
    file.write(bytes(8))
    quantizers: list[_Quantizer | None] = [None] * len(tables.tables)
    if form.quantize is not None:
        quantizers = [_Quantizer.of(tables, k, form.quantize) for k in range(2, tables.order + 1)]
        file.write(bytes([2, probability_bits, backoff_bits, 0, 0, 0, 0, 0]))
        for quantizer in quantizers:
            assert quantizer is not None
            file.write(quantizer.probabilities.data)
            file.write(quantizer.backoffs.data)
    _write_levels(tables, words, _Trie(shape, ranked, quantizers), file)
    file.write(words.listed(ranked))


@dataclass(frozen=True)
class _Quantizer:
    """Centers of the bins of one order, float32, of log10 of probabilities and of back-off weights (none: longest order)."""

    probabilities: NDArray[np.float32]
    backoffs: NDArray[np.float32]

    @classmethod
    def of(cls, tables: NgramTables, k: int, bits: Sequence[int]) -> _Quantizer:
        # Bins of equally many values; the first two of back-off weights are for those that are zero.
        entries = tables.tables[k - 2].entries()
        probabilities = np.empty(1 << bits[0], np.float32)
        _native.center_bins(np.sort(_log10(tables, k, entries.slots, entries.probabilities, 0)), probabilities)
        if k == tables.order:
            return cls(probabilities, np.zeros(0, np.float32))
        weights = _log10(tables, k, entries.slots, entries.weights, 1)
        backoffs = np.empty(1 << bits[1], np.float32)
        backoffs[:2] = -0.0, 0.0
        _native.center_bins(np.sort(weights[weights != 0]), backoffs[2:])
        return cls(probabilities, backoffs)

    def codes(self, probability: NDArray[np.float32], backoff: NDArray[np.float32], bits: int) -> NDArray[np.uint64]:
        # Codes of values, uint64 [n]: that of the back-off weight in the lowest `bits`.
        codes = np.empty(len(probability), np.uint32)
        _native.encode_bins(probability, self.probabilities, 0, codes)
        if not len(self.backoffs):
            return codes.astype(np.uint64)
        of_backoffs = np.empty(len(backoff), np.uint32)
        _native.encode_bins(backoff, self.backoffs, 2, of_backoffs)
        # codes 3 and 5 of 8 bits -> 3 << 8 | 5 = 773
        return (codes.astype(np.uint64) << np.uint64(bits)) | of_backoffs


@dataclass(frozen=True)
class _Trie:
    """What all orders of a trie share: `ranked` has our ids in the order of theirs."""

    shape: _Shape
    ranked: NDArray[np.uint32]
    quantizers: list[_Quantizer | None]

    @property
    def order(self) -> int:
        return len(self.shape[1])

    def values(self, k: int, probability: NDArray[np.float32], bits: NDArray[np.uint32]) -> NDArray[np.uint64]:
        # What entries of order k hold of probability and back-off weight, uint64 [n]; `bits` are of the latter.
        quantizer = self.quantizers[k - 2]
        if quantizer is not None:
            return quantizer.codes(probability, bits.view(np.float32), self.shape[3])
        values = (probability.view(np.uint32) & ~_SIGN).astype(np.uint64)
        return values | (bits.astype(np.uint64) << np.uint64(31)) if len(bits) else values


def _write_levels(tables: NgramTables, words: _Words, trie: _Trie, file: IO[bytes]) -> None:
    (*_, end, _), parts = _native.plan_kenlm(trie.shape)
    starts = [start for start, _ in parts] + [end]
    their_ids = np.empty(len(words), np.uint32)
    their_ids[trie.ranked] = np.arange(len(words), dtype=np.uint32)
    # Of the order below, in its order in the file: last words added (theirs), log10 values and slots.
    probability, backoff = (values[trie.ranked] for values in words.unigrams(tables))
    slots, size, added = trie.ranked, len(words), np.zeros(0, np.uint32)
    for k, order in enumerate(_orders(tables), 2):
        place = np.zeros(size, np.uint32)
        place[slots] = np.arange(len(slots), dtype=np.uint32)
        ends, places = np.empty(len(slots), np.uint64), np.empty(len(order.slots), np.uint32)
        first = their_ids[order.first]
        _native.sort_extensions(place[order.suffixes], first, ends, places)
        # ends [2, 2, 5] -> following [0, 2, 2, 5]: the extensions of entry i are following[i] to following[i + 1].
        following = np.concatenate((np.zeros(1, np.uint64), ends))
        bits = _backoff_bits(backoff, _flags(size, order.parents)[slots])
        if k == 2:
            _write_unigrams(file, probability, bits, following)
        else:
            values = trie.values(k - 1, probability, bits)
            _write_level(file, trie.shape, k - 1, (added, values, following), starts)
        added, slots, size = first[places], order.slots[places], order.size
        probability = order.probability[places]
        backoff = order.backoff[places] if k < trie.order else order.backoff
    values = trie.values(trie.order, probability, np.zeros(0, np.uint32))
    _write_level(file, trie.shape, trie.order, (added, values, np.zeros(0, np.uint64)), starts)


def _write_unigrams(
    file: IO[bytes], probability: NDArray[np.float32], bits: NDArray[np.uint32], following: NDArray[np.uint64]
) -> None:
    entries = np.zeros(len(probability) + 2, np.dtype([("p", "<f4"), ("b", "<u4"), ("next", "<u8")]))
    entries["p"][:-2], entries["b"][:-2], entries["next"][:-1] = probability, bits, following
    file.write(entries.tobytes())


def _write_level(
    file: IO[bytes],
    shape: _Shape,
    k: int,
    entries: tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint64]],
    starts: list[int],
) -> None:
    part = np.zeros(starts[k - 1] - starts[k - 2], np.uint8)
    _native.pack_level(shape, k, *entries, part)
    file.write(part.data)
