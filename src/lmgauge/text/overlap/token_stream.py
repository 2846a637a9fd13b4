"""Text as one stream of tokens that runs on across line ends, with the place of each token in its file.

Text may be compared without case and punctuation, byte for byte as long as it was, so that places in it are places in the
original, as Brown et al. (2020), "Language Models are Few-Shot Learners", appendix C, compare test and training text.

>>> fold(np.frombuffer("“Don’t!” —É".encode(), np.uint8), np.zeros(1, np.int64)).tobytes().decode().split()
['dont', 'é']
"""

# Another edition of a text breaks its lines elsewhere, so runs of tokens are followed across the lines of a text file; they
# end where a file, a record or a document ends.

from __future__ import annotations

import string
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import OverlapUnit
from lmgauge.base.errors import InputError
from lmgauge.text.documents import Corpus, Segments
from lmgauge.text.encoding import encode
from lmgauge.text.segments import is_character_start, is_white_space
from lmgauge.text.tokenizers import CharacterTokenizer, WhitespaceTokenizer
from lmgauge.text.tokens import Tokenizer
from lmgauge.text.vocabulary import EOS, UNK, Vocabulary, VocabularyBuilder

_SPACE, _APOSTROPHE = ord(" "), ord("'")
_APOSTROPHES = (_APOSTROPHE, 0x2018, 0x2019)
# Above these planes there is neither punctuation nor case worth a larger table.
_TABLE_SIZE = 0x20000


