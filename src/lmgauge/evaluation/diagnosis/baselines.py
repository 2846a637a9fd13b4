"""What the bytes of a text cost without any language model: so that bits per byte mean something to a newcomer.

Compressors run over the text as it was read, line ends included. The two adaptive models are codes too: they start with
nothing and learn as they go, so that no training text and no table hides in their figure. Both are exchangeable, which gives
their length in closed form, from counts alone.

Sources: Krichevsky & Trofimov (1981), "The performance of universal encoding" (order 0 over bytes); Ewens (1972), "The
sampling theory of selectively neutral alleles" (new types with probability theta / (n + theta), here of words and gaps).
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.numerics.units import nats_to_bits
from lmgauge.text.segments import Segments
from lmgauge.threads import pool, thread_count

_SMALLEST_DICTIONARY, _LARGEST_DICTIONARY = 1 << 16, 1 << 26
_NEW_TYPE_WEIGHT = 1.0


@dataclass(frozen=True)
class Baseline:
    """What a compressor, or a model that needs no training, makes of a text.

    Attributes:
        name: of it.
        what: in words.
        bits: in all.
        bits_per_byte: of the text.
    """

    name: str
    what: str
    bits: float
    bits_per_byte: float


class Baselines:
    """Collects what is needed while a text goes by, block by block; what is kept grows with its distinct words alone.

    Args:
        size: bytes of the whole text, if known: a compressor need not look back further.
        threads: how many; no number depends on it.
    """

    def __init__(self, size: int | None = None, threads: int | None = None) -> None:
        self._threads = thread_count(threads)
        self._compressors = _compressors(size)
        self._compressed = dict.fromkeys(self._compressors, 0)
        self._bytes = np.zeros(256, np.int64)
        self._words, self._gaps = Counter[bytes](), Counter[bytes]()
        self._segments = 0

    def add(self, block: Segments) -> None:
        """Add a block of the text.

        Args:
            block: the next segments; their bytes are compressed and their words counted.

        Example:
            >>> from lmgauge.text.documents import Corpus
            >>> block = next(iter(Corpus.from_strings(["a 17"])))
            >>> baselines = Baselines(size=5)
            >>> baselines.add(block)
            >>> baselines.finish()[0].name
            'uniform over 4 bytes'
        """
        data = _bytes_of(block)
        jobs: list[Callable[[], None]] = [lambda: self._count(block, data)]
        jobs += [self._job(name, data) for name in self._compressors]
        if self._threads == 1:
            for job in jobs:
                job()
        else:
            for future in [pool(self._threads).submit(job) for job in jobs]:
                future.result()

    def _job(self, name: str, data: bytes) -> Callable[[], None]:
        def compress() -> None:
            self._compressed[name] += len(self._compressors[name][1].compress(data))

        return compress

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
        bits: list[tuple[str, str, float]] = [
            ("uniform", "each of 256 byte values alike", 8.0 * size),
            (f"uniform over {distinct} bytes", "each byte value that occurs alike", size * math.log2(distinct)),
            ("unigram of bytes", "adaptive order-0 model of bytes (KT)", nats_to_bits(order_0_nats(self._bytes))),
            (
                "unigram of words",
                "adaptive model of words, new ones spelled",
                nats_to_bits(unigram_nats(self._words) + unigram_nats(self._gaps)),
            ),
        ]
        for name, (what, compressor) in self._compressors.items():
            bits.append((name, what, 8.0 * (self._compressed[name] + len(compressor.flush()))))
        baselines = [Baseline(name, what, value, value / size) for name, what, value in bits]
        return tuple(sorted(baselines, key=lambda baseline: (baseline.bits, baseline.name)))


def order_0_nats(counts: NDArray[np.int64]) -> float:
    """Return the code length of a sequence under the estimator of Krichevsky and Trofimov (1981).

    Each symbol costs -ln of (n_i + 1/2) / (n + m/2), with the counts of the symbols before it.

    Args:
        counts: int64 [m], how often each symbol occurs.

    Returns:
        Nats, 0 or more; the order of the symbols does not matter.

    Example:
        >>> round(math.exp(-order_0_nats(np.array([1, 1]))), 4)
        0.125
    """
    size = len(counts)
    total = int(counts.sum())
    parts = [math.lgamma(size / 2) - math.lgamma(total + size / 2)]
    parts += [math.lgamma(count + 0.5) - math.lgamma(0.5) for count in counts.tolist() if count]
    return max(0.0, -math.fsum(parts))


def unigram_nats(counts: Counter[bytes]) -> float:
    """Return the code length of strings: a known one costs n_i / (n + 1), a new one 1 / (n + 1) and its spelling.

    New strings are spelled by an adaptive order-0 model of bytes and an end mark (Ewens 1972).

    Args:
        counts: how often each string occurs.

    Returns:
        Nats; the order of the strings does not matter.

    Example:
        >>> unigram_nats(Counter({b"a": 2})) < unigram_nats(Counter({b"a": 1, b"b": 1}))
        True
    """
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
    """Divide a text into strings that give it back: each line is a gap (maybe empty), a word, ..., a gap with its end.

    Args:
        block: segments.
        data: their bytes, line ends included.

    Returns:
        Words, and gaps; where segments are not lines, a NUL stands for the end of each.

    Example:
        >>> from lmgauge.text.documents import Corpus
        >>> words_and_gaps(next(iter(Corpus.from_strings(["a  b c"]))), b"")
        ([b'a', b'b', b'c'], [b'  ', b' ', b'\\x00', b''])
    """
    if not block.terminator:
        data = b"".join(block.text(i) + b"\0" for i in range(len(block)))
    words = [word for word in re.split(rb"[ \t\v\f\r\n\0]+", data) if word]
    gaps = _GAP.findall(data)
    return words, gaps + [b""] * len(_LETTER_FIRST.findall(data))


def _bytes_of(block: Segments) -> bytes:
    if block.terminator and len(block.data) == block.byte_count():
        return block.data.tobytes()
    end = b"\n" * block.terminator
    return b"".join(block.text(i) + end for i in range(len(block)))


def _compressors(size: int | None) -> dict[str, tuple[str, Any]]:
    """Return the compressors that are installed, by name: a description, and the compressor itself."""
    import bz2  # here, as every command would pay for them
    import lzma

    window = _LARGEST_DICTIONARY if size is None else min(max(size, _SMALLEST_DICTIONARY), _LARGEST_DICTIONARY)
    preset = 9 | lzma.PRESET_EXTREME
    filters = [{"id": lzma.FILTER_LZMA2, "preset": preset, "dict_size": window}]
    compressors: dict[str, tuple[str, Any]] = {
        "gzip -9": ("LZ77 and Huffman codes", zlib.compressobj(9, zlib.DEFLATED, 31)),
        "bzip2 -9": ("Burrows-Wheeler transform", bz2.BZ2Compressor(9)),
        "xz -9e": ("LZ77 and range coding", lzma.LZMACompressor(lzma.FORMAT_XZ, filters=filters)),
    }
    try:
        import zstandard
    except ImportError:
        return compressors
    parameters = zstandard.ZstdCompressor(level=19)
    compressors["zstd -19"] = ("LZ77 and finite-state entropy codes", parameters.compressobj())
    return compressors
