"""How much of a test text is in a training text: common runs of tokens, whole and near duplicates, and where they are.

>>> from lmgauge.text.documents import Corpus
>>> train = Corpus.from_strings(["it was a bright cold day in April", "and the clocks were striking"])
>>> overlap = find_overlap(train, Corpus.from_strings(["they say it was a bright cold day in June"]), n=5)
>>> overlap.passages[0].length, overlap.passages[0].text, str(overlap.passages[0].train)
(7, 'it was a bright cold day in', '<strings>:1')
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import OverlapUnit
from lmgauge.errors import InputError, UsageError
from lmgauge.files import refuse_replacing, writing
from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.overlap.common_runs import CommonRuns, Follower, SuffixIndex
from lmgauge.text.overlap.near_duplicates import SHINGLE, SHOWN_BYTES, NearDuplicates, NearPair
from lmgauge.text.overlap.notes import comparison_notes, has_no_spaces
from lmgauge.text.overlap.results import GroupOverlap, NearDuplicate, Overlap, Passage, Place
from lmgauge.text.overlap.token_stream import EncodedBlock, StreamEncoder
from lmgauge.text.overlap.whole_duplicates import WholeDuplicates
from lmgauge.text.overlap.whole_text import SEPARATOR, WholeText
from lmgauge.threads import map_in_order, thread_count

DEFAULT_N = {"word": 13, "character": 25}
"""Shortest runs that count: 13 words are what Brown et al. (2020), appendix C, take; 25 characters are about as much text
where words are not spaced."""
DEFAULT_NEAR = 0.8
DEFAULT_PASSAGES = 100
_MAX_N = 10_000
_NO_SEGMENTS = np.zeros(0, np.int64)


def find_overlap(
    train: Corpus,
    test: Corpus,
    *,
    unit: OverlapUnit = "word",
    n: int | None = None,
    near: float = DEFAULT_NEAR,
    fold: bool = False,
    passages: int = DEFAULT_PASSAGES,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Overlap:
    """Find what of a test text is in a training text.

    The test is held in memory (about 80 bytes a token), the training text is read once, block by block. N-grams run on
    across the lines of a text file, but not across files, records or documents.

    Args:
        train: the training text.
        test: the test text.
        unit: what n-grams are made of: "word", runs of bytes that are not ASCII white space, or "character", code points
            that are no white space, for scripts that do not space words.
        n: the shortest run of tokens that counts; 13 words or 25 characters if not given.
        near: Jaccard index from which on two segments are near duplicates; 0 looks for none.
        fold: whether case, punctuation and symbols are ignored.
        passages: how many of the longest passages, and of the most alike near duplicates, to keep.
        threads: how many; no result depends on it.
        progress: called with the bytes of training text read so far.

    Raises:
        InputError: the test is empty, the training text has no token, or a text cannot be read.
        UsageError: an option is out of range.
    """
    shortest = _check(unit, n, near, passages)
    encoder = StreamEncoder(unit, folded=fold)
    whole = WholeText(test, encoder)
    symbols = encoder.finish()
    suffixes = SuffixIndex(whole.ids, symbols, SEPARATOR)
    follower, duplicates = Follower(suffixes, shortest), WholeDuplicates(whole)
    near_duplicates = NearDuplicates(whole, suffixes, encoder, near) if near else None

    def prepare(original: Segments) -> tuple[Segments, EncodedBlock, NDArray[np.int64], NDArray[np.int64]]:
        block = encoder(original)
        block.stream  # noqa: B018 - made here, in the thread
        alike = near_duplicates.candidates(block) if near_duplicates else _NO_SEGMENTS
        return original, block, duplicates.candidates(block.text), alike

    done = segments = tokens = 0
    for original, block, equal, alike in map_in_order(prepare, train, thread_count(threads)):
        follower.read(original, block)
        duplicates.add(block.text, equal)
        if near_duplicates:
            near_duplicates.add(block, alike, duplicates.found)
        done += original.byte_count()
        segments += len(original)
        tokens += len(block.ids) - len(original)
        progress(done)
    if not tokens:
        raise InputError(f"the training text has no {unit}s: is it the right file?")
    pairs = near_duplicates.finish() if near_duplicates else []
    found = _Found(whole, suffixes, follower.finish(), duplicates, pairs, shortest)
    unspaced = unit == "word" and has_no_spaces(whole)
    return found.result(
        unit=unit,
        fold=fold,
        near=near,
        near_note=near_duplicates.missing if near_duplicates else "not asked for",
        passages=passages,
        unspaced=unspaced,
        train_bytes=done,
        train_segments=segments,
        train_sha256=train.report.sha256,
        notes=[
            *(f"training text: {line}" for line in train.report.notes()),
            *(f"test: {line}" for line in test.report.notes()),
            *comparison_notes(unspaced=unspaced, unit=unit, n=shortest, ngrams=int(found.windows.sum()), near=near > 0),
        ],
    )


def _check(unit: str, n: int | None, near: float, passages: int) -> int:
    shortest = DEFAULT_N.get(unit, 1) if n is None else n
    if not 1 <= shortest <= _MAX_N:
        raise UsageError(f"n: {shortest} is no length of n-grams; give 1 to {_MAX_N:,}")
    if not 0 <= near <= 1:
        raise UsageError(f"near: {near} is no Jaccard index; give one above 0 and at most 1, or 0 to look for none")
    if passages < 0:
        raise UsageError(f"passages: {passages} is negative; give 0 or more")
    return shortest


class _Found:
    """What was found, turned into counts over segments, bytes and groups."""

    def __init__(
        self,
        test: WholeText,
        suffixes: SuffixIndex,
        runs: CommonRuns,
        duplicates: WholeDuplicates,
        pairs: list[NearPair],
        n: int,
    ) -> None:
        self.test, self.runs, self.duplicates, self.pairs, self.n = test, runs, duplicates, pairs, n
        positions = np.arange(len(test.ids), dtype=np.int32)
        self.windows = suffixes.whole_windows(n) & (test.ids != SEPARATOR)
        self.seen = runs.longest > 0
        firsts = suffixes.arrays[1][suffixes.first_places(n)]
        self.distinct = firsts[self.windows[firsts]]
        # One past the last token of the runs that begin here or before.
        self.reach = np.maximum.accumulate(np.where(self.seen, positions + runs.longest, 0))
        self.in_run = self.reach > positions
        self.token_segments = test.token_segments()
        self.by_runs = np.zeros(len(test), bool)
        self.by_runs[self.token_segments[self.in_run]] = True
        self.sizes = test.ends - test.starts + test.terminators
        self.ngram_bytes = self._bytes_of(self.in_run, self.reach > positions + 1)
        self.contaminated_bytes = self._contaminated_bytes()

    def _contaminated_bytes(self) -> NDArray[np.int64]:
        """int64 [segments]: bytes of runs and whole duplicates together, and of the white space between words of either."""
        test, duplicate = self.test, self.duplicates.found
        words = test.ids != SEPARATOR
        contaminated = self.in_run | (duplicate[self.token_segments] & words)
        taken = self._bytes_of(contaminated, contaminated & np.append(contaminated[1:], False))
        # Blank segments lie between the words around them, even where records keep those apart.
        behind = np.searchsorted(test.token_starts[words], test.starts)
        around = np.concatenate(([True], contaminated[words], [True]))
        enclosed = test.blank() & around[behind] & around[behind + 1] & contaminated.any()
        return np.where(duplicate | enclosed, self.sizes, taken)

    def _bytes_of(self, taken: NDArray[np.bool_], joined: NDArray[np.bool_]) -> NDArray[np.int64]:
        """int64 [segments]: bytes of the tokens that are taken, and of the white space behind those joined to the next."""
        test = self.test
        first = np.flatnonzero(taken & ~np.concatenate(([False], joined[:-1])))
        last = np.flatnonzero(taken & ~joined)
        if not len(first):
            return np.zeros(len(test), np.int64)
        begins: NDArray[np.int64] = test.token_starts[first].astype(np.int64)
        ends: NDArray[np.int64] = test.token_ends[last].astype(np.int64)
        # White space around the first and last token of a file or record has no word on its other side.
        before = np.maximum(first - 1, 0)
        at_begin = (first == 0) | (test.ids[before] == SEPARATOR)
        begins = np.where(at_begin, np.where(first == 0, 0, test.token_starts[before]), begins)
        ends = np.where(test.ids[last + 1] == SEPARATOR, test.token_starts[last + 1], ends)
        up_to = np.concatenate(([0], np.cumsum(ends - begins)))

        def covered_before(bytes_: NDArray[np.int64]) -> NDArray[np.int64]:
            run = np.searchsorted(begins, bytes_, side="right")
            open_run = np.maximum(run - 1, 0)
            over = np.maximum(ends[open_run] - bytes_, 0)
            covered: NDArray[np.int64] = np.where(run > 0, up_to[run] - over, 0)
            return covered

        return covered_before(test.ends + test.terminators) - covered_before(test.starts)

    def result(
        self,
        *,
        unit: str,
        fold: bool,
        near: float,
        near_note: str,
        passages: int,
        unspaced: bool,
        train_bytes: int,
        train_segments: int,
        train_sha256: str,
        notes: list[str],
    ) -> Overlap:
        """The result, given what it has to tell besides."""
        test, duplicate = self.test, self.duplicates.found
        near_segments = np.zeros(len(test), bool)
        near_segments[[pair.segment for pair in self.pairs]] = True
        contaminated = self.by_runs | duplicate
        return Overlap(
            unit=unit,
            n=self.n,
            fold=fold,
            segments=len(test),
            blank_segments=int(test.blank().sum()),
            contaminated_segments=int(contaminated.sum()),
            whole_duplicates=int(duplicate.sum()),
            duplicate_bytes=int(self.sizes[duplicate].sum()),
            near=near,
            near_duplicates=None if near_note else len(self.pairs),
            near_note=near_note,
            tokens=int((test.ids != SEPARATOR).sum()),
            contaminated_tokens=int(self.in_run.sum()),
            bytes=test.bytes,
            contaminated_bytes=int(self.contaminated_bytes.sum()),
            ngram_bytes=int(self.ngram_bytes.sum()),
            ngrams=int(self.windows.sum()),
            seen_ngrams=int(self.seen.sum()),
            distinct_ngrams=len(self.distinct),
            seen_distinct_ngrams=int(self.seen[self.distinct].sum()),
            longest_run=int(self.runs.longest.max(initial=0)),
            passage_count=len(self.runs.begins),
            passages=self._passages(passages),
            near_pairs=self._near_pairs(passages, unit),
            groups=self._groups(contaminated),
            unspaced=unspaced,
            train_bytes=train_bytes,
            train_segments=train_segments,
            train_sha256=train_sha256,
            test_sha256=test.sha256,
            notes=tuple(notes),
            segment_contaminated=contaminated,
            segment_duplicate=duplicate,
            segment_near=near_segments,
            segment_contaminated_bytes=self.contaminated_bytes,
            segment_ngram_bytes=self.ngram_bytes,
            text=test,
        )

    def _passages(self, limit: int) -> list[Passage]:
        runs, test = self.runs, self.test
        lengths = runs.longest[runs.begins]
        found = []
        for i in np.argsort(-lengths, kind="stable")[:limit].tolist():
            first = int(runs.begins[i])
            begin, end = int(test.token_starts[first]), int(test.token_ends[first + int(lengths[i]) - 1])
            train = Place(runs.sources[runs.source[i]], int(runs.line[i]), int(runs.byte[i]))
            segment = int(self.token_segments[first])
            found.append(
                Passage(
                    test=self._place(segment, begin - int(test.starts[segment])),
                    train=train,
                    length=int(lengths[i]),
                    bytes=end - begin,
                    segment=segment,
                    text=test.text(begin, end),
                )
            )
        return found

    def _place(self, segment: int, byte: int = 0) -> Place:
        return Place(self.test.sources[self.test.source_codes[segment]], int(self.test.lines[segment]), byte)

    def _near_pairs(self, limit: int, unit: str) -> list[NearDuplicate]:
        test = self.test
        return [
            NearDuplicate(
                test=self._place(pair.segment),
                train=Place(pair.source, pair.line, 0),
                jaccard=pair.jaccard,
                shingle=SHINGLE[unit],
                segment=pair.segment,
                text=test.text(int(test.starts[pair.segment]), int(test.ends[pair.segment]), SHOWN_BYTES),
                train_text=pair.text,
            )
            for pair in sorted(self.pairs, key=lambda pair: (-pair.jaccard, pair.segment))[:limit]
        ]

    def _groups(self, contaminated: NDArray[np.bool_]) -> list[GroupOverlap]:
        test = self.test
        count = max(len(test.group_names), int(test.groups.max()) + 1)
        of_token = test.groups[self.token_segments]

        def per_group(codes: NDArray[np.int32], weights: NDArray[np.int64] | None = None) -> list[int]:
            # Sums of bytes below 2^53 are exact in float64.
            return [int(value) for value in np.bincount(codes, weights, count)]

        columns = zip(
            test.group_names,
            per_group(test.groups),
            per_group(test.groups[contaminated]),
            per_group(test.groups[self.duplicates.found]),
            per_group(test.groups, self.sizes),
            per_group(test.groups, self.contaminated_bytes),
            per_group(test.groups, self.ngram_bytes),
            per_group(of_token[self.windows]),
            per_group(of_token[self.seen]),
            strict=False,
        )
        return [GroupOverlap(*row) for row in columns]


def write_clean(overlap: Overlap, path: str | os.PathLike[str]) -> int:
    """Write the test text without the contaminated segments and without near duplicates.

    Lines stay lines; records and documents become JSON lines {"text": ...}, as they may hold newlines. Blank lines stay.

    Args:
        overlap: what was found.
        path: the file, which appears when it is complete.

    Returns:
        How many segments were written.

    Raises:
        UsageError: the file is one of the test's own.
        OutputError: the file cannot be written.
    """
    test, target = overlap.text, Path(path)
    refuse_replacing({"the clean test": target}, test.sources)
    clean = ~overlap.segment_excluded
    with writing(target) as file:
        for block in test.blocks():
            kept = clean[block.first : block.first + len(block)]
            if test.records:
                texts = (block.text(i).decode() for i in np.flatnonzero(kept).tolist())
                file.write("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts).encode())
            else:
                file.write(block.data[np.repeat(kept, block.ends - block.starts + 1)].tobytes())
    return int(clean.sum())
