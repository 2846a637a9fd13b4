"""Text without case and punctuation, byte for byte as long as it was, so that places in it are places in the original.

Brown et al. (2020), "Language Models are Few-Shot Learners", appendix C, compare test and training text so.

>>> fold(np.frombuffer("“Don’t!” —É".encode(), np.uint8), np.zeros(1, np.int64)).tobytes().decode().split()
['dont', 'é']
"""

from __future__ import annotations

import string
import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lmgauge.text.segments import is_white_space

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
