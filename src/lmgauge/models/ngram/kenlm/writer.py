"""Writing KenLM's binary files: what its build_binary makes of the model's ARPA file, without either."""

# Tables of ours go from the first word of an n-gram to the last, KenLM's from the last to the first. So each n-gram is found
# below its *suffix*, itself without its first word, and `_Order` says which that is. Order after order is sorted (trie) or
# hashed (probing) by it, and written when the next order has told which n-grams begin or end longer ones.
# `_kernels/kenlm.hpp` says what lies where in a file.

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import UsageError
from lmgauge.base.files import writing
from lmgauge.base.threads import run_ranges, thread_count
from lmgauge.models.ngram.arpa_writer import check_arpa_form, printable
from lmgauge.models.ngram.kenlm.form import KenlmForm
from lmgauge.models.ngram.packed_tables import Entries
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.text.vocabulary import UNK

if TYPE_CHECKING:
    from lmgauge.models.ngram.model import NgramModel

_MAGIC = b"mmap lm http://kheafield.com/code format version 5\n"
_TESTS = (0.0, 1.0, -0.5, 1, 0xFFFFFFFF, 1)  # tell machines whose numbers are others
_PROBING, _TRIE, _QUANTIZED = 0, 2, 3
_ROOM = 1.5  # buckets of a table for each entry
_PARTS = 4  # of a table, that threads may fill at the same time
_NO_UNK = -100.0  # log10, as build_binary has it where there is no <unk>
_SIGN = np.uint32(0x80000000)
_Number = TypeVar("_Number", np.uint32, np.uint64)
_Bits = NDArray[np.uint32]
_Logs = NDArray[np.float32]  # to the base 10


def write_kenlm(model: NgramModel, path: str | Path, form: KenlmForm | None = None) -> None:
    """Write a binary file that KenLM, and whatever decodes with it, loads."""
    model, form = model.listed(), form or KenlmForm()
    check_arpa_form(model)
    if model.order < 2:
        raise UsageError("a KenLM file holds n-grams of two words or more; train with --order 2 or higher")
    offsets, strings = printable(model.vocabulary, model.tokenizer)
    words = _Words(offsets, strings, closed=model.vocabulary.closed)
    counts = [len(words), *(table.count()[0] for table in model.tables.tables)]
    kind = _PROBING if not form.trie else _TRIE if form.quantize is None else _QUANTIZED
    head = (_MAGIC, *_TESTS, model.order, _ROOM, kind, 1, int(form.trie))
    with writing(path) as file:
        file.write(struct.pack(f"<56s3f2I4xQ B3xfIB3xI{model.order}Q4x", *head, *counts))
        if form.trie:
            _write_trie(model.tables, words, form.quantize, file)
        else:
            _write_probing(model.tables, words, file)


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

    def listed(self, order: _Bits) -> bytes:
        # Words in an order, uint32 [words], each followed by a zero byte.
        sizes = np.diff(self.offsets)[order] + 1
        ends = np.cumsum(sizes)
        listed: NDArray[np.uint8] = self.strings[np.repeat(self.offsets[order] - ends + sizes, sizes) + np.arange(ends[-1])]
        listed[ends - 1] = 0
        return listed.tobytes()

    def ngrams(self, tables: NgramTables) -> _Order:
        # The words as n-grams of order 1.
        ids, none = np.arange(len(self), dtype=np.uint32), np.zeros(0, np.uint32)
        probability, backoff = (_log10(tables, 1, slice(None), tables.unigrams[:, i], i) for i in (0, 1))
        if self.closed:
            probability[UNK], backoff[UNK] = _NO_UNK, 0
        return _Order(ids, none, none, ids, probability, backoff, len(self))


@dataclass(frozen=True)
class _Order:
    """The n-grams of one order, in the order of their slots; all [n] but what is by slot."""

    slots: _Bits  # which entries of the table they are
    parents: _Bits  # slots, in the order below, of each without its last word
    suffixes: _Bits  # slots, in the order below, of each without its first word
    first: _Bits  # ids of first words
    probability: _Logs
    backoff: _Logs  # of the longest order: none
    size: int  # slots that there are

    def by_slot(self, values: NDArray[_Number]) -> NDArray[_Number]:
        # Values, [n], by slot, [size].
        spread = np.zeros(self.size, values.dtype)
        spread[self.slots] = values
        return spread

    def among(self, slots: _Bits) -> NDArray[np.bool_]:
        # Whether each is one of these slots.
        flags = np.zeros(self.size, np.bool_)
        flags[slots] = True
        return flags[self.slots]

    def backoff_bits(self, longer: _Order) -> _Bits:
        # KenLM tells from the sign of a zero whether a longer n-gram can follow: -0 where none begins so, and a decoder's
        # state need not hold the word.
        zero = np.where(self.among(longer.parents), np.uint32(0), _SIGN)
        return np.where(self.backoff == 0, zero, self.backoff.view(np.uint32))


