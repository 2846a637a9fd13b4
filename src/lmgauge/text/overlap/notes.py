"""Notes that a reader needs before the figures of a comparison: do its n-grams fit the text?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lmgauge.text.overlap.settings import OverlapSettings
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


def comparison_notes(settings: OverlapSettings, *, unspaced: bool, ngrams: int) -> Iterator[str]:
    """Yield what is wrong with comparing this test in n-grams of this kind.

    Args:
        settings: of the comparison.
        unspaced: True if words were compared where spaces do not separate them.
        ngrams: number of n-grams in the test.

    Example:
        >>> list(comparison_notes(OverlapSettings(near=0), unspaced=False, ngrams=0))
        ['no run of 13 words fits in the test: the search was for whole duplicates only']
    """
    if unspaced:
        yield "most of the text has no spaces between words: --overlap-unit character compares it"
    if not ngrams:
        also = " and near ones" if settings.near else ""
        run = f"{settings.shortest:,} {settings.overlap_unit}s"
        yield f"no run of {run} fits in the test: the search was for whole duplicates{also} only"


def has_no_spaces(test: WholeText) -> bool:
    """Return True if the pieces between white space are mostly phrases or sentences, not words.

    That is where they are longer than 20 code points on average, or where they are longer than 6 and most code points are of
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
