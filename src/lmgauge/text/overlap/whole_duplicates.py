"""Segments of a test text that are, byte for byte, segments of a training text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.text.overlap.whole_text import WholeText
from lmgauge.text.segments import Segments


class WholeDuplicates:
    """Looks up training segments among those of a test that have a token: by hash, then byte by byte.

    Attributes:
        matches: bool [test segments], those that the training text has, as far as it was read.
    """

    def __init__(self, test: WholeText) -> None:
        self._test = test
        self.matches = np.zeros(len(test), bool)
        hashes = np.concatenate([hash_segments(text) for text in test.compared_blocks()])
        segments = np.flatnonzero(~test.blank())
        self._segments = segments[np.argsort(hashes[segments], kind="stable")]
        self._hashes = hashes[self._segments]

    def candidates(self, text: Segments) -> NDArray[np.int64]:
        """Return which segments of a block have the hash of a test segment; may run in several threads."""
        hashes = hash_segments(text)
        if not len(self._hashes):
            return np.zeros(0, np.int64)
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return np.flatnonzero(self._hashes[places] == hashes)

    def add(self, text: Segments, candidates: NDArray[np.int64]) -> None:
        """Mark the test segments that are equal to one of the candidates of a block; blocks come in order."""
        if not len(candidates):
            return
        hashes = hash_segments(text)[candidates]
        firsts = np.searchsorted(self._hashes, hashes)
        ends = np.searchsorted(self._hashes, hashes, side="right")
        for i, first, end in zip(candidates.tolist(), firsts.tolist(), ends.tolist(), strict=True):
            for segment in self._segments[first:end][~self.matches[self._segments[first:end]]].tolist():
                if self._test.compared(segment) == text.text(i):
                    self.matches[segment] = True


def hash_segments(text: Segments) -> NDArray[np.uint64]:
    """Return a 64-bit hash of the bytes of each segment, terminators excluded, uint64 [segments].

    Args:
        text: the segments.

    Example:
        >>> from lmgauge.text.documents import Corpus
        >>> hashes = hash_segments(next(iter(Corpus.from_strings(["the cat", "sat", "the cat"]))))
        >>> len(set(hashes.tolist()))
        2
    """
    hashes = np.empty(len(text), np.uint64)
    _native.hash_segments(text.data, text.starts, text.ends, hashes)
    return hashes
