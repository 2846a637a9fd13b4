"""Segments as they are scored: some at a time, a text of each system and one or more references for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.tasks.texts import Integers, References, Texts


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
