"""How a test text is compared with a training text: one object, made at the door."""

from __future__ import annotations

from dataclasses import dataclass

from lmgauge.choices import OVERLAP_UNITS, OverlapUnit
from lmgauge.errors import UsageError
from lmgauge.option_numbers import check_whole

DEFAULT_N = {"word": 13, "character": 25}
"""Shortest runs that count: 13 words are what Brown et al. (2020), appendix C, take; 25 characters are about as much text
where words are not spaced."""
_MAX_N = 10_000


@dataclass(frozen=True, kw_only=True)
class OverlapSettings:
    """How a test text is compared with a training text.

    Attributes:
        overlap_unit: n-grams consist of "word"s, runs of bytes that are not ASCII white space, or "character"s, code points
            that are not white space, for scripts that do not space words.
        n: the shortest run that counts, in words or characters; None for 13 words or 25 characters.
        near: Jaccard index (0 to 1) from which on two segments are near duplicates; 0 skips the search.
        fold: ignore case, punctuation and symbols.
        passages: how many of the longest passages, and of the most alike near duplicates, to keep.

    Raises:
        UsageError: an option is out of range.

    Example:
        >>> OverlapSettings().shortest, OverlapSettings(overlap_unit="character").shortest, OverlapSettings(n=8).shortest
        (13, 25, 8)
    """

    overlap_unit: OverlapUnit = "word"
    n: int | None = None
    near: float = 0.8
    fold: bool = False
    passages: int = 100

    def __post_init__(self) -> None:
        if self.overlap_unit not in OVERLAP_UNITS:
            raise UsageError(f"overlap_unit must be one of {', '.join(OVERLAP_UNITS)}; got {self.overlap_unit!r}")
        check_whole("n", self.shortest, 1, _MAX_N)
        if not 0 <= self.near <= 1:
            raise UsageError(f"near must be a Jaccard index above 0 and at most 1, or 0 for none; got {self.near}")
        check_whole("passages", self.passages, 0)

    @property
    def shortest(self) -> int:
        """The shortest run that counts, in words or characters."""
        return DEFAULT_N[self.overlap_unit] if self.n is None else self.n
