"""Result of `find_overlap`: counts and shares, passages with both places, and figures for each segment of the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import CheckFailedError
from lmgauge.base.result_list import Tabled, plain_values

if TYPE_CHECKING:
    from lmgauge.text.overlap.token_stream import WholeText


SHORT_SEGMENT = 20
"""Bytes below which a repeated segment does not count as contamination: texts of a kind share their short lines."""


@dataclass(frozen=True)
class Place:
    """A place in a text."""

    source: str
    line: int  # line (or record) in it, from 1
    byte: int  # byte in that line, from 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}"


@dataclass(frozen=True)
class Passage:
    """A longest run of tokens that test and training text have in common."""

    test: Place  # test, train: where it begins in either; in the training text it may stand elsewhere, too
    train: Place
    length: int
    bytes: int
    segment: int  # index of the test segment it begins in
    text: str  # how it begins in the test; an ellipsis at its end where it goes on


@dataclass(frozen=True)
class GroupOverlap:
    """Counts for one group of the test's segments, usually one of its files."""

    # An n-gram belongs where it begins.

    name: str
    segments: int
    contaminated_segments: int
    whole_duplicates: int
    bytes: int
    contaminated_bytes: int
    ngram_bytes: int
    ngrams: int
    seen_ngrams: int
    STATED: ClassVar = ("ngram_share",)

    @property
    def ngram_share(self) -> float:
        """Return the share of the n-grams that are in the training text; 0 where there are none."""
        return self.seen_ngrams / self.ngrams if self.ngrams else 0.0


@dataclass(frozen=True, repr=False)
class Overlap(Tabled):
    """The parts of a test text that are in a training text.

    Attributes:
        unit, n, fold: what n-grams are made of, how many tokens they have, and whether case and punctuation were ignored.
        segments, blank_segments: of the test, and those without a token, which are never contaminated.
        contaminated_segments: those with a token inside an n-gram that the training text has, and whole duplicates.
        whole_duplicates, duplicate_bytes: segments with a token that are, byte for byte, a training segment (with `fold`:
            once both are folded); and their bytes.
        tokens, contaminated_tokens: of the test, and those inside an n-gram that the training text has.
        bytes, contaminated_bytes: of the test, line ends included, and those inside such n-grams or whole duplicates; white
            space counts where the words on both its sides do. A text that is all in the training text gives all its bytes.
        ngram_bytes: those inside such n-grams alone; white space counts where the words on both its sides are in one run.
        ngrams, seen_ngrams: of the test, and those that the training text has, each as often as it occurs in the test.
        distinct_ngrams, seen_distinct_ngrams: the same, each once.
        longest_run: in tokens.
        passage_count: how many passages there are; `passages` has the longest, longest first.
        groups: counts by group of the test's segments.
        unspaced: words were compared, but most of the test has no spaces between them.
        train_bytes, train_segments, train_sha256, test_sha256: what was compared.
        notes: what reading changed in the texts, and whether n-grams of this kind fit the test.
        segment_contaminated, segment_duplicate: bool [segments].
        segment_contaminated_bytes, segment_ngram_bytes: int64 [segments], each one's part of those figures.
        text: the test.
        run: the numbers of a run on the clean segments and on the others (`SplitEvaluation`), if a run was named; else None.

    Example:
        >>> import lmgauge
        >>> train = lmgauge.Corpus.from_strings(["the cat sat on the mat"])
        >>> test = lmgauge.Corpus.from_strings(["a cat sat on a mat", "no"])
        >>> result = lmgauge.overlap(train, test, n=3)
        >>> round(result.contaminated_share, 3), result.passages[0].text
        (0.5, 'cat sat on')
    """

    unit: str
    n: int
    fold: bool
    segments: int
    blank_segments: int
    contaminated_segments: int
    whole_duplicates: int
    duplicate_bytes: int
    tokens: int
    contaminated_tokens: int
    bytes: int
    contaminated_bytes: int
    ngram_bytes: int
    ngrams: int
    seen_ngrams: int
    distinct_ngrams: int
    seen_distinct_ngrams: int
    longest_run: int
    passage_count: int
    passages: list[Passage]
    groups: list[GroupOverlap]
    unspaced: bool
    train_bytes: int
    train_segments: int
    train_sha256: str
    test_sha256: str
    notes: tuple[str, ...]
    segment_contaminated: NDArray[np.bool_] = field(repr=False, compare=False)
    segment_duplicate: NDArray[np.bool_] = field(repr=False, compare=False)
    segment_contaminated_bytes: NDArray[np.int64] = field(repr=False, compare=False)
    segment_ngram_bytes: NDArray[np.int64] = field(repr=False, compare=False)
    text: WholeText = field(repr=False, compare=False)
    run: Any = field(default=None, repr=False, compare=False)
    STATED: ClassVar = ("contaminated_share", "ngram_share")

    @property
    def long_contaminated_bytes(self) -> int:
        """Contaminated bytes, without whole duplicates shorter than 20 bytes that no n-gram is in.

        Headings, names of speakers and the like stand in every text of their kind: that is not contamination.
        """
        short = self.segment_duplicate & (self.segment_contaminated_bytes < SHORT_SEGMENT)
        return int(np.where(short, self.segment_ngram_bytes, self.segment_contaminated_bytes).sum())

    @property
    def contaminated_share(self) -> float:
        """Share of the test's bytes inside n-grams or whole segments that the training text has; 0 where it has no bytes."""
        return self.contaminated_bytes / self.bytes if self.bytes else 0.0

    @property
    def ngram_share(self) -> float:
        """Share of the test's n-grams that the training text has; 0 where there are none."""
        return self.seen_ngrams / self.ngrams if self.ngrams else 0.0

    def require(self, max_overlap: float) -> Overlap:
        """Return the overlap itself, if it is small enough.

        Args:
            max_overlap: largest share (0 to 1) of the test's bytes that may be contaminated, short lines included.

        Raises:
            CheckFailedError: the share is larger.
        """
        if self.contaminated_share > max_overlap:
            raise CheckFailedError(
                f"{100 * self.contaminated_share:.3g} % of the test's bytes are in the training text, more than the "
                f"{100 * max_overlap:g} % that --max-overlap allows; --write-clean FILE writes the test without them"
            )
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return counts, shares, passages and groups as plain values; the segments by their index from 0."""
        plain: dict[str, Any] = plain_values(self)
        plain["contaminated_segment_indices"] = np.flatnonzero(self.segment_contaminated).tolist()
        return plain if self.run is None else plain | {"run": self.run.to_dict()}

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each group of the test, usually one of its files."""
        return [plain_values(group) for group in self.groups]

    def _in_brief(self) -> str:
        return (
            f"{self.contaminated_segments:,} of {self.segments:,} segments and {100 * self.contaminated_share:.2f} % of "
            f"{self.bytes:,} bytes are in the training text"
        )
