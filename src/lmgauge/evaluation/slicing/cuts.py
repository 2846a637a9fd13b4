"""The ways to cut a text: by group, class, training frequency, position; of one run event by event, of two span by span.

All of them follow from the source text: what a range is, how often its word occurs in training, where it stands.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.slicing.span_alignment import Ints, Ranges, shared_ranges
from lmgauge.evaluation.slicing.sums import Cut
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments, is_character_start, is_white_space

Codes = NDArray[np.int64]

CLASSES = ("word", "number", "URL", "punctuation", "CJK", "other non-ASCII", "code symbol", "whitespace and line end")
WORD, NUMBER, URL, PUNCTUATION, CJK, OTHER, SYMBOL, WHITE = range(len(CLASSES))
_CODE_SYMBOLS = frozenset("{}[]<>=+*/\\|&^%$#@~`_")
# The part before an @ is looked for once, from where it begins: a word may have a million bytes.
_URL = re.compile(rb"(?:https?://|ftp://|www\.)[^\s<>\"]+|(?<![\w.+-])[\w.+-]++@[\w-]++\.[\w.-]+")
_CJK_NAMES = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "HALFWIDTH", "FULLWIDTH", "KANGXI")


def _class_of(character: str) -> int:
    if character in _CODE_SYMBOLS:
        return SYMBOL
    category = unicodedata.category(character)
    if character.isspace() or category in ("Cc", "Zs", "Zl", "Zp"):
        return WHITE
    if category[0] == "N" and (character.isascii() or category == "Nd"):
        return NUMBER
    if category[0] == "P" or (character.isascii() and category[0] == "S"):
        return PUNCTUATION
    if character.isascii():
        return WORD
    return CJK if unicodedata.name(character, "").startswith(_CJK_NAMES) else OTHER


def cut_by_group(block: Segments, ranges: Ranges, names: Sequence[str]) -> tuple[str, Sequence[str], Codes]:
    """Return the text cut by groups of segments; all are one group where the text has none.

    >>> from lmgauge.text.documents import Corpus
    >>> block = next(iter(Corpus.from_strings(["a 17"])))
    >>> ranges = Ranges(*np.array([[0, 0], [0, 1], [1, 4], [0, 1]]), (np.ones(2, np.int64),))
    >>> cut_by_group(block, ranges, [])[1]
    ['all']
    """
    # -> Name of the cut, labels, and int64 [ranges], the group of each range.
    of_segment = np.zeros(len(block), np.int64) if block.groups is None else block.groups.astype(np.int64)
    return "group", names or ["all"], of_segment[ranges.segment]


def byte_classes(block: Segments) -> NDArray[np.uint8]:
    """Return the class of the character (or the URL) that each byte belongs to."""
    # -> uint8 [bytes of the block], index into `CLASSES`.
    text = block.data.tobytes()
    points = np.frombuffer(text.decode("utf-8", "replace").encode("utf-32-le"), np.uint32)
    of_point = np.zeros(int(points.max(initial=0)) + 1, np.uint8)
    # A character is classified once, however often it comes: `unicodedata` is slow, and a text has few different ones.
    of_point[points] = 1
    distinct = np.flatnonzero(of_point)
    of_point[distinct] = [_class_of(chr(point)) for point in distinct.tolist()]
    classes = of_point[points]
    if len(points) < len(block.data):
        # `aé` in bytes: starts [1, 1, 0] -> characters [0, 1, 1]; so both bytes of é have its class.
        classes = classes[np.cumsum(is_character_start(block.data)) - 1]
    for match in _URL.finditer(text):
        classes[match.start() : match.end()] = URL
    return classes


def range_classes(block: Segments, ranges: Ranges) -> Codes:
    """Return int64 [ranges], index into `CLASSES`: the class that most bytes of a range are of."""
    # White space only if there is nothing else; ties go to the class named first.
    classes = byte_classes(block)
    starts, ends = _bytes_of(block, ranges)
    # Bytes of each class before every place of the text, looked up at both ends of each range.
    counts = np.empty((len(ranges), len(CLASSES)), np.int64)
    for code in range(len(CLASSES)):
        # classes [0, 1, 0] of code 0 -> before [0, 1, 1, 2]; a range of bytes 1 to 3 has before[3] - before[1] = 1 of them.
        before = np.concatenate(([0], np.cumsum(classes == code)))
        counts[:, code] = before[ends] - before[starts]
    counts[:, WHITE] = 0
    of_range: Codes = np.argmax(counts, axis=1)
    of_range[counts.max(axis=1) == 0] = WHITE
    return of_range


def _bytes_of(block: Segments, ranges: Ranges) -> tuple[Codes, Codes]:
    # Where ranges are in the block's bytes; line ends are left out.
    begin = block.starts[ranges.segment]
    return begin + np.minimum(ranges.starts, ranges.ends), begin + ranges.ends


def _letters(block: Segments) -> NDArray[np.bool_]:
    # Which bytes of the block are inside a segment and no white space.
    marks = np.zeros(len(block.data) + 1, np.int64)
    # +1 where a segment begins and -1 where it ends: segments [0, 2) and [3, 4) of 5 bytes -> inside [1, 1, 0, 1, 0]. An
    # empty segment adds nothing.
    np.add.at(marks, block.starts, 1)
    np.add.at(marks, block.ends, -1)
    inside: NDArray[np.bool_] = np.cumsum(marks[:-1]) > 0
    return inside & ~is_white_space(block.data)


def _word_starts(block: Segments) -> NDArray[np.bool_]:
    # Which bytes of the block are the first of a white-space word.
    letter = _letters(block)
    begins = letter.copy()
    # `a bc`: letters [1, 0, 1, 1] -> begins [1, 0, 1, 0]; a segment begins a word even where no space is before it.
    begins[1:] &= ~letter[:-1]
    starts = block.starts[block.starts < len(begins)]
    begins[starts] = letter[starts]
    return begins


def range_words(block: Segments, ranges: Ranges) -> Codes:
    """Return int64 [ranges], the number within the block of the white-space word that a range ends in or behind."""
    # It is -1 where the range has no byte of a word.
    begins = _word_starts(block)
    letter = _letters(block)
    # `a 17`: begins [1, 0, 1, 0] -> words [0, 0, 1, 1], so that the space belongs to the word before it; last letters [0,
    # 0, 2, 3]. The range ` 17` ends at byte 3, in word 1.
    word_of_byte = np.cumsum(begins) - 1
    last_letter = (
        np.maximum.accumulate(np.where(letter, np.arange(len(letter)), -1)) if len(letter) else np.zeros(0, np.int64)
    )
    starts, ends = _bytes_of(block, ranges)
    words = np.full(len(ranges), -1, np.int64)
    filled = ends > starts
    last = last_letter[ends[filled] - 1]
    words[filled] = np.where(last >= starts[filled], word_of_byte[last], -1)
    return words


FREQUENCY_BANDS = ("never", "once", "2 to 9", "10 to 99", "100 to 999", "1,000 to 9,999", "10,000 and more", "no word")


def frequency_bands(block_counts: NDArray[np.int64], words: Codes) -> Codes:
    """Return the band of training frequency of each range."""
    # block_counts: int64 [words of the block], how often each occurs in the training text; words: int64 [ranges], as
    # `range_words` numbers them.
    # -> int64 [ranges], index into `FREQUENCY_BANDS`.
    # [FREQUENCY_BANDS[code] for code in frequency_bands([0, 12], [1, 0, -1])] -> ['10 to 99', 'never', 'no word']
    # counts [0, 1, 2, 12, 10000] -> bands [0, 1, 2, 3, 6]
    bands = np.searchsorted([0, 1, 9, 99, 999, 9999], block_counts, side="left")
    codes: Codes = np.full(len(words), len(FREQUENCY_BANDS) - 1, np.int64)
    in_word = words >= 0
    codes[in_word] = bands[words[in_word]]
    return codes


POSITION_STARTS = (1, *((1 << power) + 1 for power in range(18)))
"""First position of each band, from 1: the bands double, up to 131,072 events."""


def band_labels(starts: Sequence[int]) -> tuple[str, ...]:
    """Return the names of the bands that begin at these numbers, the last without end."""
    # band_labels([1, 2, 5]) -> ('1', '2 to 4', '5 and on')
    labels = []
    for low, following in zip(starts, [*starts[1:], None], strict=True):
        if following is None:
            labels.append(f"{low:,} and on")
        else:
            labels.append(f"{low:,}" if following == low + 1 else f"{low:,} to {following - 1:,}")
    return tuple(labels)


def position_bands(position: Codes) -> Codes:
    """Return which of the bands of `POSITION_STARTS` each position falls into."""
    # position: int64 [n], of events in their segments, from 0.
    # -> int64 [n].
    # position_bands([0, 3, 600]) -> [0, 2, 10]
    bands: Codes = _bands_of_positions()[np.minimum(position, POSITION_STARTS[-1])]
    return bands


@cache
def _bands_of_positions() -> Codes:
    # Of all positions before the last band: looked up, as millions of events are.
    return np.searchsorted(np.array(POSITION_STARTS), np.arange(POSITION_STARTS[-1] + 1) + 1, side="right") - 1


def range_sizes(block: Segments | None, ranges: Ranges) -> Codes:
    """Return int64 [ranges, 3]: bytes, characters and words (by their first byte) of each range."""
    # The last range of a segment has its line end. Without the text bytes are those of the spans alone, the rest is 0.
    if block is None:
        return np.column_stack((ranges.ends - ranges.starts, np.zeros((len(ranges), 2), np.int64)))
    starts, ends = _bytes_of(block, ranges)
    counts = [ends - starts]
    for marks in (is_character_start(block.data), _word_starts(block)):
        before = np.concatenate(([0], np.cumsum(marks)))
        counts.append(before[ends] - before[starts])
    sizes = np.column_stack(counts)
    # The line end is a byte and a character, and no word.
    sizes[ranges.ends_segment(), :2] += block.terminator
    return sizes


TrainingWords = Callable[[Segments], tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]]

_KIND_LABELS = ("token", "unseen word (<unk>)", "</s>", "unseen word (spelled)", "framing of a turn")
_LONGEST_NGRAM = 16
CONTEXT_STARTS = (0, *POSITION_STARTS)


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
        bands = band_labels(POSITION_STARTS)
        yield "position in the segment (events)", bands, position_bands(ranges.position)
        lengths = position_bands(table.segment_events - 1)
        yield "length of the segment (events)", bands, lengths[ranges.segment]

    def of_spans(self, block: Segments | None, ranges: Ranges, *, spans: bool = True) -> Iterator[Cut]:
        """Yield ways to cut aligned spans: their name, their slices, and which slice each span is in."""
        yield from self._by_group(block, ranges)
        if not spans:
            return
        if block is not None:
            yield "class", CLASSES, range_classes(block, ranges)
        yield "position in the segment", band_labels(POSITION_STARTS), position_bands(ranges.position)
        counts = None if block is None else self.word_counts(block)
        if block is not None and counts is not None:
            yield "occurrences in training", FREQUENCY_BANDS, frequency_bands(counts, range_words(block, ranges))

    def _by_group(self, block: Segments | None, ranges: Ranges) -> Iterator[Cut]:
        if block is not None:
            yield cut_by_group(block, ranges, self.corpus.group_names if self.corpus else ())

    def word_counts(self, block: Segments) -> Ints | None:
        """Return how often each word of a block occurs in the training text, int64 [words]; None without one."""
        return None if self.training is None else np.asarray(self.training(block)[0], np.int64)

    def _by_context(self, context: Ints) -> Cut:
        # Events by the order that matched, or, where contexts are longer than orders are, by bands of them.
        if self.longest_context > _LONGEST_NGRAM:
            bands = np.searchsorted(np.array(CONTEXT_STARTS), context, side="right") - 1
            return "context used (tokens)", band_labels(CONTEXT_STARTS), bands
        return "matched order (context used)", [str(order) for order in range(int(context.max(initial=0)) + 1)], context

    def _by_text(self, block: Segments, table: ScoreBatch) -> Iterator[Cut]:
        # Events that share their last byte, as parts of a character may, are of one aligned span.
        spans = shared_ranges([table])
        # Spans of 1 and 2 events -> events [0, 1, 1]
        of_event = np.repeat(np.arange(len(spans)), spans.events[0])
        yield "class", CLASSES, range_classes(block, spans)[of_event]
        if self.training is None:
            return
        words = range_words(block, spans)
        counts, longest = (np.asarray(column, np.int64) for column in self.training(block))
        yield "occurrences in training", FREQUENCY_BANDS, frequency_bands(counts, words)[of_event]
        longest = np.minimum(longest, _LONGEST_NGRAM)
        self.watch(words, spans.segment, longest)
        codes = np.zeros(len(words), np.int64)
        # 0 stands for no word, 1 for an unseen one (its longest n-gram has 0 words), 2 for one that was seen alone.
        codes[words >= 0] = 1 + longest[words[words >= 0]]
        yield "longest n-gram seen in training", _SEEN_LABELS[: int(codes.max(initial=0)) + 1], codes[of_event]


_SEEN_LABELS = ("no word", "none: an unseen word", "the word alone", *(f"{n} words" for n in range(2, _LONGEST_NGRAM + 1)))
