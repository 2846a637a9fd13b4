"""The longest runs of tokens that each position of a test text shares with a training text, exactly.

The test is held in memory as a suffix array, the training text passes by in blocks. "Matching statistics" is what the
literature calls what is computed: Chang & Lawler (1994), "Sublinear approximate string matching and biological
applications", section 3; here with the roles changed, so that memory depends on the test alone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError
from lmgauge.text.overlap.token_stream import EncodedBlock, Joints
from lmgauge.text.segments import Segments
from lmgauge.text.vocabulary import UNK

LARGEST = 2**31 - 2
_FILTER_BITS = 16  # per distinct n-gram: about one training n-gram in 16 that is not there passes the filter

Windows = tuple[int, NDArray[np.uint64], NDArray[np.uint64]]


class SuffixIndex:
    """All suffixes of a text's tokens in order."""

    def __init__(self, ids: NDArray[np.uint32], symbols: int, separator: int) -> None:
        if len(ids) > LARGEST:
            raise InputError(f"the test text has {len(ids):,} tokens, more than {LARGEST:,}: give it in parts")
        suffixes = _native.sort_suffixes(ids, symbols)
        ranks = np.empty(len(ids), np.int32)
        # `a b a` as ids [3, 4, 3]: suffixes in order are a, a b a, b a: suffixes [2, 0, 1] -> ranks [1, 2, 0]; common
        # prefixes of neighbors [0, 1, 0].
        ranks[suffixes] = np.arange(len(ids), dtype=np.int32)
        common = np.empty(len(ids), np.int32)
        _native.common_prefixes(ids, suffixes, ranks, common)
        self.arrays = ids, suffixes, ranks, common, _native.common_minima(common)
        self.separator = separator

    def first_places(self, n: int) -> NDArray[np.int32]:
        """Return int32 [distinct n-grams]: the place in suffix order of the first suffix of each (or of a shorter rest).

        >>> index = SuffixIndex(np.array([3, 4, 3, 4, 2], np.uint32), symbols=5, separator=2)
        >>> len(index.first_places(1)), index.whole_windows(3).tolist()
        (3, [True, True, False, False, False])
        """
        return np.flatnonzero(self.arrays[3] < n).astype(np.int32)

    def whole_windows(self, n: int) -> NDArray[np.bool_]:
        """Return bool [tokens]: True where n tokens follow one another from here on, without a separator."""
        # For n = 2 and the stream a b c | d | (separators at 3 and 5): aligned spans have 3 and 1 tokens, the first has
        # 3 - 2 + 1 = 2 windows, at 0 and 1, and the second none. `steps` is +1 at 0 and -1 at 2, and its running sum is the
        # answer: [T T F F F F].
        ids = self.arrays[0]
        separators = np.append(np.flatnonzero(ids == self.separator), len(ids))
        lengths = np.diff(separators, prepend=-1) - 1  # tokens before each separator that stand together
        long = lengths >= n
        steps = np.zeros(len(ids) + 1, np.int8)
        steps[(separators - lengths)[long]] = 1
        steps[(separators - n + 1)[long]] = -1
        return np.cumsum(steps[:-1], dtype=np.int8) > 0

    def windows(self, n: int) -> Windows:
        """Return the distinct n-grams of the text, for the kernels to look up."""
        size = max(64, len(self.first_places(n)))
        slots = np.zeros(1 << max(2 * size, len(self.arrays[0]) + 1).bit_length(), np.uint64)
        filter_words = np.zeros(1 << (size * _FILTER_BITS // 64).bit_length(), np.uint64)
        _native.index_windows(self.arrays, n, self.separator, slots, filter_words)
        return n, slots, filter_words


@dataclass(frozen=True)
class CommonRuns:
    """For each token of a test, the longest run of at least n tokens from there that the training text holds."""

    longest: NDArray[np.int32]  # int32 [tokens], its length in tokens; 0 if no run of n begins here
    begins: NDArray[np.int64]  # int64, positions where a run begins that is not just the rest of the one before, ascending
    # source, line, byte: of each of `begins`, a place of that run in the training text: index into `sources`, line (or
    # record) from 1, byte in it from 0. The earliest where the test holds the run once.
    source: NDArray[np.int32]
    line: NDArray[np.int64]
    byte: NDArray[np.int64]
    sources: list[str]


class Follower:
    """Reads a training text, block by block, beside a test."""

    def __init__(self, suffixes: SuffixIndex, n: int) -> None:
        self._suffixes, self._n = suffixes, n
        self._windows = suffixes.windows(n)
        size = len(suffixes.arrays[0])
        self._longest = np.zeros(size, np.int32)
        self._state = np.zeros(4, np.int64)
        self._tail = np.zeros(0, np.uint32)
        self._joints = Joints()
        # Zero pages cost no memory until a run is met there.
        self._source, self._line, self._byte = np.zeros(size, np.int32), np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.sources: list[str] = []
        self._blocks: deque[tuple[int, int, EncodedBlock]] = deque()  # first position, source, block: the latest

    def read(self, original: Segments, block: EncodedBlock) -> None:
        """Follow the next block; blocks come in order."""
        stream = block.stream
        begin = int(self._state[0])
        if self._joints.breaks_before(original):
            stream = np.concatenate((np.full(1, UNK, np.uint32), stream))
            # A token that no test has: no run goes on over a break, and positions count it.
            begin += 1
        if not self.sources or self.sources[-1] != original.source:
            self.sources.append(original.source)
        self._blocks.append((begin, len(self.sources) - 1, block))
        ids = np.concatenate((self._tail, stream))
        runs = _native.follow_text(self._suffixes.arrays, self._windows, ids, len(self._tail), self._longest, self._state)
        # The last n - 1 tokens: an n-gram may begin in this block and end in the next.
        self._tail = ids[len(ids) - min(len(ids), self._n - 1) :].copy()
        self._keep_places(runs.reshape(-1, 2))
        position, _, length, _ = self._state.tolist()
        # A run still open, or an n-gram not yet complete, may have begun in an earlier block: its place will be asked for.
        while len(self._blocks) > 1 and self._blocks[1][0] <= position - max(length, self._n - 1):
            self._blocks.popleft()

    def _keep_places(self, runs: NDArray[np.int64]) -> None:
        # Store where runs begin in the training text; int64 [n, 2], positions in the test and in the training stream.
        if not len(runs):
            return
        firsts = [first for first, _, _ in self._blocks]
        # firsts [0, 100], runs at 99 and 100 -> blocks [0, 1]
        owners = np.searchsorted(firsts, runs[:, 1], side="right") - 1
        for i in np.unique(owners).tolist():
            first, source, block = self._blocks[i]
            test, train = runs[owners == i].T
            segments, begins = block.places(train - first)
            self._source[test] = source
            self._byte[test] = begins
            self._line[test] = block.text.lines()[segments]

    def finish(self) -> CommonRuns:
        """Return the runs, once the training text was read to its end."""
        runs = _native.finish_following(self._suffixes.arrays, self._windows, self._longest, self._state)
        self._keep_places(runs.reshape(-1, 2))
        origin = np.arange(len(self._longest), dtype=np.int32)
        _native.spread_runs(self._suffixes.arrays, self._n, self._longest, origin)
        continued = np.zeros(len(self._longest), bool)
        # longest [0, 3, 2, 1, 3]: a run of 3 at 1, its rests, and a run at 4 -> begins [1, 4]; as long as the one before or
        # longer is a run of its own.
        continued[1:] = self._longest[1:] < self._longest[:-1]
        begins = np.flatnonzero((self._longest > 0) & ~continued)
        places = origin[begins]
        return CommonRuns(self._longest, begins, self._source[places], self._line[places], self._byte[places], self.sources)
