"""Transcripts with alternatives, as NIST writes them, and the reading of them that is nearest to another text.

    a { b / c d / @ } e          b, or c d, or nothing, between a and e; alternatives may hold alternatives
    a (b) c                      b may be left out

A transcript is a `Lattice`: numbered places, and arcs that lead from one to a later one with a word, or with none. The
reading that counts is that of the cheapest path: fewest edits, as everywhere; of equals the alternative named first.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lmgauge.errors import InputError
from lmgauge.tasks.texts import Integers

MOST_CELLS = 1 << 25
"""Of the matrix of two transcripts, one of them with alternatives: some 5,000 words each; 256 MB."""


class Mark(enum.Enum):
    """What stands between the words of a transcript with alternatives."""

    BEGIN = "{"
    NEXT = "/"
    END = "}"


Token = str | Mark


class Arc(NamedTuple):
    """A step from a place to a later one, past a word or past nothing (None)."""

    begin: int
    end: int
    word: str | None


@dataclass
class Lattice:
    """All readings of a transcript: the paths from place 0 to the last."""

    # by the place that they lead to, in order; those of the first alternative first
    arcs: list[list[Arc]] = field(default_factory=lambda: [[]])

    @classmethod
    def of_tokens(cls, tokens: Iterable[Token], place: str) -> Lattice:
        """Return what words and marks stand for."""
        lattice, at = cls(), 0
        opened: list[tuple[int, list[int]]] = []
        for token in tokens:
            if isinstance(token, str):
                optional = len(token) > 2 and token[0] == "(" and token[-1] == ")"
                if token != "@":
                    at = lattice.add(at, token[1:-1] if optional else token, optional)
            elif token is Mark.BEGIN:
                opened.append((at, []))
                at = lattice._join([at])
            elif not opened:
                raise InputError(f"{place}: {token.value} without a {{ before it: alternatives are written {{ a / b }}")
            elif token is Mark.NEXT:
                opened[-1][1].append(at)
                at = lattice._join([opened[-1][0]])
            else:
                _, ends = opened.pop()
                at = lattice._join([*ends, at])
        if opened:
            raise InputError(f"{place}: {{ is not closed: alternatives are written {{ a / b }}")
        return lattice

    def _join(self, begins: Sequence[int]) -> int:
        self.arcs.append([Arc(begin, len(self.arcs), None) for begin in begins])
        return len(self.arcs) - 1

    def add(self, begin: int, word: str, optional: bool = False) -> int:
        """Add a word behind a place, and return the place behind the word."""
        end = len(self.arcs)
        self.arcs.append([Arc(begin, end, word), *([Arc(begin, end, None)] if optional else [])])
        return end

    def words(self) -> list[str]:
        """Return the words of all readings, as often as they stand there."""
        return [arc.word for arcs in self.arcs for arc in arcs if arc.word is not None]

    def first_reading(self) -> list[str]:
        """Return the words of the first of all alternatives."""
        # Lattice.of_tokens(["a", Mark.BEGIN, "b", Mark.NEXT, "@", Mark.END], "ref.trn:1").first_reading() -> ['a', 'b']
        words: list[str] = []
        at = len(self.arcs) - 1
        while at:
            at, _, word = self.arcs[at][0]
            words += [] if word is None else [word]
        return words[::-1]

    def nearest(
        self, other: Lattice, units: Callable[[str], Sequence[str]] = lambda word: (word,)
    ) -> tuple[list[str], list[str]]:
        """Return the readings of this and another transcript that differ least."""
        ours, theirs = _Expanded(self, units), _Expanded(other, units)
        if len(ours.arcs) * len(theirs.arcs) > MOST_CELLS:
            raise InputError(
                f"a segment of {len(ours.arcs):,} by {len(theirs.arcs):,} words (or characters) is too long to choose among "
                "its alternatives: cut it into segments, or write down one of each"
            )
        return _cheapest(ours, theirs)


_Step = tuple[int, str | None, str | None]
"""From which place, with which unit (or none), and the word that ends with it."""


class _Expanded:
    """A lattice whose arcs have one unit each."""

    # A word between two others of which normalization leaves nothing is left out.

    def __init__(self, lattice: Lattice, units: Callable[[str], Sequence[str]]) -> None:
        self.arcs: list[list[_Step]] = [[]]
        places = [0]
        for arcs in lattice.arcs[1:]:
            ending: list[_Step] = []
            for arc in arcs:
                at, own = places[arc.begin], () if arc.word is None else units(arc.word)
                for unit in own[:-1]:
                    self.arcs.append([(at, unit, None)])
                    at = len(self.arcs) - 1
                ending.append((at, own[-1] if own else None, arc.word))
            if len(ending) == 1 and ending[0][1] is None:
                places.append(ending[0][0])
            else:
                self.arcs.append(ending)
                places.append(len(self.arcs) - 1)
        if places[-1] != len(self.arcs) - 1:  # the last alternative ends where an earlier place is
            self.arcs.append([(places[-1], None, None)])
        self.is_chain = all(len(steps) == 1 and steps[0][0] == i for i, steps in enumerate(self.arcs[1:]))
        self.is_chain &= all(unit is not None for steps in self.arcs for _, unit, _ in steps)


def _cheapest(ours: _Expanded, theirs: _Expanded) -> tuple[list[str], list[str]]:
    # Words on the cheapest pair of paths; Levenshtein's matrix, with places for symbols.
    if theirs.is_chain:
        costs = _costs_beside_chain(ours, theirs)
    elif ours.is_chain:
        costs = _costs_beside_chain(theirs, ours).T
    else:
        costs = _costs(ours, theirs)
    words: tuple[list[str], list[str]] = ([], [])
    i, j = len(ours.arcs) - 1, len(theirs.arcs) - 1
    while i or j:
        _, _, i, j, *passed = min(_moves(costs, ours.arcs[i], theirs.arcs[j], i, j), key=_cost_and_rank)
        for side, word in zip(words, passed, strict=True):
            side += [] if word is None else [word]
    return words[0][::-1], words[1][::-1]


def _costs_beside_chain(lattice: _Expanded, chain: _Expanded) -> Integers:
    # Fewest edits up to each pair of places, int64 [places, places of the chain], a row at a time.
    symbols = np.array([steps[0][1] for steps in chain.arcs[1:]], dtype=object)
    other: dict[str, Integers] = {}
    places = np.arange(len(symbols) + 1)
    costs = np.empty((len(lattice.arcs), len(places)), dtype=np.int64)
    costs[0] = places
    for i, steps in enumerate(lattice.arcs[1:], start=1):
        ways: list[Integers] = []
        for begin, unit, _ in steps:
            way = costs[begin].copy()
            if unit is not None:
                if unit not in other:
                    other[unit] = np.not_equal(symbols, unit).astype(np.int64)
                way += 1
                way[1:] = np.minimum(way[1:], costs[begin, :-1] + other[unit])
            ways.append(way)
        costs[i] = np.minimum.accumulate(np.minimum.reduce(ways) - places) + places
    return costs


def _costs(ours: _Expanded, theirs: _Expanded) -> Integers:
    # Fewest edits up to each pair of places, int64 [places, places], cell by cell.
    costs = np.zeros((len(ours.arcs), len(theirs.arcs)), dtype=np.int64)
    for i, ending in enumerate(ours.arcs):
        for j, heard in enumerate(theirs.arcs):
            if i or j:
                costs[i, j] = min(_moves(costs, ending, heard, i, j), key=_cost_and_rank)[0]
    return costs


_Move = tuple[int, int, int, int, str | None, str | None]


def _cost_and_rank(move: _Move) -> tuple[int, int]:
    return move[:2]


def _moves(costs: Integers, ours: list[_Step], theirs: list[_Step], i: int, j: int) -> list[_Move]:
    # All ways into a cell: cost, rank among equals, the cell before, and the words passed of both.
    # On both sides first, then on ours alone, so that of equal alternatives the first is taken, then on theirs.
    moves: list[_Move] = []
    for p, unit, word in ours:
        for q, other, heard in theirs:
            if unit is not None and other is not None:
                moves.append((int(costs[p, q]) + (unit != other), len(moves), p, q, word, heard))
    for p, unit, word in ours:
        moves.append((int(costs[p, j]) + (unit is not None), len(moves), p, j, word, None))
    for q, other, heard in theirs:
        moves.append((int(costs[i, q]) + (other is not None), len(moves), i, q, None, heard))
    return moves
