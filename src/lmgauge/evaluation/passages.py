"""Segments of the text with what each of their events cost: what a page colors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spans:
    """The events of one run in a passage, in order; all columns are as long.

    Attributes:
        ends: int64 [n], the byte of the passage's UTF-8 text where each event ends; `</s>` ends where the text does.
        bits: float64 [n]; infinite for an event of probability zero.
        kinds: uint8 [n], index into `scores.KINDS`.
        columns: more of each event, [n], as far as the run has it: `rank`, `entropy` (bits), `context` (matched order, or
            tokens of context used), `occurrences` (of the word in the training text).
        slices: uint8 [n] for each way to cut the text, by its name: the slice that the event is in.
    """

    ends: Ints
    bits: Floats
    kinds: NDArray[np.uint8]
    columns: Mapping[str, NDArray[np.number[Any]]]
    slices: Mapping[str, NDArray[np.uint8]]


@dataclass(frozen=True, eq=False)
class Passage:
    """A segment, or its beginning where it is long.

    Attributes:
        segment: index in the whole text, from 0.
        where: the id that the text gives it, or its file and line.
        group: it belongs to; empty where there are none.
        why: it was chosen: "worst", "most improved", "most lost", "sample".
        text: of it.
        bits: of each run, the whole segment; infinite with an event of probability zero.
        events: of each run, in the whole segment.
        size: bytes of the whole segment, its line end included.
        spans: of each run, of the text shown.
        is_cut: the segment goes on after the text shown.
    """

    segment: int
    where: str
    group: str
    why: tuple[str, ...]
    text: str
    bits: tuple[float, ...]
    events: tuple[int, ...]
    size: int
    spans: tuple[Spans, ...]
    is_cut: bool = False
