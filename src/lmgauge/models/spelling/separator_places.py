"""Where the white space of a text stands, and what is around it that says which it is.

Quotes and dashes that are not ASCII are classes of their own, and whether a straight quote is open is looked at, as this
lowered what white space costs. The lengths of the words beside it, and the separator two before, did not.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lmgauge.text.segments import UTF8_LENGTHS

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
        divided: as `SeparatorModel` has it.

    Example:
        >>> around(b"the", b"cat", quoted=False, divided=False) == around(b"a", b"dog", quoted=False, divided=False)
        True
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