def fold(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return text in lower case, its punctuation, symbols and special spaces as spaces."""
    # An apostrophe inside a word is taken out, and the word filled up with spaces at its end: "don't" becomes "dont ".
    # Letters whose lower case has another length in UTF-8 (such as the capital sharp s) stay as they are.
    # data: uint8 [bytes], valid UTF-8; starts: int64 [segments], where segments begin; no word goes across.
    # -> uint8 [bytes], valid UTF-8. Every word begins at the byte where it began.
    folded = _ascii_table()[data]
    leads = np.flatnonzero(data >= 0xC2)
    if len(leads):
        _fold_characters(folded, leads)
    _join_at_apostrophes(folded, starts)
    return folded


@cache
def _ascii_table() -> NDArray[np.uint8]:
    table = np.arange(256, dtype=np.uint8)
    for code in range(128):
        if chr(code) in string.punctuation and code != _APOSTROPHE:
            table[code] = _SPACE
        else:
            table[code] = ord(chr(code).lower())
    return table


@cache
def _table() -> NDArray[np.uint32]:
    # What each code point becomes: a space, an apostrophe, its lower case, or itself.
    table = np.arange(_TABLE_SIZE, dtype=np.uint32)
    for code in range(0x80, _TABLE_SIZE):
        character = chr(code)
        kind = unicodedata.category(character)[0]
        if code in _APOSTROPHES:
            table[code] = _APOSTROPHE
        elif kind in "PSZ":
            table[code] = _SPACE
        elif kind == "L":
            lower = character.lower()
            if len(lower) == 1 and len(lower.encode()) == len(character.encode()):
                table[code] = ord(lower)
    return table


def _fold_characters(folded: NDArray[np.uint8], leads: NDArray[np.int64]) -> None:
    # Fold the characters that begin at `leads` and are longer than a byte, in place.
    first = folded[leads]
    lengths = 2 + (first >= 0xE0).astype(np.int64) + (first >= 0xF0)
    for length, mask in ((2, 0x1F), (3, 0x0F), (4, 0x07)):
        places = leads[lengths == length]
        codes = folded[places].astype(np.uint32) & mask
        for i in range(1, length):
            codes = codes << 6 | folded[places + i] & 0x3F
        table = _table()
        becomes = np.where(codes < _TABLE_SIZE, table[np.minimum(codes, _TABLE_SIZE - 1)], codes)
        plain = becomes < 0x80
        for i in range(length):
            folded[places[plain] + i] = becomes[plain]
        cased = (becomes != codes) & ~plain
        for i in range(length - 1, 0, -1):
            folded[places[cased] + i] = 0x80 | becomes[cased] & 0x3F
            becomes >>= 6
        folded[places[cased]] = becomes[cased] | (0xF00 >> length) & 0xFF


def _join_at_apostrophes(folded: NDArray[np.uint8], starts: NDArray[np.int64]) -> None:
    # Close the gap where apostrophes stand inside a word; make all others spaces.
    marks = np.flatnonzero(folded == _APOSTROPHE)
    if not len(marks):
        return
    border = np.zeros(len(folded) + 1, bool)
    border[starts] = True
    word = ~is_white_space(folded)
    letter = word & (folded != _APOSTROPHE)
    # The nearest byte to the left and right of each run of apostrophes must be part of the same word.
    run_begins = np.concatenate(([True], (np.diff(marks) > 1) | border[marks[1:]]))
    runs = np.cumsum(run_begins) - 1
    left = marks[run_begins] - 1
    right = marks[np.concatenate((run_begins[1:], [True]))] + 1
    inside = (left >= 0) & (right < len(folded))
    inside &= letter[np.maximum(left, 0)] & letter[np.minimum(right, len(folded) - 1)]
    inside &= ~border[left + 1] & ~border[right]
    inner = inside[runs]
    folded[marks[~inner]] = _SPACE
    word[marks[~inner]] = False
    if inner.any():
        _close_gaps(folded, word, border, marks[inner])


def _close_gaps(
    folded: NDArray[np.uint8], word: NDArray[np.bool_], border: NDArray[np.bool_], gaps: NDArray[np.int64]
) -> None:
    # Move the bytes of each word together over its `gaps`; spaces fill its end.
    first = word & np.concatenate(([True], ~word[:-1] | border[1:-1]))
    begins = np.flatnonzero(first)
    ends = np.flatnonzero(word & np.concatenate((first[1:] | ~word[1:], [True]))) + 1
    owners = np.unique(np.searchsorted(begins, gaps, side="right") - 1)
    lengths = (ends - begins)[owners]
    total = int(lengths.sum())
    before = np.cumsum(lengths) - lengths
    places = np.arange(total) - np.repeat(before, lengths) + np.repeat(begins[owners], lengths)
    gone = np.zeros(total, bool)
    gone[np.searchsorted(places, gaps)] = True
    passed = np.cumsum(gone)
    shift = passed - np.repeat(passed[before] - gone[before], lengths)
    values = folded[places]
    folded[places] = _SPACE
    folded[(places - shift)[~gone]] = values[~gone]


# The characters that Python's str.isspace knows; all are below this one.
_SPACES = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())


@dataclass(frozen=True)
class EncodedBlock:
    """A block of text as tokens."""

    text: Segments  # the segments as compared, folded if asked for; the bytes stand where they stood
    ids: NDArray[np.uint32]  # uint32 [tokens], each segment closed by `EOS`; white space is none of them
    span_ends: NDArray[np.int64]  # int64 [tokens], one past the last byte of each token in its segment
    unit: str

    @cached_property
    def stream(self) -> NDArray[np.uint32]:
        """Return uint32 [n]: the ids without line ends; where a record ends, `UNK`, which no test has."""
        if self.text.terminator:
            words: NDArray[np.uint32] = self.ids[self.ids != EOS]
            return words
        return np.where(self.ids == EOS, np.uint32(UNK), self.ids)

    def places(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where tokens begin."""
        # positions: int64 [n], positions in `stream`.
        # -> int64 [n] each: index of the segment in the block, and byte in it.
        tokens = np.flatnonzero(self.ids != EOS)[positions] if self.text.terminator else positions
        return self.token_places(tokens)

    def token_places(self, tokens: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the segment and first byte in it, int64 [n] each, of tokens given by their position in `ids`."""
        segments = np.searchsorted(np.flatnonzero(self.ids == EOS), tokens)
        starts = self.text.starts[segments]
        if self.unit == "character":
            begins = starts + self.span_ends[tokens] - 1
            while len(behind := np.flatnonzero(~is_character_start(self.text.data[begins]))):
                begins[behind] -= 1
        else:
            follows = (tokens > 0) & (self.ids[tokens - 1] != EOS)
            begins = starts + np.where(follows, self.span_ends[tokens - 1], 0)
            letters = np.flatnonzero(~is_white_space(self.text.data))
            begins = letters[np.searchsorted(letters, begins)]
        return segments, begins - starts


class StreamEncoder:
    """Turns blocks of text into tokens: those of a test are learned, all others are compared with them."""

    def __init__(self, unit: OverlapUnit, *, folded: bool) -> None:
        self.unit, self.folded = unit, folded
        self.tokenizer: Tokenizer = WhitespaceTokenizer() if unit == "word" else CharacterTokenizer()
        self.vocabulary: Vocabulary | VocabularyBuilder = VocabularyBuilder()
        self._skipped = np.zeros(0, bool)
        if unit == "character":
            for block in Corpus.from_strings([_SPACES]):
                spaces = encode(block, self.tokenizer, self.vocabulary, bos=False, reserved="escape").ids
                self._skipped = np.zeros(int(spaces.max()) + 1, bool)
                self._skipped[spaces[spaces != EOS]] = True

    def finish(self) -> int:
        """Close the vocabulary, so that from now on tokens that it does not have are `UNK`, and return its size."""
        if isinstance(self.vocabulary, VocabularyBuilder):
            self.vocabulary = self.vocabulary.finish()
        return len(self.vocabulary)

    def __call__(self, block: Segments) -> EncodedBlock:
        # Block of text as tokens; in several threads only after `finish`.
        text = replace(block, data=fold(block.data, block.starts)) if self.folded else block
        encoded = encode(text, self.tokenizer, self.vocabulary, bos=False, reserved="escape", spans=True)
        ids, spans = encoded.ids, encoded.span_ends
        if len(self._skipped):
            tokens = ~self._skipped[np.minimum(ids, len(self._skipped) - 1)] | (ids >= len(self._skipped))
            ids, spans = ids[tokens], spans[tokens]
        return EncodedBlock(text, ids, spans, self.unit)


class Joints:
    """Finds where the stream breaks before a block: at the beginning of each file, and around records."""

    def __init__(self) -> None:
        self._before: Segments | None = None

    def breaks_before(self, block: Segments) -> bool:
        """Return True if nothing runs on from the blocks before into this one; to be asked of each block in order."""
        before, self._before = self._before, block
        if before is None or not len(before) or not len(block):
            return before is not None
        if not (before.terminator and block.terminator) or before.source != block.source:
            return True
        return block.line(0) <= before.line(len(before) - 1)  # the same file again


# -- A text held in memory: its bytes, its tokens, and the place of each ----------------------------------------------

SEPARATOR = EOS
_EXCERPT = 300
_LONG_WORD = 20
_SHORT_WORD = 6
# First and last code points of scripts that set no spaces between words: Thai and Lao, Myanmar, Khmer, kana, Han.
_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


class WholeText:
    """The segments of a corpus as one array of bytes and one stream of tokens, `SEPARATOR` where it breaks."""

    def __init__(self, corpus: Corpus, encoder: StreamEncoder) -> None:
        # Read a corpus to its end; its tokens enter the encoder's vocabulary.
        self._blocks: list[tuple[int, Segments, Segments]] = []
        ids: list[NDArray[np.uint32]] = []
        token_starts: list[NDArray[Any]] = []
        token_ends: list[NDArray[Any]] = []
        joints, begin, last = Joints(), 0, SEPARATOR
        for original in (block.alone() for block in corpus):
            block = encoder(original)
            if joints.breaks_before(original) and last != SEPARATOR:
                _append_separator(ids, token_starts, token_ends, begin)
            places = _token_bytes(block, original, folded=encoder.folded)
            inside = np.ones(len(block.ids), bool) if not original.terminator else block.ids != EOS
            ids.append(block.ids[inside])
            last = int(ids[-1][-1]) if len(ids[-1]) else last
            token_starts.append(places[0][inside] + begin)
            token_ends.append(places[1][inside] + begin)
            self._blocks.append((begin, block.text, original))
            begin += len(original.data)
        if not self._blocks:
            raise InputError("the test text is empty: is it the right file?")
        if last != SEPARATOR or not any(map(len, ids)):
            _append_separator(ids, token_starts, token_ends, begin)
        self.ids = np.concatenate(ids)
        narrow = np.int32 if begin < 2**31 else np.int64
        self.token_starts = np.concatenate(token_starts, dtype=narrow)
        self.token_ends = np.concatenate(token_ends, dtype=narrow)
        self._keep_segments(corpus)
        self.folded = encoder.folded

    def _keep_segments(self, corpus: Corpus) -> None:
        originals = [(begin, original) for begin, _, original in self._blocks]
        self.starts = np.concatenate([original.starts + begin for begin, original in originals])
        self.ends = np.concatenate([original.ends + begin for begin, original in originals])
        self.terminators = np.concatenate([np.full(len(o), o.terminator, np.int64) for _, o in originals])
        self.lines = np.concatenate([original.lines() for _, original in originals])
        self.groups = np.concatenate([np.zeros(len(o), np.int32) if o.groups is None else o.groups for _, o in originals])
        self.sources = list(dict.fromkeys(o.source for _, o in originals))
        self.source_codes = np.concatenate([np.full(len(o), self.sources.index(o.source), np.int32) for _, o in originals])
        self.group_names = list(corpus.group_names) or ["all"]
        self.records = not self.terminators.all()
        self.bytes = int((self.ends - self.starts + self.terminators).sum())
        self.sha256 = corpus.report.sha256
        self._firsts = [original.first for _, original in originals]

    def __len__(self) -> int:
        return len(self.starts)

    def blocks(self) -> Iterator[Segments]:
        """Yield the segments as they were read."""
        yield from (original for _, _, original in self._blocks)

    def compared_blocks(self) -> Iterator[Segments]:
        """Yield the segments as they are compared: folded, if that was asked for."""
        yield from (text for _, text, _ in self._blocks)

    def compared(self, segment: int) -> bytes:
        """Return a segment as it is compared."""
        owner = bisect_right(self._firsts, segment) - 1
        return self._blocks[owner][1].text(segment - self._firsts[owner])

    def text(self, begin: int, end: int, limit: int = _EXCERPT) -> str:
        """Return bytes of the whole text as a string, cut after about `limit` bytes (an ellipsis says so)."""
        stop = min(end, begin + limit)
        pieces = []
        for first, _, original in self._blocks:
            if first < stop and begin < first + len(original.data):
                pieces.append(original.data[max(begin - first, 0) : stop - first].tobytes())
        return b"".join(pieces).decode(errors="ignore") + ("…" if stop < end else "")

    def has_no_spaces(self) -> bool:
        """Return True if the pieces between white space are mostly phrases or sentences, not words."""
        # That is where they are longer than 20 code points on average, or where they are longer than 6 and most code points
        # are of scripts that set no spaces between words (such text with spaces put in, as for segmentation, has words of
        # about 2 to 4).
        words = int(np.count_nonzero(self.ids != SEPARATOR))
        unspaced = characters = 0
        for block in self.blocks():
            codes = np.frombuffer(block.data.tobytes().decode(errors="ignore").encode("utf-32-le"), np.uint32)
            codes = codes[codes > ord(" ")]
            characters += len(codes)
            codes = codes[codes >= _UNSPACED[0][0]]
            unspaced += sum(int(np.count_nonzero((codes >= first) & (codes <= last))) for first, last in _UNSPACED)
        return characters > _LONG_WORD * words or (characters > _SHORT_WORD * words and 2 * unspaced > characters)

    def token_segments(self) -> NDArray[np.int32]:
        """int32 [tokens]: the segment of each; of a separator, the one that begins there or the last."""
        steps = np.zeros(len(self.ids) + 1, np.int32)
        # Segments begin with a token, or where the next one does; empty records begin where it does, too.
        np.add.at(steps, np.searchsorted(self.token_starts, self.starts), 1)
        return np.cumsum(steps[:-1], dtype=np.int32) - 1

    def blank(self) -> NDArray[np.bool_]:
        """Return bool [segments]: whether there is no token in it."""
        blank = np.ones(len(self), bool)
        blank[self.token_segments()[self.ids != SEPARATOR]] = False
        return blank


def _append_separator(
    ids: list[NDArray[np.uint32]], starts: list[NDArray[Any]], ends: list[NDArray[Any]], byte: int
) -> None:
    ids.append(np.full(1, SEPARATOR, np.uint32))
    starts.append(np.full(1, byte, np.int64))
    ends.append(np.full(1, byte, np.int64))


def _token_bytes(block: EncodedBlock, original: Segments, *, folded: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # First and one past the last byte, in the block's data, of each token; `EOS` stands where its segment ends.
    closes = block.ids == EOS
    segments = np.cumsum(closes) - closes
    starts, ends = original.starts[segments], original.starts[segments] + block.span_ends
    tokens = np.flatnonzero(~closes)
    ends[closes] = original.ends[segments[closes]]
    begins = ends.copy()
    begins[tokens] = block.token_places(tokens)[1] + starts[tokens]
    if folded and len(begins):
        # What folding took away behind a word is still part of it, up to white space or the next word.
        following = np.append(begins[1:], original.ends[-1])
        white = np.append(np.flatnonzero(is_white_space(original.data)), len(original.data))
        ends = np.maximum(ends, np.minimum(following, white[np.searchsorted(white, ends)]))
    return begins, ends
