"""Segments and tokens that stand out, in the text around them: what a number is made of."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.evaluation.slicing.span_alignment import Ranges
from lmgauge.text.segments import Segments

Floats = NDArray[np.float64]
_AROUND = 40
_LONGEST = 160


@dataclass(frozen=True)
class Example:
    """A piece of text that stands out."""

    source: str  # source, line: the file and the line (or record) in it, from 1
    line: int
    segment: int  # index of the segment in the whole text
    before: str  # before, text, after: that piece, with what stands around it
    text: str
    after: str
    bits: tuple[float, ...]
    value: float  # what it stands out by, bits


class ExampleHeap:
    """Keeps the pieces of text with the largest and the smallest values seen so far."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._high: list[tuple[float, int, Example]] = []
        self._low: list[tuple[float, int, Example]] = []
        self._seen = 0

    def add_ranges(self, block: Segments, ranges: Ranges, values: Floats, bits: Sequence[Floats]) -> None:
        """Add ranges of a block."""
        # values: float64 [ranges], by which they stand out, bits; bits: of each model, float64 [ranges].
        for i in self._candidates(values):
            segment = int(ranges.segment[i])
            start, end = int(ranges.starts[i]), int(ranges.ends[i])
            self._push(_example(block, segment, start, end, float(values[i]), tuple(float(b[i]) for b in bits)))

    def add_segments(self, block: Segments, values: Floats, bits: Sequence[Floats]) -> None:
        """Add whole segments of a block."""
        # values: float64 [segments], by which they stand out, bits; bits: of each model, float64 [segments].
        for i in self._candidates(values):
            whole = block.text(i)
            text = whole[:_LONGEST].decode("utf-8", "ignore") + ("…" if len(whole) > _LONGEST else "")
            costs = tuple(float(b[i]) for b in bits)
            self._push(Example(block.source, block.line(i), block.first + i, "", text, "", costs, float(values[i])))

    def _candidates(self, values: Floats) -> list[int]:
        # Few that may enter, in order of the text.
        if not self._most or not len(values):
            return []
        most = min(self._most, len(values))
        few: set[int] = set()
        for side in (values, -values):
            # Of those that are as far out as the last one the earlier in the text stay.
            # values [5, 1, 5, 9], the 2 smallest -> last 5, near [0, 1, 2], by value and place [1, 0]
            last = np.partition(side, most - 1)[most - 1]
            near = np.flatnonzero(side <= last)
            few.update(near[np.argsort(side[near], kind="stable")[:most]].tolist())
        return sorted(few)

    def _push(self, example: Example) -> None:
        self._seen += 1
        for heap, key in ((self._high, example.value), (self._low, -example.value)):
            if key <= 0:
                continue
            # Of equal values the earlier one wins, and two examples are never compared: no two have the same number.
            item = (key, -self._seen, example)
            if len(heap) < self._most:
                heapq.heappush(heap, item)
            elif item > heap[0]:
                heapq.heapreplace(heap, item)

    def worst(self) -> tuple[Example, ...]:
        """Return those with the largest values above 0, largest first."""
        return tuple(example for _, _, example in sorted(self._high, key=lambda item: (-item[0], -item[1])))

    def best(self) -> tuple[Example, ...]:
        """Return those with the smallest values below 0, smallest first."""
        return tuple(example for _, _, example in sorted(self._low, key=lambda item: (-item[0], -item[1])))


def _example(block: Segments, segment: int, start: int, end: int, value: float, bits: tuple[float, ...]) -> Example:
    around = text_around(block, segment, start, end)
    return Example(block.source, block.line(segment), block.first + segment, *around, bits, value)


def text_around(block: Segments, segment: int, start: int, end: int) -> tuple[str, str, str]:
    """Return a piece of a segment with the text before and after it, as far as it is shown: before, piece, after."""
    whole = block.text(segment)
    piece = whole[start:end].decode("utf-8", "replace")
    if end > len(whole):
        piece += "</s>"
    # A character has at most 4 bytes; half of one, at the cut, is ignored.
    before = whole[max(0, start - 4 * _AROUND) : start].decode("utf-8", "ignore")[-_AROUND:]
    after = whole[end : end + 4 * _AROUND].decode("utf-8", "ignore")[:_AROUND]
    return before, piece[:_LONGEST], after
