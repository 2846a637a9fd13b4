"""Where the white space of a text stands, and what is around it that says which it is."""

# Quotes and dashes that are not ASCII are classes of their own, and whether a straight quote is open is looked at, as this
# lowered what white space costs. The lengths of the words beside it, and the separator two before, did not.

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

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
_LONGEST = 4  # bytes of a character in UTF-8
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


def _class_of(character: str, *, divided: bool) -> int:
    # Class of a character; all that are not ASCII are of one where white space divides tokens.
    if not character or (divided and not character.isascii()):
        return _OTHER
    return int(character_classes()[min(ord(character), _BEYOND)])


def around(left: bytes, right: bytes, *, quoted: bool, divided: bool) -> int:
    """Return what is around a separator, in one number."""
    side = _class_of(left[-_LONGEST:].decode(errors="ignore")[-1:], divided=divided) if left else _NO_SIDE
    if divided:
        return side * SIDES * 2
    ahead = _class_of(right[:_LONGEST].decode(errors="ignore")[:1], divided=False) if right else _NO_SIDE
    if right.startswith(b"n'") and len(right) == len("n't"):
        ahead = _CLITIC
    return (side * SIDES + ahead) * 2 + quoted
