"""What the bytes of a text cost without any language model: so that bits per byte mean something to a newcomer.

Compressors run over the text as it was read, line ends included. The two adaptive models are codes too: they start with
nothing and learn as they go, so that no training text and no table hides in their figure. Both are exchangeable, which gives
their length in closed form, from counts alone.

Compressors learn from nothing but the text. Two of them are also tried as a model is: after the training text, or as much of
its end as `PRIMER_BYTES` holds, of which they may copy. xz has no other way than to compress both, so that its figure is
the size of both less the size of the training text alone.

Sources: Krichevsky & Trofimov (1981), "The performance of universal encoding" (order 0 over bytes); Ewens (1972), "The
sampling theory of selectively neutral alleles" (new types with probability theta / (n + theta), here of words and gaps).
"""

from __future__ import annotations

import math
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.progress import say_progress
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.numerics.units import nats_to_bits
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

_SMALLEST_DICTIONARY, _LARGEST_DICTIONARY = 1 << 16, 1 << 26
_NEW_TYPE_WEIGHT = 1.0


@dataclass(frozen=True)
class Baseline:
    """What a compressor or a simple model makes of a text: a rung of the ladder that a network must climb."""

    name: str
    what: str  # in words
    bits: float  # in all; a `LowerBound` where unseen words are not spelled, or part of the text is not predicted
    bits_per_byte: float
    trained: bool = False  # it has seen the training text
    own: bool = False  # it is not a baseline, but a model of the user's
    # 95 %, low and high, of the bits per byte; None where what each segment costs is not known
    interval: tuple[float, float] | None = None
    seconds: float | None = None

    @property
    def bound(self) -> bool:
        """Return True if its bits are a lower bound: then it has no place on a ladder."""
        return isinstance(self.bits, LowerBound)


def in_order(baselines: Iterable[Baseline]) -> tuple[Baseline, ...]:
    """Return baselines in the order of a ladder: the fewest bits first, of equal ones by name; lower bounds behind them."""
    # [one.name for one in in_order([Baseline("b", "", 9.0, 3.0), Baseline("a", "", 6.0, 2.0)])] -> ['a', 'b']
    return tuple(sorted(baselines, key=lambda one: (one.bound, 0.0 if one.bound else one.bits, one.name)))


class Baselines:
    """Collects what is needed while a text goes by, block by block; what is kept grows with its distinct words alone."""

    def __init__(self, size: int | None = None, threads: int | None = None) -> None:
        self._threads, self._codes = thread_count(threads), _compressors(size)
        self._bytes = np.zeros(256, np.int64)
        self._words, self._gaps = Counter[bytes](), Counter[bytes]()
        self._segments = 0

    def add(self, block: Segments) -> None:
        """Add a block of the text."""
        data = bytes_of(block)
        jobs: list[Callable[[], None]] = [partial(code.add, data) for code in self._codes]
        jobs.append(lambda: self._count(block, data))
        list(map_in_order(lambda job: job(), jobs, self._threads))

    def _count(self, block: Segments, data: bytes) -> None:
        self._bytes += np.bincount(np.frombuffer(data, np.uint8), minlength=256)
        words, gaps = words_and_gaps(block, data)
        self._words.update(words)
        self._gaps.update(gaps)
        self._segments += len(block)

    def finish(self) -> tuple[Baseline, ...]:
        """Return all baselines, the cheapest first; none of an empty text."""
        size = int(self._bytes.sum())
        if not size:
            return ()
        distinct = int(np.count_nonzero(self._bytes))
        simple = [
            ("uniform", "all 256 byte values equally likely", 8.0 * size),
            (f"uniform over {distinct} bytes", "all byte values that occur equally likely", size * math.log2(distinct)),
            ("unigram of bytes", "adaptive order-0 model of bytes (KT)", nats_to_bits(order_0_nats(self._bytes))),
            (
                "unigram of words",
                "adaptive model of words, new ones spelled",
                nats_to_bits(unigram_nats(self._words) + unigram_nats(self._gaps)),
            ),
        ]
        baselines = [Baseline(name, what, bits, bits / size) for name, what, bits in simple]
        for code in self._codes:
            bits = 8.0 * code.finish()
            baselines.append(Baseline(code.name, code.what, bits, bits / size, seconds=code.seconds))
        return in_order(baselines)


