"""Where the white space of a text stands, and what is around it that says which it is.

Quotes and dashes that are not ASCII are classes of their own, and whether a straight quote is open is looked at, as this
lowered what white space costs. The lengths of the words beside it, and the separator two before, did not.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lmgauge.scores import EOS_KIND, ScoreBatch
from lmgauge.text.segments import UTF8_LENGTHS, Segments, is_white_space
from lmgauge.text.white_space import is_unicode_white_space, white_space_before

FIRST, INNER, LAST, EMPTY = range(4)
"""Where a separator stands: before the first token, between tokens, behind the last one, in a segment without tokens."""
PLACES, SIDES = 4, 64
AROUND = SIDES * SIDES * 2
"""How many contexts a place has: classes of the characters on both sides, within straight quotes and outside."""
_NO_SIDE, _LETTER, _DIGIT, _OTHER, _CLITIC, _UNSPACED, _OPENING, _CLOSING, _DASH, _MARK, _SYMBOL = range(11)
_NAMED = "".join(chr(byte) for byte in range(33, 127) if not chr(byte).isalnum()) + "«»‹›“”„‘’‚–—…¿¡"
"""Marks that are classes of their own."""
_BY_CATEGORY = {"Ps": _OPENING, "Pi": _OPENING, "Pe": _CLOSING, "Pf": _CLOSING, "Pd": _DASH, "Nd": _DIGIT}
_BY_MAJOR_CATEGORY = {"L": _LETTER, "M": _LETTER, "N": _DIGIT, "P": _MARK, "S": _SYMBOL}
_BEYOND = 1 << 16
_ASCII = 0x80
_UNSPACED_SCRIPTS = ((0x0E00, 0x0F00), (0x1000, 0x10A0), (0x1780, 0x1800), (0x2E80, 0xAC00), (0xF900, 0xFB00))
"""Code points of scripts that do without spaces: Thai, Lao; Burmese; Khmer; kana, Han."""


@cache
def character_classes() -> NDArray[np.int64]:
    """Return the class of each character, int64 [65537] by code point; the last is that of all beyond."""
    classes = np.full(_BEYOND + 1, _OTHER, np.int64)
    for code_point in range(_BEYOND):
        category = unicodedata.category(chr(code_point))
        classes[code_point] = _BY_CATEGORY.get(category) or _BY_MAJOR_CATEGORY.get(category[0], _OTHER)
    for begin, end in _UNSPACED_SCRIPTS:
        some = classes[begin:end]
        some[some == _LETTER] = _UNSPACED
    for i, character in enumerate(_NAMED):
        classes[ord(character)] = _SYMBOL + 1 + i
    assert classes.max() < SIDES
    return classes


def _classes_at(data: NDArray[np.uint8], at: NDArray[np.int64], *, divided: bool) -> NDArray[np.int64]:
    """Return the class of the character that each position is in, int64 [positions].

    Args:
        data: uint8 [bytes], at least one.
        at: int64 [positions], each of any byte of the character.
        divided: True if all characters that are not ASCII are of one class.
    """
    if divided:
        return np.where(data[at] < _ASCII, character_classes()[data[at]], _OTHER)
    begin = at.copy()
    for _ in range(3):
        begin -= (data[begin] & 0xC0) == 0x80
    first = data[begin].astype(np.int64)
    code_points = first.copy()
    lengths = UTF8_LENGTHS[first]
    for length in (2, 3):
        some = np.flatnonzero(lengths == length)
        value = first[some] & (0x7F >> length)
        for i in range(1, length):
            value = value << 6 | (data[begin[some] + i] & 0x3F)
        code_points[some] = value
    code_points[lengths > 3] = _BEYOND
    classes: NDArray[np.int64] = character_classes()[code_points]
    return classes


@dataclass(frozen=True)
class Separators:
    """Where the separators of some rows are, and what they are predicted from.

    Attributes:
        place: int64 [rows], FIRST, INNER, LAST or EMPTY.
        around: int64 [rows], as `around` gives it.
        begins: int64 [rows], where each begins in the data of the block.
        lengths: int64 [rows], bytes of each.
        follows: bool [rows], True where another separator of the same segment comes before it.
        scored: bool [rows], False where all of it is in text that is given before the segment.
    """

    place: NDArray[np.int64]
    around: NDArray[np.int64]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]
    follows: NDArray[np.bool_]
    scored: NDArray[np.bool_]

    @classmethod
    def of_rows(cls, block: Segments, batch: ScoreBatch, *, divided: bool) -> Separators:
        """Find the separators of the rows of a block.

        Args:
            block: the text.
            batch: its rows, with spans.
            divided: True if ASCII white space, and nothing else, divides tokens (see `SeparatorModel`).
        """
        owner = np.repeat(batch.segments - block.first, batch.segment_events)
        at = block.starts[owner]
        begins, ends = at + batch.starts(), at + batch.ends
        lengths = white_space_before(block, begins, ends, unicode=not divided)
        first = np.ones(len(owner), bool)
        first[1:] = owner[1:] != owner[:-1]
        behind = ~first
        scored = np.ones(len(owner), bool)
        data = block.data
        if block.given_starts is not None:
            behind |= block.given_lengths()[owner] > 0
            white = is_white_space(data) if divided else is_unicode_white_space(data)
            scored = ~(first & behind & (lengths == 0) & white[np.maximum(begins - 1, 0)])
            if batch.before is not None:
                scored[first] &= ~batch.before.crossing[batch.segment_events > 0]
        is_end = batch.kind == EOS_KIND
        place = np.where(is_end, np.where(behind, LAST, EMPTY), np.where(behind, INNER, FIRST)).astype(np.int64)
        around = np.zeros(len(owner), np.int64)
        if len(data):
            before = np.maximum(begins - 1, 0)
            left = np.where(behind, _classes_at(data, before, divided=divided), _NO_SIDE)
            right = 0 if divided else np.where(is_end, _NO_SIDE, _classes_ahead(data, begins + lengths, ends))
            quotes = np.concatenate(([0], np.cumsum(data == ord('"'))))
            from_start = quotes[begins] - quotes[(at if block.given_starts is None else block.given_starts[owner])]
            around = (left * SIDES + right) * 2 + (0 if divided else from_start % 2)
        return cls(place, around, begins, lengths, ~first, scored)

    def text(self, block: Segments, row: int) -> str:
        """Return a separator.

        Args:
            block: the text.
            row: its number.
        """
        begin = int(self.begins[row])
        return block.data[begin : begin + int(self.lengths[row])].tobytes().decode()


def _classes_ahead(data: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the class of the character that each token begins with; that of `n't` is one of its own."""
    last = len(data) - 1
    first = np.minimum(begins, last)
    classes = np.where(begins < ends, _classes_at(data, first, divided=False), _NO_SIDE)
    clitic = (data[first] == ord("n")) & (data[np.minimum(begins + 1, last)] == ord("'")) & (ends - begins == len("n't"))
    return np.where(clitic, _CLITIC, classes)


def around(left: bytes, right: bytes, *, quoted: bool, divided: bool) -> int:
    """Return what is around a separator, in one number.

    Args:
        left: what is before it in its segment, the last character at least; empty if nothing is.
        right: the token behind it; empty at the end of the segment.
        quoted: True if the number of `"` before it in its segment is odd.
        divided: as `Separators.of_rows` has it.
    """
    side = _NO_SIDE
    if left:
        side = int(_classes_at(np.frombuffer(left, np.uint8), np.array([len(left) - 1]), divided=divided)[0])
    if divided:
        return side * SIDES * 2
    ahead = _NO_SIDE
    if right:
        ahead = int(_classes_ahead(np.frombuffer(right, np.uint8), np.array([0]), np.array([len(right)]))[0])
    return (side * SIDES + ahead) * 2 + quoted
