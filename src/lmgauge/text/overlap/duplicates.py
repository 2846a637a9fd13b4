"""Segments of a test text that are segments of a training text, byte for byte or nearly.

Near ones are proposed by MinHash and decided by exact counting. Two segments are near duplicates if their sets of shingles
(n-grams within the segment) have a Jaccard index |A & B| / |A | B| of at least t: Broder (1997), "On the
resemblance and containment of documents". It implies that at least the share t of the shingles of either is in the other,
and therefore in the other text: a count that is cheap and leaves out nearly all segments before any is hashed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import MissingExtraError
from lmgauge.text.documents import Corpus
from lmgauge.text.overlap.common_runs import SuffixIndex, Windows
from lmgauge.text.overlap.token_stream import EncodedBlock, StreamEncoder, WholeText
from lmgauge.text.segments import Segments
from lmgauge.text.vocabulary import EOS

SHINGLE = {"word": 5, "character": 10}
"""Tokens of a shingle, by unit; shorter segments are not compared."""

SHOWN_BYTES = 2000
"""Of a pair's segments this much is kept to be shown."""

_HASHES = 128
# Pairs exactly at the threshold are proposed with at least this probability, by the choice of bands and rows.
_RECALL = 0.999
_BATCH_SEGMENTS = 20_000
_BATCH_BYTES = 1 << 26
_ROUNDING = 1e-9
_NOTHING = np.zeros(0, np.uint8)


class WholeDuplicates:
    """Looks up training segments among those of a test that have a token: by hash, then byte by byte."""

    def __init__(self, test: WholeText) -> None:
        self._test = test
        self.matches = np.zeros(len(test), bool)
        hashes = np.concatenate([hash_segments(text) for text in test.compared_blocks()])
        segments = np.flatnonzero(~test.blank())
        self._segments = segments[np.argsort(hashes[segments], kind="stable")]
        self._hashes = hashes[self._segments]

    def candidates(self, text: Segments) -> NDArray[np.int64]:
        """Return the segments of a block that have the hash of a test segment, int64 [n]; may run in several threads."""
        hashes = hash_segments(text)
        if not len(self._hashes):
            return np.zeros(0, np.int64)
        # A hash above all others would be looked up behind the end.
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return np.flatnonzero(self._hashes[places] == hashes)

    def add(self, text: Segments, candidates: NDArray[np.int64]) -> None:
        """Mark the test segments that are equal to one of the candidates of a block; blocks come in order."""
        if not len(candidates):
            return
        hashes = hash_segments(text)[candidates]
        different = dict(zip(map(text.text, candidates.tolist()), hashes.tolist(), strict=True))
        of_each = np.array(list(different.values()), np.uint64)
        firsts = np.searchsorted(self._hashes, of_each)
        ends = np.searchsorted(self._hashes, of_each, side="right")
        for own, first, end in zip(different, firsts.tolist(), ends.tolist(), strict=True):
            for segment in self._segments[first:end][~self.matches[self._segments[first:end]]].tolist():
                if self._test.compared(segment) == own:
                    self.matches[segment] = True


def hash_segments(text: Segments) -> NDArray[np.uint64]:
    """Return a 64-bit hash of the bytes of each segment, terminators excluded, uint64 [segments]."""
    hashes = np.empty(len(text), np.uint64)
    _native.hash_segments(text.data, text.starts, text.ends, hashes)
    return hashes


@dataclass(frozen=True)
class NearPair:
    """A test segment and the training segment most like it."""

    segment: int
    source: str  # source, line: file and line (or record) of the training segment
    line: int
    jaccard: float  # of the two sets of shingles, exact
    text: str  # the training segment, as compared; an ellipsis where it was cut
    order: int  # number of the training segment; of equally good ones the first is kept

    def is_better(self, other: NearPair | None) -> bool:
        """Return True if this pair is to be kept, and not another of the same test segment."""
        return other is None or (self.jaccard, -self.order) > (other.jaccard, -other.order)


def shingles(text: bytes, unit: str) -> frozenset[bytes]:
    """Return the shingles of a segment; none if it is too short."""
    n = SHINGLE[unit]
    if unit == "word":
        words = text.split()
        return frozenset(b" ".join(words[i : i + n]) for i in range(len(words) - n + 1))
    characters = "".join(text.decode().split())
    return frozenset(characters[i : i + n].encode() for i in range(len(characters) - n + 1))