def _orders(tables: NgramTables, words: _Words) -> Iterator[tuple[_Order, _Order | None]]:
    # N-grams of order 1, 2, ..., each with those of the next order; the longest with None.
    order = words.ngrams(tables)
    for k, table in enumerate(tables.tables, 2):
        entries = table.entries()
        parents, suffixes = entries.parents, entries.words
        if k > 2:
            suffixes = _find(tables, k - 1, order.by_slot(order.suffixes), entries)
        first = order.by_slot(order.first)[parents]
        longer = _Order(entries.slots, parents, suffixes, first, *_logs(tables, k, entries), table.slots)
        yield order, longer
        order = longer
    yield order, None


def _find(tables: NgramTables, k: int, suffixes: _Bits, longer: Entries) -> _Bits:
    # Slots in order k, uint32 [n], of longer n-grams without their first words; `suffixes` are their parents', by slot.
    def share(begin: int, end: int) -> _Bits:
        return tables.tables[k - 2].find(suffixes[longer.parents[begin:end]], longer.words[begin:end])

    return np.concatenate(run_ranges(share, len(longer.words), thread_count()))


def _logs(tables: NgramTables, k: int, entries: Entries) -> tuple[_Logs, _Logs]:
    # Log10 of probabilities and of back-off weights, which the longest order does not have.
    probability = _log10(tables, k, entries.slots, entries.probabilities, 0)
    return probability, _log10(tables, k, entries.slots, entries.weights, 1) if k < tables.order else np.zeros(0, np.float32)


def _log10(tables: NgramTables, k: int, slots: _Bits | slice, linear: NDArray[np.float32], column: int) -> _Logs:
    # Log10 of values of order k, float32 [n], as an ARPA file said them or else as they are here.
    linear, log10 = np.ascontiguousarray(linear), np.empty(len(linear), np.float32)
    run_ranges(lambda a, b: _native.log10_of(linear[a:b], log10[a:b]), len(linear), thread_count())
    if not tables.logs:
        return log10
    said = tables.logs[k - 1][slots, column]
    return np.where(np.isnan(said), log10, said)


# -- probing: a table for each order, keyed by a hash over the words from the last to the first
def _write_probing(tables: NgramTables, words: _Words, file: IO[bytes]) -> None:
    ids = np.arange(len(words), dtype=np.uint32)
    file.write(np.array([0, len(words)], np.uint32).data)
    _write_table(file, words.hashes()[1:], ids[1:, None], len(words))
    key_by_slot = ids.astype(np.uint64)  # words are their own keys
    for k, (order, longer) in enumerate(_orders(tables, words), 1):
        # Logs are never above 0, so that the sign is free to say something else: it is set where no longer n-gram ends so.
        values = (order.probability.view(np.uint32) | _SIGN)[:, None]
        if longer is not None:
            ends = np.where(order.among(longer.suffixes), _SIGN, np.uint32(0))
            values = np.stack((values[:, 0] ^ ends, order.backoff_bits(longer)), axis=1)
        if k == 1:
            file.write(values.tobytes() + bytes(8))  # words follow each other, and one more could
            continue
        keys = np.empty(len(order.slots), np.uint64)
        _native.combine_kenlm(key_by_slot, order.suffixes, order.first, keys)
        _write_table(file, keys, values, len(keys))
        key_by_slot = order.by_slot(keys)
    file.write(words.listed(ids))


