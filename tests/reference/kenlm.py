"""The slow twin of `_kernels/kenlm_*.cpp`: a KenLM binary file taken apart into dictionaries, and the back-off recursion."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

HEADER = 88  # bytes of magic and test values
_MASK = 2**64 - 1


def murmur(word: bytes) -> int:
    """MurmurHash64A with seed 0."""
    m, r = 0xC6A4A7935BD1E995, 47
    h = len(word) * m & _MASK
    for at in range(0, len(word) // 8 * 8, 8):
        k = int.from_bytes(word[at : at + 8], "little") * m & _MASK
        h = (h ^ ((k ^ (k >> r)) * m & _MASK)) * m & _MASK
    rest = word[len(word) // 8 * 8 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & _MASK
    h = (h ^ (h >> r)) * m & _MASK
    return h ^ (h >> r)


def combine(key: int, word: int) -> int:
    """The key of an n-gram with a word more before it."""
    return (key * 8978948897894561157 & _MASK) ^ ((1 + word) * 17894857484156487943 & _MASK)


@dataclass
class Twin:
    """A file: words by id, and for each order a dictionary from n-grams (tries) or their keys (probing) to values."""

    kind: int
    order: int
    words: list[str]
    values: list[dict[object, tuple[float, float]]] = field(default_factory=list)

    def look_up(self, ngram: tuple[int, ...]) -> tuple[float, float] | None:
        """log10 of probability and back-off weight of words, the first first; None if it is not there."""
        if self.kind or len(ngram) == 1:
            return self.values[len(ngram) - 1].get(ngram)
        key = ngram[-1]
        for word in ngram[-2::-1]:
            key = combine(key, word)
        return self.values[len(ngram) - 1].get(key)

    def score(self, context: tuple[int, ...], word: int) -> tuple[np.float32, int]:
        """log10 of the probability of a word, and the length of the n-gram that has it, as KenLM adds them up."""
        context = context[len(context) - min(len(context), self.order - 1) :]
        matched = max(k for k in range(len(context) + 1) if self.look_up((*context[len(context) - k :], word)))
        found = self.look_up((*context[len(context) - matched :], word))
        assert found is not None
        total = np.float32(found[0])
        for k in range(matched + 1, len(context) + 1):
            weight = self.look_up(context[len(context) - k :])
            if weight is None:
                break
            total = np.float32(total + np.float32(weight[1]))
        return total, matched + 1


class Bits:
    """The file from a byte on, as one large number."""

    def __init__(self, data: bytes, at: int, size: int) -> None:
        self.number = int.from_bytes(data[at : at + size], "little")

    def __call__(self, position: int, bits: int) -> int:
        return self.number >> position & ((1 << bits) - 1)


def _float(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def take_apart(data: bytes) -> Twin:
    """Return what is in a file: probing, trie, or quantized trie without array."""
    order, multiplier, kind, _, _ = struct.unpack_from("<B3xfIB3xI", data, HEADER)
    counts = struct.unpack_from(f"<{order}Q", data, HEADER + 20)
    at = -(-(HEADER + 20 + 8 * order) // 8) * 8

    def buckets(entries: int) -> int:
        return max(entries + 1, int(np.float32(multiplier) * np.float32(entries)))

    twin = Twin(kind, order, [])
    if kind == 0:
        at += 8 + 12 * buckets(counts[0])
        unigrams = [struct.unpack_from("<If", data, at + 8 * i) for i in range(counts[0])]
        twin.values.append({(i,): (_float(p | 1 << 31), b) for i, (p, b) in enumerate(unigrams)})
        at += 8 * (counts[0] + 1)
        for k in range(2, order + 1):
            size, form = (12, "<QI") if k == order else (16, "<QIf")
            table: dict[object, tuple[float, float]] = {}
            for i in range(buckets(counts[k - 1])):
                key, p, *b = struct.unpack_from(form, data, at + size * i)
                if key:
                    table[key] = _float(p | 1 << 31), b[0] if b else 0.0
            twin.values.append(table)
            at += size * buckets(counts[k - 1])
    else:
        at = _take_trie(twin, data, at + 8 + 8 * counts[0], counts)
    twin.words = data[at:].decode().split("\0")[:-1]
    return twin


def _take_trie(twin: Twin, data: bytes, at: int, counts: tuple[int, ...]) -> int:
    order, quantized = twin.order, twin.kind == 3
    tables: list[tuple[float, ...]] = []
    bits = (31, 32)
    if quantized:
        bits = data[at + 1], data[at + 2]
        at += 8
        for k in range(2, order + 1):
            for b in bits if k < order else bits[:1]:
                tables.append(struct.unpack_from(f"<{1 << b}f", data, at))
                at += 4 << b
    rows = [struct.unpack_from("<ffQ", data, at + 16 * i) for i in range(counts[0] + 1)]
    at += 16 * (counts[0] + 2)
    twin.values.append({(i,): row[:2] for i, row in enumerate(rows[:-1])})
    parents = [((i,), rows[i][2], rows[i + 1][2]) for i in range(counts[0])]
    for k in range(2, order + 1):
        word_bits, pointer_bits = counts[0].bit_length(), counts[k].bit_length() if k < order else 0
        value_bits = bits[0] + (bits[1] if k < order else 0)
        total = word_bits + value_bits + pointer_bits
        size = ((1 + counts[k - 1]) * total + 7) // 8 + 8
        read = Bits(data, at, size)
        table: dict[object, tuple[float, float]] = {}
        children = []
        for ngram, begin, end in parents:
            for i in range(begin, end):
                longer = (read(i * total, word_bits), *ngram)
                value = read(i * total + word_bits, value_bits)
                if quantized:
                    p = tables[2 * (k - 2)][value >> (bits[1] if k < order else 0)]
                    b = tables[2 * (k - 2) + 1][value & ((1 << bits[1]) - 1)] if k < order else 0.0
                else:
                    p, b = _float(value & ((1 << 31) - 1) | 1 << 31), _float(value >> 31)
                table[longer] = p, b
                pointer = i * total + word_bits + value_bits
                if k < order:
                    children.append((longer, read(pointer, pointer_bits), read(pointer + total, pointer_bits)))
        assert len(table) == counts[k - 1]
        twin.values.append(table)
        parents = children
        at += size
    return at
