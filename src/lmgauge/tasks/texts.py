"""Hypotheses and references as arrays, many strings in one block of UTF-8; and blocks of segments, with all systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.paths import refuse_file_names
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.text.segments import Segments

TAKES_FILES = "lmgauge.tasks.score_files(metric, hypotheses=..., references=...)"
Integers = NDArray[np.int64]
GivenReferences = Sequence[str | Sequence[str | None]]
"""For each segment a string, or a list of strings; None in a list is absent. Where there are as many lists as texts in each,
they must be tuples: lists could as well be sacreBLEU's, which has one for each reference translation."""

# Texts made one string at a time: enough for the cost of a call not to matter, few enough for the copies not to.
_TOGETHER = 1 << 14


@dataclass(frozen=True, slots=True)
class Texts:
    """Strings as UTF-8: text i is `data[starts[i]:ends[i]]`; there may be other bytes between them."""

    data: NDArray[np.uint8]  # uint8 [bytes]
    starts: Integers  # int64 [texts]
    ends: Integers  # int64 [texts]

    @classmethod
    def of_strings(cls, strings: Iterable[str], what: str = "text") -> Texts:
        """Return strings as UTF-8."""
        # strings: one for each segment, in order.
        # Texts.of_strings(["the", "cat"]).ends -> [3, 6]
        _check_list(strings, what)
        return cls.of_bytes([_encoded(text, what, i) for i, text in enumerate(strings)])

    @classmethod
    def of_bytes(cls, encoded: Sequence[bytes]) -> Texts:
        """Return strings that are valid UTF-8 already."""
        # Texts.of_bytes([b"the", b"cat"]).strings() -> ['the', 'cat']
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        ends = np.cumsum(lengths, dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends - lengths, ends)

    @classmethod
    def of_segments(cls, segments: Segments) -> Texts:
        """Return the texts of segments read from a file; nothing is copied."""
        return cls(segments.data, segments.starts, segments.ends)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def arrays(self) -> tuple[NDArray[np.uint8], Integers, Integers]:
        """Data, starts and ends, as kernels take them."""
        return self.data, self.starts, self.ends

    def part(self, begin: int, end: int) -> Texts:
        """Return texts `begin` to `end` (excluded); nothing is copied."""
        # Texts.of_strings(["a", "b", "c"]).part(1, 3).strings() -> ['b', 'c']
        return Texts(self.data, self.starts[begin:end], self.ends[begin:end])

    def picked(self, indexes: Integers) -> Texts:
        """Return the texts with these indexes, in that order; nothing is copied."""
        # indexes: int64 [texts].
        # Texts.of_strings(["a", "b", "c"]).picked([2, 0]).strings() -> ['c', 'a']
        return Texts(self.data, self.starts[indexes], self.ends[indexes])

    def encoded(self) -> list[bytes]:
        """Return the texts as UTF-8."""
        if not len(self):
            return []
        first = int(self.starts.min())  # a part of a large block copies no more than its own share
        whole = self.data[first : int(self.ends.max())].tobytes()
        return [whole[s - first : e - first] for s, e in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    def strings(self) -> list[str]:
        """Return the texts as strings."""
        return [text.decode("utf-8") for text in self.encoded()]

    def mapped(self, function: Callable[[str], str]) -> Texts:
        """Return what a function makes of each text."""
        # Texts.of_strings(["a", "b"]).mapped(str.upper).strings() -> ['A', 'B']
        return Texts.of_bytes([function(text).encode() for text in self.strings()])

    def mapped_together(self, function: Callable[[str], str]) -> Texts:
        """Return what a function makes of the texts, many at a time: one call for all is faster than one for each."""
        # function: gets many texts as one string with NUL characters, which no text holds, between them; it must leave
        # those where they are and look across none.
        # Texts.of_strings(["a", "b"]).mapped_together(str.upper).strings() -> ['A', 'B']
        parts = (self.part(begin, begin + _TOGETHER) for begin in range(0, len(self), _TOGETHER))
        results = (function(b"\0".join(part.encoded()).decode("utf-8")).encode() for part in parts)
        whole = np.frombuffer(b"\0".join(results), dtype=np.uint8)
        breaks = np.flatnonzero(whole == 0).astype(np.int64)
        return Texts(whole, np.append(0, breaks + 1)[: len(self)], np.append(breaks, len(whole))[: len(self)])

    def lowered(self) -> Texts:
        """Return the texts in lower case, each as `str.lower()` has it."""
        # NUL is neither a letter nor skipped between letters, so it ends the context that lower case looks at (for the
        # Greek sigma) as the end of a string does.
        return self.mapped_together(str.lower)


def _check_list(values: object, what: str) -> None:
    if isinstance(values, (str, bytes)):
        refuse_file_names(values, TAKES_FILES)
        raise UsageError(f"one string was given where a list with a {what} for each segment belongs: put it in a list")
    if not isinstance(values, Iterable) or isinstance(values, (Mapping, Set)):
        raise UsageError(f"a list with a {what} for each segment is needed, not {type(values).__name__}")


def _encoded(text: str, what: str, i: int) -> bytes:
    if not isinstance(text, str):
        raise UsageError(f"{what} {i + 1} is {type(text).__name__}, not a string")
    if "\0" in text:
        raise InputError(f"{what} {i + 1} holds NUL (U+0000), which is not text; remove it")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{what} {i + 1} holds a lone surrogate (U+{ord(text[error.start]):04X}) at character {error.start + 1}, "
            "which is not text; decode the source as UTF-8"
        ) from error


