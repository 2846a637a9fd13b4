"""The ways to cut a text: by group, class, training frequency, position; of one run event by event, of two span by span."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.slicing import slices as by
from lmgauge.evaluation.slicing.ranges import Ints, Ranges, shared_ranges
from lmgauge.evaluation.slicing.sums import Cut
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

TrainingWords = Callable[[Segments], tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]]

_KIND_LABELS = ("token", "unseen word (<unk>)", "</s>", "unseen word (spelled)")
_LONGEST_NGRAM = 16
CONTEXT_STARTS = (0, *by.POSITION_STARTS)


@dataclass(frozen=True)
class Cuts:
    """The ways to cut the events of one run, or the aligned spans of two."""

    corpus: Corpus | None  # the text, if it is at hand
    # of the words of a block how often each occurs in the training text, and the length of the longest n-gram of that text
    # that ends with it; None without a training text
    training: TrainingWords | None = None
    longest_context: int = 0  # the largest number in the table's column `context`
    # called with the words of the ranges of a block (see `range_words`), the segment of each range, and the longest n-gram
    # of each word
    watch: Callable[[Ints, Ints, Ints], None] = lambda words, segments, longest: None

    def of_events(self, block: Segments | None, table: ScoreBatch, ranges: Ranges, *, spans: bool) -> Iterator[Cut]:
        """Yield ways to cut the events of a block: their name, their slices, and which slice each event is in."""
        yield from self._by_group(block, ranges)
        if block is not None and spans:
            yield from self._by_text(block, table)
        yield "kind of event", _KIND_LABELS, table.kind.astype(np.int64)
        if "context" in table.extra:
            yield self._by_context(table.extra["context"].astype(np.int64))
        bands = by.band_labels(by.POSITION_STARTS)
        yield "position in the segment (events)", bands, by.position_bands(ranges.position)
        lengths = by.position_bands(table.segment_events - 1)
        yield "length of the segment (events)", bands, lengths[ranges.segment]

    def of_spans(self, block: Segments | None, ranges: Ranges, *, spans: bool = True) -> Iterator[Cut]:
        """Yield ways to cut aligned spans: their name, their slices, and which slice each span is in."""
        yield from self._by_group(block, ranges)
        if not spans:
            return
        if block is not None:
            yield "class", by.CLASSES, by.range_classes(block, ranges)
        yield "position in the segment", by.band_labels(by.POSITION_STARTS), by.position_bands(ranges.position)
        counts = None if block is None else self.word_counts(block)
        if block is not None and counts is not None:
            yield "occurrences in training", by.FREQUENCY_BANDS, by.frequency_bands(counts, by.range_words(block, ranges))

    def _by_group(self, block: Segments | None, ranges: Ranges) -> Iterator[Cut]:
        if block is not None:
            yield by.cut_by_group(block, ranges, self.corpus.group_names if self.corpus else ())

    def word_counts(self, block: Segments) -> Ints | None:
        """Return how often each word of a block occurs in the training text, int64 [words]; None without one."""
        return None if self.training is None else np.asarray(self.training(block)[0], np.int64)

    def _by_context(self, context: Ints) -> Cut:
        # Events by the order that matched, or, where contexts are longer than orders are, by bands of them.
        if self.longest_context > _LONGEST_NGRAM:
            bands = np.searchsorted(np.array(CONTEXT_STARTS), context, side="right") - 1
            return "context used (tokens)", by.band_labels(CONTEXT_STARTS), bands
        return "matched order (context used)", [str(order) for order in range(int(context.max(initial=0)) + 1)], context

    def _by_text(self, block: Segments, table: ScoreBatch) -> Iterator[Cut]:
        # Events that share their last byte, as parts of a character may, are of one aligned span.
        spans = shared_ranges([table])
        # Spans of 1 and 2 events -> events [0, 1, 1]
        of_event = np.repeat(np.arange(len(spans)), spans.events[0])
        yield "class", by.CLASSES, by.range_classes(block, spans)[of_event]
        if self.training is None:
            return
        words = by.range_words(block, spans)
        counts, longest = (np.asarray(column, np.int64) for column in self.training(block))
        yield "occurrences in training", by.FREQUENCY_BANDS, by.frequency_bands(counts, words)[of_event]
        longest = np.minimum(longest, _LONGEST_NGRAM)
        self.watch(words, spans.segment, longest)
        codes = np.zeros(len(words), np.int64)
        # 0 stands for no word, 1 for an unseen one (its longest n-gram has 0 words), 2 for one that was seen alone.
        codes[words >= 0] = 1 + longest[words[words >= 0]]
        yield "longest n-gram seen in training", _SEEN_LABELS[: int(codes.max(initial=0)) + 1], codes[of_event]


_SEEN_LABELS = ("no word", "none: an unseen word", "the word alone", *(f"{n} words" for n in range(2, _LONGEST_NGRAM + 1)))