def compressed(scored: Corpus, threads: int | None) -> tuple[Baseline, ...]:
    """Return what compressors make of a test text."""
    baselines, done = Baselines(scored.report.bytes or None, threads), 0
    for block in scored:
        baselines.add(block)
        done += block.byte_count()
        say_progress(f"compressors: {done / 1e6:,.0f} MB")
    return baselines.finish()


def order_0_nats(counts: NDArray[np.int64]) -> float:
    """Return the code length of a sequence under the estimator of Krichevsky and Trofimov (1981)."""
    # Each symbol costs -ln of (n_i + 1/2) / (n + m/2), with the counts of the symbols before it.
    # counts: int64 [m], how often each symbol occurs.
    # -> Nats, 0 or more; the order of the symbols does not matter.
    # round(math.exp(-order_0_nats([1, 1])), 4) -> 0.125
    size = len(counts)
    total = int(counts.sum())
    parts = [math.lgamma(size / 2) - math.lgamma(total + size / 2)]
    parts += [math.lgamma(count + 0.5) - math.lgamma(0.5) for count in counts.tolist() if count]
    return max(0.0, -math.fsum(parts))


def unigram_nats(counts: Counter[bytes]) -> float:
    """Return the code length of strings: a known one costs n_i / (n + 1), a new one 1 / (n + 1) and its spelling."""
    # New strings are spelled by an adaptive order-0 model of bytes and an end mark (Ewens 1972).
    # -> Nats; the order of the strings does not matter.
    if not counts:
        return 0.0
    total = counts.total()
    theta = _NEW_TYPE_WEIGHT
    parts = [math.lgamma(theta) - math.lgamma(total + theta), len(counts) * math.log(theta)]
    parts += [math.lgamma(n) * times for n, times in Counter(counts.values()).items()]
    spelling = np.bincount(np.frombuffer(b"".join(counts), np.uint8), minlength=257)
    spelling[256] = len(counts)
    return -math.fsum(parts) + order_0_nats(spelling)


_GAP = re.compile(rb"[ \t\v\f\r]*[\n\0]|[ \t\v\f\r]+")
_LETTER_FIRST = re.compile(rb"(?:\A|[\n\0])(?=[^ \t\v\f\r\n\0])")


def words_and_gaps(block: Segments, data: bytes) -> tuple[list[bytes], list[bytes]]:
    """Divide a text into strings that give it back: each line is a gap (maybe empty), a word, ..., a gap with its end."""
    if not block.terminator:
        data = b"".join(block.text(i) + b"\0" for i in range(len(block)))
    words = [word for word in re.split(rb"[ \t\v\f\r\n\0]+", data) if word]
    gaps = _GAP.findall(data)
    return words, gaps + [b""] * len(_LETTER_FIRST.findall(data))


def bytes_of(block: Segments) -> bytes:
    """Return the bytes of segments as compressors see them: line ends included."""
    if block.terminator and len(block.data) == block.byte_count():
        return block.data.tobytes()
    end = b"\n" * block.terminator
    return b"".join(block.text(i) + end for i in range(len(block)))


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class _Code:
    """A compressor that a text goes through, and the size of what comes out."""

    def __init__(self, name: str, what: str, compressor: _Compressor) -> None:
        self.name, self.what, self.seconds = name, what, 0.0
        self._compressor, self._size = compressor, 0

    def add(self, data: bytes) -> None:
        began = time.thread_time()
        self._size += len(self._compressor.compress(data))
        self.seconds += time.thread_time() - began

    def finish(self) -> int:
        began = time.thread_time()
        size = self._size + len(self._compressor.flush())
        self.seconds += time.thread_time() - began
        return size


def _compressors(size: int | None) -> list[_Code]:
    import bz2  # here, as every command would pay for them

    codes = [
        _Code("gzip -9", "LZ77 and Huffman codes", zlib.compressobj(9, zlib.DEFLATED, 31)),
        _Code("bzip2 -9", "Burrows-Wheeler transform", bz2.BZ2Compressor(9)),
        _Code("xz -9e", "LZ77 and range coding", _xz(size)),
    ]
    try:
        import zstandard
    except ImportError:
        return codes
    zstd = zstandard.ZstdCompressor(level=19).compressobj()
    return [*codes, _Code("zstd -19", "LZ77 and finite-state entropy codes", zstd)]


def _xz(size: int | None) -> _Compressor:
    import lzma

    window = _LARGEST_DICTIONARY if size is None else min(max(size, _SMALLEST_DICTIONARY), _LARGEST_DICTIONARY)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": window}]
    return lzma.LZMACompressor(lzma.FORMAT_XZ, filters=filters)
