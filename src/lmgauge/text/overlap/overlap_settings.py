"""How a test text is compared with a training text."""

from __future__ import annotations

from typing import Annotated, ClassVar

from lmgauge.base.choices import OverlapUnit
from lmgauge.base.declaration import settings
from lmgauge.base.option_numbers import Bounds, Natural

DEFAULT_N = {"word": 13, "character": 25}
"""Shortest runs that count: 13 words are what Brown et al. (2020), appendix C, take; 25 characters are about as much text
where words are not spaced."""


@settings
class OverlapSettings:
    """How a test text is compared with a training text.

    Attributes:
        overlap_unit: what n-grams are made of; words (runs of bytes that are not ASCII white space), or characters (code
            points that are not white space), for scripts without spaces between words.
        n: shortest run that counts, in words or characters; 13 words, 25 characters if not given.
        fold: ignore case, punctuation and symbols.
        passages: longest passages to show and to keep.

    Raises:
        UsageError: an option is out of range.

    Example:
        >>> OverlapSettings().shortest, OverlapSettings(overlap_unit="character").shortest, OverlapSettings(n=8).shortest
        (13, 25, 8)
    """

    heading: ClassVar[str] = "Search"
    overlap_unit: OverlapUnit = "word"
    n: Annotated[int, Bounds(1, 10_000)] | None = None
    fold: bool = False
    passages: Natural = 10

    @property
    def shortest(self) -> int:
        """The shortest run that counts, in words or characters."""
        return DEFAULT_N[self.overlap_unit] if self.n is None else self.n
