"""Segments of a test text that are segments of a training text, byte for byte."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.text.overlap.token_stream import WholeText
from lmgauge.text.segments import Segments


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
