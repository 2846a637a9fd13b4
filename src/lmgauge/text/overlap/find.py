"""Find test text inside training text: common runs of tokens, whole duplicates, and where they are.

The test is held in memory as a suffix array, the training text passes by in blocks. "Matching statistics" is what the
literature calls what is computed: Chang & Lawler (1994), "Sublinear approximate string matching and biological
applications", section 3; here with the roles changed, so that memory depends on the test alone.

>>> from lmgauge.text.documents import Corpus
>>> train = Corpus.from_strings(["it was a bright cold day in April", "and the clocks were striking"])
>>> overlap = find_overlap(train, Corpus.from_strings(["they say it was a bright cold day in June"]), OverlapSettings(n=5))
>>> overlap.passages[0].length, overlap.passages[0].text, str(overlap.passages[0].train)
(7, 'it was a bright cold day in', '<strings>:1')
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError
from lmgauge.base.files import refuse_replacing, writing
from lmgauge.base.progress import say_progress
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.text.documents import Corpus
from lmgauge.text.overlap.overlap_results import GroupOverlap, Overlap, Passage, Place
from lmgauge.text.overlap.overlap_settings import OverlapSettings
from lmgauge.text.overlap.token_stream import SEPARATOR, EncodedBlock, Joints, StreamEncoder, WholeText
from lmgauge.text.segments import Segments
from lmgauge.text.vocabulary import UNK

LARGEST = 2**31 - 2
_FILTER_BITS = 16  # per distinct n-gram: about one training n-gram in 16 that is not there passes the filter

Windows = tuple[int, NDArray[np.uint64], NDArray[np.uint64]]


# -- The longest runs of tokens that each position of a test text shares with a training text, exactly ------------------
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


# -- Segments of a test text that are segments of a training text, byte for byte ---------------------------------------
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


# -- Both together --------------------------------------------------------------------------------------------------------
def find_overlap(
    train: Corpus, test: Corpus, settings: OverlapSettings | None = None, *, threads: int | None = None
) -> Overlap:
    """Find what of a test text is in a training text."""
    # The test is held in memory (about 80 bytes a token), the training text is read once, block by block. N-grams run on
    # across the lines of a text file, but not across files, records or documents.
    # threads: number of threads; no result depends on it.
    settings = settings or OverlapSettings()
    encoder = StreamEncoder(settings.overlap_unit, folded=settings.fold)
    whole = WholeText(test, encoder)
    suffixes = SuffixIndex(whole.ids, encoder.finish(), SEPARATOR)
    follower, duplicates = Follower(suffixes, settings.shortest), WholeDuplicates(whole)

    def prepare(original: Segments) -> tuple[Segments, EncodedBlock, NDArray[np.int64]]:
        block = encoder(original.alone())
        block.stream  # noqa: B018 - made here, in the thread
        return original, block, duplicates.candidates(block.text)

    done = tokens = 0
    for original, block, equal in map_in_order(prepare, train, thread_count(threads)):
        follower.read(original, block)
        duplicates.add(block.text, equal)
        done += original.byte_count()
        tokens += len(block.ids) - len(original)
        say_progress(f"read {done / 1e6:,.0f} MB of training text")
    if not tokens:
        raise InputError(f"the training text has no {settings.overlap_unit}s: is it the right file?")
    matches = _Matches(whole, suffixes, follower.finish(), duplicates.matches, settings)
    unspaced = settings.overlap_unit == "word" and whole.has_no_spaces()
    notes = [f"{name}: {line}" for name, text in (("training text", train), ("test", test)) for line in text.report.notes()]
    return Overlap(
        unit=settings.overlap_unit,
        n=settings.shortest,
        fold=settings.fold,
        unspaced=unspaced,
        train_bytes=train.report.bytes,
        train_segments=train.report.segments,
        train_sha256=train.report.sha256,
        notes=(*notes, *comparison_notes(settings, unspaced=unspaced, ngrams=int(matches.windows.sum()))),
        **matches.counts(),
    )


class _Matches:
    """The parts of a test text that the training text has, counted over segments, bytes and groups."""

    def __init__(
        self,
        test: WholeText,
        suffixes: SuffixIndex,
        runs: CommonRuns,
        duplicate: NDArray[np.bool_],
        settings: OverlapSettings,
    ) -> None:
        self.test, self.runs, self.duplicate, self.settings = test, runs, duplicate, settings
        n = settings.shortest
        positions = np.arange(len(test.ids), dtype=np.int32)
        self.windows = suffixes.whole_windows(n) & (test.ids != SEPARATOR)
        self.seen = runs.longest > 0
        firsts = suffixes.arrays[1][suffixes.first_places(n)]
        self.distinct = firsts[self.windows[firsts]]
        # One past the last token of the runs that begin here or before. For n = 2 and the test "a b c d e", of which the
        # training text has "b c d": longest = [0 3 2 0 0], reach = [0 4 4 4 4], and tokens 1, 2, 3 lie in the run.
        reach = np.maximum.accumulate(np.where(self.seen, positions + runs.longest, 0))
        self.in_run = reach > positions
        self.token_segments = test.token_segments()
        self.contaminated = duplicate.copy()
        self.contaminated[self.token_segments[self.in_run]] = True
        self.sizes = test.ends - test.starts + test.terminators
        self.ngram_bytes = self._bytes_of(self.in_run, reach > positions + 1)
        self.contaminated_bytes = self._contaminated_bytes()

    def _contaminated_bytes(self) -> NDArray[np.int64]:
        # int64 [segments]: bytes of runs and whole duplicates together, and of the white space between words of either.
        test, duplicate = self.test, self.duplicate
        words = test.ids != SEPARATOR
        inside = self.in_run | (duplicate[self.token_segments] & words)
        counts = self._bytes_of(inside, inside & np.append(inside[1:], False))
        # Blank segments lie between the words around them, even where records keep those apart. `behind` is the first word
        # after a blank segment, so around[behind] is the word before it: for words [in, out, in], around = [T, T, F, T, T],
        # and a blank segment after the first word (behind = 1) has around[1] = T before it and around[2] = F behind it.
        behind = np.searchsorted(test.token_starts[words], test.starts)
        around = np.concatenate(([True], inside[words], [True]))
        enclosed = test.blank() & around[behind] & around[behind + 1] & inside.any()
        return np.where(duplicate | enclosed, self.sizes, counts)

    def _bytes_of(self, inside: NDArray[np.bool_], joined: NDArray[np.bool_]) -> NDArray[np.int64]:
        # How many bytes of each segment lie in some of its tokens, and in the white space that joins them.
        # For "ab cd ef" and inside = [T T F], joined = [T F F] there is one span, bytes 0 to 5: "ab cd".
        # inside: bool [tokens], which tokens; joined: bool [tokens], tokens whose white space up to the next one counts,
        # too.
        # -> int64 [segments].
        test = self.test
        first = np.flatnonzero(inside & ~np.concatenate(([False], joined[:-1])))
        last = np.flatnonzero(inside & ~joined)
        if not len(first):
            return np.zeros(len(test), np.int64)
        begins: NDArray[np.int64] = test.token_starts[first].astype(np.int64)
        ends: NDArray[np.int64] = test.token_ends[last].astype(np.int64)
        # White space around the first and last token of a file or record has no word on its other side.
        before = np.maximum(first - 1, 0)
        at_begin = (first == 0) | (test.ids[before] == SEPARATOR)
        begins = np.where(at_begin, np.where(first == 0, 0, test.token_starts[before]), begins)
        ends = np.where(test.ids[last + 1] == SEPARATOR, test.token_starts[last + 1], ends)
        # Bytes of all spans up to a place: with spans 0-5 and 9-12, up_to = [0 5 8]; byte 10 lies in the second span, so
        # that 8 minus the 2 bytes behind it are covered before byte 10.
        up_to = np.concatenate(([0], np.cumsum(ends - begins)))

        def covered_before(places: NDArray[np.int64]) -> NDArray[np.int64]:
            span = np.searchsorted(begins, places, side="right")
            over = np.maximum(ends[np.maximum(span - 1, 0)] - places, 0)
            return np.where(span > 0, up_to[span] - over, 0)

        return covered_before(test.ends + test.terminators) - covered_before(test.starts)

    def counts(self) -> dict[str, Any]:
        test = self.test
        return {
            "segments": len(test),
            "blank_segments": int(test.blank().sum()),
            "contaminated_segments": int(self.contaminated.sum()),
            "whole_duplicates": int(self.duplicate.sum()),
            "duplicate_bytes": int(self.sizes[self.duplicate].sum()),
            "tokens": int((test.ids != SEPARATOR).sum()),
            "contaminated_tokens": int(self.in_run.sum()),
            "bytes": test.bytes,
            "contaminated_bytes": int(self.contaminated_bytes.sum()),
            "ngram_bytes": int(self.ngram_bytes.sum()),
            "ngrams": int(self.windows.sum()),
            "seen_ngrams": int(self.seen.sum()),
            "distinct_ngrams": len(self.distinct),
            "seen_distinct_ngrams": int(self.seen[self.distinct].sum()),
            "longest_run": int(self.runs.longest.max(initial=0)),
            "passage_count": len(self.runs.begins),
            "passages": self._passages(self.settings.passages),
            "groups": self._groups(),
            "test_sha256": test.sha256,
            "segment_contaminated": self.contaminated,
            "segment_duplicate": self.duplicate,
            "segment_contaminated_bytes": self.contaminated_bytes,
            "segment_ngram_bytes": self.ngram_bytes,
            "text": test,
        }

    def _passages(self, limit: int) -> list[Passage]:
        runs, test = self.runs, self.test
        lengths = runs.longest[runs.begins]
        passages = []
        for i in np.argsort(-lengths, kind="stable")[:limit].tolist():
            first = int(runs.begins[i])
            begin, end = int(test.token_starts[first]), int(test.token_ends[first + int(lengths[i]) - 1])
            train = Place(runs.sources[runs.source[i]], int(runs.line[i]), int(runs.byte[i]))
            segment = int(self.token_segments[first])
            passages.append(
                Passage(
                    test=self._place(segment, begin - int(test.starts[segment])),
                    train=train,
                    length=int(lengths[i]),
                    bytes=end - begin,
                    segment=segment,
                    text=test.text(begin, end),
                )
            )
        return passages

    def _place(self, segment: int, byte: int) -> Place:
        return Place(self.test.sources[self.test.source_codes[segment]], int(self.test.lines[segment]), byte)

    def _groups(self) -> list[GroupOverlap]:
        test = self.test
        count = max(len(test.group_names), int(test.groups.max()) + 1)
        of_token = test.groups[self.token_segments]

        def per_group(codes: NDArray[np.int32], weights: NDArray[np.int64] | None = None) -> list[int]:
            # Sums of bytes below 2^53 are exact in float64.
            return [int(value) for value in np.bincount(codes, weights, count)]

        columns = zip(
            test.group_names,
            per_group(test.groups),
            per_group(test.groups[self.contaminated]),
            per_group(test.groups[self.duplicate]),
            per_group(test.groups, self.sizes),
            per_group(test.groups, self.contaminated_bytes),
            per_group(test.groups, self.ngram_bytes),
            per_group(of_token[self.windows]),
            per_group(of_token[self.seen]),
            strict=False,
        )
        return [GroupOverlap(*row) for row in columns]


def comparison_notes(settings: OverlapSettings, *, unspaced: bool, ngrams: int) -> Iterator[str]:
    """Yield what is wrong with comparing this test in n-grams of this kind."""
    if unspaced:
        yield "most of the text has no spaces between words: --overlap-unit character compares it"
    if not ngrams:
        run = f"{settings.shortest:,} {settings.overlap_unit}s"
        yield f"no run of {run} fits in the test: only whole duplicates were searched for"


def write_clean(overlap: Overlap, path: str | os.PathLike[str]) -> int:
    """Write the test text without contaminated segments."""
    # Lines stay lines; records and documents become JSON lines {"text": ...}, as they may hold newlines. Blank lines stay.
    test, target = overlap.text, Path(path)
    refuse_replacing({"the clean test": target}, test.sources)
    clean = ~overlap.segment_contaminated
    with writing(target) as file:
        for block in test.blocks():
            chosen = clean[block.first : block.first + len(block)]
            file.write(block.as_lines(chosen, records=test.records))
    return int(clean.sum())