def choose_bands(threshold: float, hashes: int = _HASHES, recall: float = _RECALL) -> tuple[int, int]:
    """Return how many bands of how many rows propose a pair at the threshold with probability `recall` or more."""
    # A pair of Jaccard index s agrees in some band with probability 1 - (1 - s^rows)^bands (Leskovec, Rajaraman & Ullman,
    # "Mining of Massive Datasets", section 3.4.2). As many rows as possible: fewer pairs to look at. At least two bands, as
    # datasketch asks for.
    # t = 0.8: 9 rows in 14 bands propose 1 - (1 - 0.8^9)^14 = 87 %, which is too few; 5 rows in 25 bands 99.995 %.
    for rows in range(hashes // 2, 0, -1):
        bands = hashes // rows
        if 1 - (1 - threshold**rows) ** bands >= recall:
            return bands, rows
    return hashes, 1


def _shown(text: bytes) -> str:
    return text[:SHOWN_BYTES].decode(errors="ignore") + ("…" if len(text) > SHOWN_BYTES else "")


class NearDuplicates:
    """Collects training segments that may be near duplicates of a test segment, and compares them batch by batch."""

    def __init__(self, test: WholeText, suffixes: SuffixIndex, encoder: StreamEncoder, threshold: float) -> None:
        self._test, self._suffixes, self._encoder, self._threshold = test, suffixes, encoder, threshold
        self.windows: Windows = suffixes.windows(SHINGLE[encoder.unit])
        self._batch: dict[bytes, tuple[str, int, int]] = {}
        self._batch_bytes = 0
        self._left_out = np.zeros(len(test), bool)
        self.best: dict[int, NearPair] = {}
        self._hashed: dict[int, tuple[Any, frozenset[bytes]]] = {}
        self.missing = ""

    def candidates(self, block: EncodedBlock) -> NDArray[np.int64]:
        """Return the segments of a block that have enough shingles of the test, int64 [n]; may run in several threads."""
        return np.flatnonzero(self._count(block))

    def _count(
        self, block: EncodedBlock, *, only: NDArray[np.uint8] = _NOTHING, met: NDArray[np.uint8] = _NOTHING
    ) -> NDArray[np.bool_]:
        # Which segments of a block have enough shingles of the test (of those set in `only`); set those in `met`.
        known, unknown = np.zeros(len(block.text), np.int32), np.zeros(len(block.text), np.int32)
        _native.count_shingles(self._suffixes.arrays, self.windows, block.ids, EOS, known, unknown, only, met)
        # A & B| / |A | B| >= t implies |A & B| >= t |A|: 7 of 10 shingles are too few for t = 0.8.
        return (known > 0) & (known >= self._threshold * (known + unknown) - _ROUNDING)

    def add(self, block: EncodedBlock, segments: NDArray[np.int64], whole_duplicates: NDArray[np.bool_]) -> None:
        """Take up candidates of a block; blocks come in order."""
        # segments: int64, which of its segments; whole_duplicates: bool [test segments], those known by now to be training
        # segments byte for byte; kept, not copied. They need no comparison.
        self._left_out = whole_duplicates
        if self.missing:
            return
        for i in segments.tolist():
            text = block.text.text(i)
            if text in self._batch:
                continue
            self._batch[text] = (block.text.source, block.text.line(i), block.text.first + i)
            self._batch_bytes += len(text)
            if len(self._batch) >= _BATCH_SEGMENTS or self._batch_bytes >= _BATCH_BYTES:
                self.compare()

    def finish(self, whole_duplicates: NDArray[np.bool_]) -> list[NearPair]:
        """Return the pairs found, by test segment; whole duplicates are not among them."""
        # whole_duplicates: bool [test segments].
        self.compare()
        return [pair for segment, pair in sorted(self.best.items()) if not whole_duplicates[segment]]

    def compare(self) -> None:
        """Compare the candidates that wait for more of them."""
        batch, self._batch, self._batch_bytes = self._batch, {}, 0
        possible = self._possible(batch) if batch else np.zeros(0, np.int64)
        if not len(possible) or self.missing:
            return
        try:
            from datasketch import MinHash, MinHashLSH
        except ImportError:
            self.missing = str(MissingExtraError("datasketch", extra="overlap"))
            return
        unit = self._encoder.unit
        empty = MinHash(num_perm=_HASHES, seed=1)

        def hashed(grams: frozenset[bytes]) -> Any:
            made = empty.copy()  # copying saves drawing the permutations again
            made.update_batch(grams)
            return made

        index = MinHashLSH(num_perm=_HASHES, params=choose_bands(self._threshold))
        for segment in possible.tolist():
            if segment not in self._hashed:
                grams = shingles(self._test.compared(segment), unit)
                self._hashed[segment] = hashed(grams), grams
            index.insert(segment, self._hashed[segment][0])
        for text, (source, line, order) in batch.items():
            grams = shingles(text, unit)
            for segment in index.query(hashed(grams)):
                other = self._hashed[segment][1]
                jaccard = len(grams & other) / len(grams | other)
                pair = NearPair(segment, source, line, jaccard, _shown(text), order)
                if jaccard >= self._threshold - _ROUNDING and pair.is_better(self.best.get(segment)):
                    self.best[segment] = pair

    def _possible(self, batch: dict[bytes, tuple[str, int, int]]) -> NDArray[np.int64]:
        # Test segments of which enough shingles are in the batch.
        met = np.zeros(len(self._suffixes.arrays[0]), np.uint8)
        # Candidates were folded already, and folding twice changes nothing.
        for block in Corpus.from_strings(text.decode() for text in batch):
            self._count(self._encoder(block), met=met)
        enough = np.concatenate([self._count(self._encoder(block), only=met) for block in self._test.blocks()])
        return np.flatnonzero(enough & ~self._left_out)