@dataclass(frozen=True, slots=True)
class References:
    """One or more references for each segment."""

    texts: Texts  # all references, those of segment i are `texts` from `offsets[i]` to `offsets[i + 1]` (excluded)
    offsets: Integers  # int64 [segments + 1], rising

    @classmethod
    def single(cls, texts: Texts) -> References:
        """Return references of which each segment has one."""
        return cls(texts, np.arange(len(texts) + 1, dtype=np.int64))

    @classmethod
    def of_lists(cls, references: GivenReferences) -> References:
        """Return references as Python has them: a string for each segment, or a list of strings."""
        # None in a list is absent.
        # References.of_lists(["a", ["b", None, "c"]]).offsets -> [0, 1, 3]
        _check_list(references, "reference (or a list of them)")
        flat: list[str] = []
        offsets = [0]
        for i, one in enumerate(references):
            several = [one] if isinstance(one, str) else [text for text in _listed(one, i) if text is not None]
            if not several:
                raise InputError(f"segment {i + 1} has no reference; give at least one (it may be an empty string)")
            flat.extend(several)
            offsets.append(len(flat))
        return cls(Texts.of_strings(flat, "reference"), np.array(offsets, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def count(self) -> int | None:
        """Return how many references each segment has; None where the number varies (and 0 without segments)."""
        if not len(self):
            return 0
        counts = np.diff(self.offsets)
        return int(counts[0]) if (counts == counts[0]).all() else None

    def part(self, begin: int, end: int) -> References:
        """Return the references of segments `begin` to `end` (excluded)."""
        # References.of_lists(["a", ["b", "c"]]).part(1, 2).texts.strings() -> ['b', 'c']
        first, last = int(self.offsets[begin]), int(self.offsets[end])
        return References(self.texts.part(first, last), self.offsets[begin : end + 1] - first)

    def with_texts(self, texts: Texts) -> References:
        """Return the same arrangement of other texts."""
        return References(texts, self.offsets)


def _listed(texts: object, i: int) -> Sequence[str | None]:
    if isinstance(texts, (list, tuple)):
        return texts
    if isinstance(texts, np.ndarray):
        return cast("list[str | None]", texts.tolist())
    raise UsageError(f"the references of segment {i + 1} are {type(texts).__name__}, not a string or a list of strings")


def refuse_two_readings(references: Sequence[object]) -> None:
    """Refuse as many lists as texts in each: those of segments, or of translations, as in sacreBLEU?"""
    # Tuples are of segments.
    n = len(references)
    if n > 1 and all(isinstance(one, (list, np.ndarray)) and len(one) == n for one in references):
        raise UsageError(
            f"{n} lists of {n} references: what is each? All references of one segment: write "
            "references=[tuple(texts) for texts in references]. One reference for every segment, as in sacreBLEU: write "
            "references=list(zip(*references))"
        )


@dataclass(frozen=True, slots=True)
class Block:
    """Some consecutive segments."""

    references: References  # of each segment; all readings of them, where they have alternatives
    hypotheses: tuple[Texts, ...]  # a text for each segment, of each system
    # int64 [segments], index into the `group_names` of where the block is from; None without groups
    groups: Integers | None = None
    # int64 [segments], the number of the document of each, from 0; None where documents are not known
    documents: Integers | None = None
    sources: Texts | None = None  # a text for each segment, what was translated; None where no metric needs it
    # of each system its references, where they have alternatives and each is scored against the nearest reading; otherwise
    # empty
    chosen: tuple[References, ...] = ()

    def __len__(self) -> int:
        return len(self.references)

    def against(self, system: int) -> References:
        """Return the references that a system is scored against."""
        return self.chosen[system] if self.chosen else self.references

    def part(self, begin: int, end: int) -> Block:
        """Return segments `begin` to `end` (excluded); nothing is copied."""
        return Block(
            self.references.part(begin, end),
            tuple(texts.part(begin, end) for texts in self.hypotheses),
            None if self.groups is None else self.groups[begin:end],
            None if self.documents is None else self.documents[begin:end],
            None if self.sources is None else self.sources.part(begin, end),
            tuple(references.part(begin, end) for references in self.chosen),
        )


class ParallelSegments(Protocol):
    """Segments of several systems in blocks, in memory (`ParallelTexts`) or in files (`ParallelFiles`)."""

    names: list[str]  # the names of the systems, in the order of the blocks' hypotheses
    group_names: list[str]  # by code; complete once all blocks were read
    documents_by: str  # what tells documents apart, for people; "unknown" if nothing does
    notes: list[str]  # what reading changed, complete once all blocks were read

    def __iter__(self) -> Iterator[Block]:
        """Read all blocks once."""


@dataclass
class ParallelTexts:
    """Blocks in memory; attributes as in `ParallelSegments`."""

    names: list[str]
    blocks: Sequence[Block]
    group_names: list[str] = field(default_factory=list)
    documents_by: str = UNKNOWN
    notes: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[Block]:
        return (block for block in self.blocks if len(block))
