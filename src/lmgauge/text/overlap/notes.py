"""What a reader must know of a comparison before its figures: how the texts were read, and whether its n-grams fit them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lmgauge.text.overlap.whole_text import SEPARATOR, WholeText

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


def comparison_notes(*, unspaced: bool, unit: str, n: int, ngrams: int, near: bool) -> Iterator[str]:
    """What is wrong with comparing this test in n-grams of this kind.

    Args:
        unspaced: words were compared where they are not set apart by spaces.
        unit: "word" or "character".
        n: tokens of an n-gram.
        ngrams: how many the test has.
        near: whether near duplicates were looked for, too.
    """
    if unspaced:
        yield "most of the text has no spaces between words: --overlap-unit character compares it"
    if not ngrams:
        also = " and near ones" if near else ""
        yield f"no run of {n:,} {unit}s fits in the test: only whole duplicates{also} were looked for"


def has_no_spaces(test: WholeText) -> bool:
    """Whether what stands between white space is mostly no words but phrases or sentences.

    True where it is longer than 20 code points on average, or where it is longer than 6 and most code points are of
    scripts that set no spaces between words (such text with spaces put in, as for segmentation, has words of about 2 to 4).
    """
    words = int(np.count_nonzero(test.ids != SEPARATOR))
    unspaced = characters = 0
    for block in test.blocks():
        codes = np.frombuffer(block.data.tobytes().decode(errors="ignore").encode("utf-32-le"), np.uint32)
        codes = codes[codes > ord(" ")]
        characters += len(codes)
        codes = codes[codes >= _UNSPACED[0][0]]
        unspaced += sum(int(np.count_nonzero((codes >= first) & (codes <= last))) for first, last in _UNSPACED)
    return characters > _LONG_WORD * words or (characters > _SHORT_WORD * words and 2 * unspaced > characters)
