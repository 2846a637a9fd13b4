"""What numbers are divided by: segments, words, characters and bytes, counted in the source text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import UsageError
from lmgauge.scores import ScoreBatch
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.text.segments import Segments, count_text

Block = TypeVar("Block", Segments, Segments | None)

UNSPACED = "[\u0e00-\u0eff\u1000-\u107f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0002ffff]"
"""Characters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, as a class of regular expressions."""
_LEADS = np.array(
    [*(0xE0B8, 0xE0BC, 0xE180, 0xE182, 0xE19E, 0xE1A0, 0xE381), *(0xE384, 0xE390, 0xEA00, 0xEFA4, 0xEFAC, 0xF0A0, 0xF0B0)]
)
"""The same by the first two bytes of UTF-8: from each first to the one behind it."""


@dataclass(frozen=True)
class Denominators:
    """Counts of the source text, never of token pieces; a line end is one byte and one character."""

    # `unspaced` are the characters of scripts that are written without spaces between words (`UNSPACED`).

    segments: int = 0
    words: int = 0
    characters: int = 0
    bytes: int = 0
    line_ends: int = 0
    unspaced: int = field(default=0, repr=False)

    def __add__(self, other: Denominators) -> Denominators:
        return Denominators(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def scored_under(self, policy: ContextPolicy) -> Denominators:
        """Return the counts for a model: without line ends if it does not predict where lines end."""
        ends = 0 if policy.counts_line_ends else self.line_ends
        return replace(self, characters=self.characters - ends, bytes=self.bytes - ends, line_ends=self.line_ends - ends)

    @property
    def has_words(self) -> bool:
        """Return False if spaces do not part words."""
        # Most characters are of such scripts, and spaces are rarer than 1 in 10.
        # Text of such a script that was cut into words by spaces has words.
        # [Denominators(words=words, characters=30, unspaced=20).has_words for words in (2, 9)] -> [False, True]
        return 2 * self.unspaced <= self.characters or self.characters <= 10 * self.words


def count_denominators(block: Segments, chosen: slice | NDArray[np.int64] = slice(None)) -> Denominators:
    """Count the segments, words, characters and bytes of a block in the source text, line ends included."""
    # chosen: which of them, a slice or int64 [n]; all if not given.
    starts, ends = block.starts[chosen], block.ends[chosen]
    words, characters = count_text(block.data, starts, ends, block.terminator)
    line_ends = block.terminator * len(starts)
    size = int((ends - starts).sum()) + line_ends
    return Denominators(len(starts), words, characters, size, line_ends, count_unspaced(block.data, starts, ends))


def count_unspaced(data: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """Return how many characters of a script without spaces begin in spans of UTF-8."""
    # data: uint8 [bytes]; starts, ends: int64 [spans].
    at = np.flatnonzero(data[:-1] >= 0xE0)
    # The first two bytes tell the block: `ก` (E0 B8 81) has the code 0xE0B8, the first of the ranges [0xE0B8, 0xE0BC),
    # [0xE180, 0xE182), ...; an odd number of bounds at or below a code is inside of one.
    codes = data[at].astype(np.int64) << 8 | data[at + 1]
    at = at[np.searchsorted(_LEADS, codes, side="right") % 2 == 1]
    # Places [2, 5, 9] in the spans 0-4 and 4-9: 1 and 1, as the place 9 is behind the end of both.
    return int((np.searchsorted(at, ends) - np.searchsorted(at, starts)).sum()) if len(at) else 0


def scored_text(block: Block, policies: Iterable[ContextPolicy]) -> Block:
    """Return a block of text whose lines have ends if any of these models counts them."""
    if block is None or any(policy.counts_line_ends for policy in policies):
        return block
    return replace(block, terminator=0)


def segment_bytes(block: Segments, table: ScoreBatch, policy: ContextPolicy) -> NDArray[np.int64]:
    """Return the bytes of each segment that a model's figures are divided by, int64 [s], line ends included.

    >>> from lmgauge.scores import example_batch
    >>> from lmgauge.text.documents import Corpus
    >>> block = next(iter(Corpus.from_strings(["the", "cat sat"])))
    >>> segment_bytes(block, example_batch(), ContextPolicy()).tolist()
    [3, 7]
    """
    if policy.leaves_out and len(table.ends) == len(table):
        return table.scored_bytes()
    own = table.segments - block.first
    sizes: NDArray[np.int64] = block.ends[own] - block.starts[own] + block.terminator * policy.counts_line_ends
    return sizes


def known_documents(block: Segments) -> NDArray[np.int64]:
    """Return the document of each segment of a block, int64 [segments], where documents are what is drawn.

    Raises:
        UsageError: they are not known.
    """
    if block.documents is None:
        raise UsageError(
            "documents are what is drawn, and those of this text are not known: say what they are with --document (segment, "
            "file, blank-line, heading, or the name of a field)"
        )
    return block.documents
