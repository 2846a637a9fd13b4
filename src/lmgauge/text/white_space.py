"""White space between tokens: which characters it is made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lmgauge.text.segments import is_white_space

BETWEEN_WORDS = " \t\n\v\f\r"
"""ASCII white space, which no token of a tokenizer of words has in it."""
WHITE_SPACE = (
    f"{BETWEEN_WORDS}\x1c\x1d\x1e\x1f\x85\xa0\u1680{''.join(map(chr, range(0x2000, 0x200B)))}\u2028\u2029\u202f\u205f\u3000"
)
"""All characters of white space in Unicode, which some tokenizers drop between words."""
_ASCII = 0x80


_LONGER = tuple(character.encode() for character in WHITE_SPACE if len(character.encode()) > 1)


def is_unicode_white_space(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which bytes are of white space, as `WHITE_SPACE` has it."""
    # data: uint8 [bytes], valid UTF-8.
    # -> bool [bytes], all bytes of a character alike.
    # is_unicode_white_space(np.frombuffer("a\u00a0b".encode(), np.uint8)) -> [False, True, True, False]
    white = is_white_space(data) | ((data - np.uint8(0x1C)) < 4)
    if not len(data) or data.max() < _ASCII:
        return white
    for lead in sorted({character[0] for character in _LONGER}):
        at = np.flatnonzero(data == lead)
        followed_by = [data[np.minimum(at + i, len(data) - 1)] for i in range(1, 3)]
        for character in _LONGER:
            if character[0] == lead:
                here = at[np.logical_and.reduce([a == b for a, b in zip(followed_by, character[1:], strict=False)])]
                for i in range(len(character)):
                    white[here + i] = True
    return white
