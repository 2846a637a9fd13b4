"""Find test text inside training text: common runs of tokens, whole duplicates, and where they are.

>>> from lmgauge.text.documents import Corpus
>>> train = Corpus.from_strings(["it was a bright cold day in April", "and the clocks were striking"])
>>> overlap = find_overlap(train, Corpus.from_strings(["they say it was a bright cold day in June"]), OverlapSettings(n=5))
>>> overlap.passages[0].length, overlap.passages[0].text, str(overlap.passages[0].train)
(7, 'it was a bright cold day in', '<strings>:1')
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.files import refuse_replacing, writing
from lmgauge.base.progress import say_progress
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.overlap.common_runs import CommonRuns, Follower, SuffixIndex
from lmgauge.text.overlap.duplicates import WholeDuplicates
from lmgauge.text.overlap.overlap_results import GroupOverlap, Overlap, Passage, Place
from lmgauge.text.overlap.overlap_settings import OverlapSettings
from lmgauge.text.overlap.token_stream import SEPARATOR, EncodedBlock, StreamEncoder, WholeText


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
