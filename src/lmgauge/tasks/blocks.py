"""Segments as they are scored: some at a time, a text of each system and one or more references for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.tasks.texts import Integers, References, Texts


@dataclass(frozen=True, slots=True)
class Block:
    """Some consecutive segments.

    Attributes:
        references: of each segment; all readings of them, where they have alternatives.
        hypotheses: a text for each segment, of each system.
        groups: int64 [segments], index into the `group_names` of where the block is from; None without groups.
        documents: int64 [segments], the number of the document of each, from 0; None where documents are not known.
        sources: a text for each segment, what was translated; None where no metric needs it.
        chosen: of each system its references, where they have alternatives and each is scored against the nearest reading;
            otherwise empty.
    """

    references: References
    hypotheses: tuple[Texts, ...]
    groups: Integers | None = None
    documents: Integers | None = None
    sources: Texts | None = None
    chosen: tuple[References, ...] = ()

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.references)

    def against(self, system: int) -> References:
        """Return the references that a system is scored against.

        Args:
            system: its number, from 0.
        """
        return self.chosen[system] if self.chosen else self.references

    def part(self, begin: int, end: int) -> Block:
        """Return segments `begin` to `end` (excluded); nothing is copied.

        Args:
            begin, end: places in this block.

        >>> block = Block(References.of_lists(["a", "b"]), (Texts.of_strings(["c", "d"]),))
        >>> block.part(1, 2).hypotheses[0].strings()
        ['d']
        """
        return Block(
            self.references.part(begin, end),
            tuple(texts.part(begin, end) for texts in self.hypotheses),
            None if self.groups is None else self.groups[begin:end],
            None if self.documents is None else self.documents[begin:end],
            None if self.sources is None else self.sources.part(begin, end),
            tuple(references.part(begin, end) for references in self.chosen),
        )


class ParallelSegments(Protocol):
    """Segments of several systems in blocks, in memory (`ParallelTexts`) or in files (`ParallelFiles`).

    Attributes:
        names: the names of the systems, in the order of the blocks' hypotheses.
        group_names: by code; complete once all blocks were read.
        documents_by: what tells documents apart, for people; "unknown" if nothing does.
        notes: what reading changed, complete once all blocks were read.
    """

    names: list[str]
    group_names: list[str]
    documents_by: str
    notes: list[str]

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
        """Go through the blocks."""
        return (block for block in self.blocks if len(block))