def _write_table(file: IO[bytes], keys: NDArray[np.uint64], values: _Bits, entries: int) -> None:
    # Fill a table in parts of its own, whatever the number of threads, so that its bytes are always the same.
    buckets = max(entries + 1, int(np.float32(_ROOM) * np.float32(entries)))  # in single precision, as KenLM
    width = values.shape[1]
    table = np.zeros((8 + 4 * width) * buckets, np.uint8)

    def part(begin: int, end: int) -> list[_Bits]:
        # buckets 10, all four parts -> bounds [0, 2, 5, 7, 10]
        bounds = [buckets * i // _PARTS for i in range(begin, end + 1)]
        return [_native.fill_probing(table, keys, values.reshape(-1), width, pair) for pair in pairwise(bounds)]

    left = np.concatenate([rows for rows_of in run_ranges(part, _PARTS, thread_count()) for rows in rows_of])
    _native.fill_probing(table, keys[left], values[left].reshape(-1), width, (0, buckets))
    file.write(table.data)


# -- trie: arrays of entries, sorted by suffix, then by first word


@dataclass(frozen=True)
class _Bins:
    """Bins of equally many values of one order: the centers that stand for them."""

    centers: _Logs
    zeros: int  # of the first centers, which are for -0.0 and 0.0

    @classmethod
    def of(cls, values: _Logs, bits: int, zeros: int) -> _Bins:
        centers = np.empty(1 << bits, np.float32)
        centers[:zeros] = [-0.0, 0.0][:zeros]
        _native.center_bins(np.sort(values[values != 0] if zeros else values), centers[zeros:])
        return cls(centers, zeros)

    def codes(self, values: _Logs) -> _Bits:
        codes = np.empty(len(values), np.uint32)
        _native.encode_bins(values, self.centers, self.zeros, codes)
        return codes


def _write_trie(tables: NgramTables, words: _Words, quantize: Sequence[int] | None, file: IO[bytes]) -> None:
    hashes = words.hashes()
    # hashes [-, 50, 20, 90] -> ranked [0, 2, 1, 3]; <unk> stays first
    ranked = np.concatenate(([0], 1 + np.argsort(hashes[1:]))).astype(np.uint32)  # our ids in the order of theirs
    file.write(np.array([len(words) - 1], np.uint64).data)
    file.write(hashes[ranked[1:]].tobytes() + bytes(8))
    bins: list[tuple[_Bins, _Bins]] = []
    if quantize is not None:
        file.write(bytes([2, *quantize, 0, 0, 0, 0, 0]))
        for k, table in enumerate(tables.tables, 2):
            probability, backoff = _logs(tables, k, table.entries())
            bins.append((_Bins.of(probability, quantize[0], 0), _Bins.of(backoff, quantize[1], 2)))
            for one in bins[-1] if k < tables.order else bins[-1][:1]:
                file.write(one.centers.data)
    their_ids, rank = _inverse(ranked), ranked
    for k, (order, longer) in enumerate(_orders(tables, words), 1):
        probability, bits = order.probability, np.zeros(0, np.uint32)
        following, rank_of_longer = np.zeros(len(order.slots) + 1, np.uint32), np.zeros(0, np.uint32)
        if longer is not None:
            bits = order.backoff_bits(longer)
            # The extensions of the i-th entry are those from following[i] to following[i + 1].
            rank_of_longer = np.empty(len(longer.slots), np.uint32)
            place = order.by_slot(_inverse(rank))
            _native.sort_extensions(place[longer.suffixes], their_ids[longer.first], following[1:], rank_of_longer)
        if k == 1:
            _write_unigrams(file, probability[rank], bits[rank], following)
        else:
            values = [(probability.view(np.uint32) & ~_SIGN, 31), (bits, 32)]
            if quantize is not None:
                codes = bins[k - 2][0].codes(probability), bins[k - 2][1].codes(bits.view(np.float32))
                values = [(codes[1], quantize[1]), (codes[0], quantize[0])]
            fields = [(their_ids[order.first], len(words).bit_length()), *values]
            columns = [(numbers[rank], width) for numbers, width in fields if len(numbers)]
            _write_entries(file, columns, (following, len(rank_of_longer).bit_length()))
        rank = rank_of_longer
    file.write(words.listed(ranked))


def _inverse(permutation: _Bits) -> _Bits:
    inverse = np.empty_like(permutation)
    inverse[permutation] = np.arange(len(permutation), dtype=np.uint32)
    return inverse


def _write_unigrams(file: IO[bytes], probability: _Logs, bits: _Bits, following: _Bits) -> None:
    entries = np.zeros(len(probability) + 2, np.dtype([("p", "<f4"), ("b", "<u4"), ("next", "<u8")]))
    entries["p"][:-2], entries["b"][:-2], entries["next"][:-1] = probability, bits, following
    file.write(entries.tobytes())


def _write_entries(file: IO[bytes], columns: list[tuple[_Bits, int]], following: tuple[_Bits, int]) -> None:
    # Write packed entries, from columns of numbers and their bits. One more entry says where the extensions of the last end.
    longer = [*((np.append(numbers, np.uint32(0)), width) for numbers, width in columns), following]
    numbers, widths = map(list, zip(*longer, strict=True))
    part = np.zeros((len(numbers[0]) * sum(widths) + 7) // 8 + 8, np.uint8)
    _native.pack_rows(numbers, widths, part)
    file.write(part.data)
