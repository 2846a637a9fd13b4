"""How the scores of segments are distributed: how many cost how many bits per byte."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmgauge.evaluation.slicing.ranges import Floats, Ints

MOST_BINS = 60
_BINS = 50  # across all but the outermost segments; bins of a round width are up to two more
_OUTERMOST = 0.5  # per cent, at either end


@dataclass(frozen=True)
class ScoreHistogram:
    """How many segments cost how much."""

    unit: str  # what bits are per: "byte", or "event" where the text is not at hand
    edges: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]  # for each run the segments in each bin
    infinite: tuple[int, ...]  # of each run the segments with an event of probability zero, which are in no bin
    beyond: int  # segments of all runs that lie outside the edges, counted in the outermost bins


class SegmentScores:
    """Collects the scores of segments, block by block: 8 bytes a segment and run."""

    def __init__(self, runs: int) -> None:
        self._scores: list[list[Floats]] = [[] for _ in range(runs)]
        self._infinite = [0] * runs

    def add(self, bits: Sequence[Floats], zeros: Sequence[Ints], sizes: Sequence[Ints]) -> None:
        """Add the segments of a block; those of size 0 do not count."""
        # bits: of each run float64 [segments], of the events that are possible; zeros: of each run int64 [segments], the
        # events of probability zero; sizes: of each run int64 [segments], bytes or events.
        for k, (own, impossible, size) in enumerate(zip(bits, zeros, sizes, strict=True)):
            finite = (size > 0) & (impossible == 0)
            self._scores[k].append(own[finite] / size[finite])
            self._infinite[k] += int(np.count_nonzero(impossible))

    def finish(self, unit: str) -> ScoreHistogram | None:
        """Return how many segments are in each bin; None where there are no finite scores."""
        scores = [np.concatenate(parts) if parts else np.zeros(0) for parts in self._scores]
        together = np.concatenate(scores)
        if not len(together):
            return None
        low, high = np.percentile(together, (_OUTERMOST, 100 - _OUTERMOST)).tolist()
        edges = _round_edges(low, high)
        inner, bins = np.array(edges[1:-1]), len(edges) - 1
        in_bins = [np.bincount(np.searchsorted(inner, own, side="right"), minlength=bins) for own in scores]
        counts = tuple(tuple(own.tolist()) for own in in_bins)
        beyond = int(np.count_nonzero((together < edges[0]) | (together > edges[-1])))
        return ScoreHistogram(unit, edges, counts, tuple(self._infinite), beyond)


def _round_edges(low: float, high: float) -> tuple[float, ...]:
    """Return edges at round numbers that hold a range between them.

    >>> _round_edges(0.9, 51.2)[:3], len(_round_edges(0.9, 51.2))
    ((0.0, 2.0, 4.0), 27)
    """
    width = (high - low) / _BINS or max(abs(low), 1.0) / _BINS
    power = 10.0 ** math.floor(math.log10(width))
    # A width of 1.006 becomes 2, as 1 is below it: steps are 1, 2, 5 or 10 times a power of ten.
    step = next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= width * (1 - 1e-9))
    first, last = math.floor(low / step), math.floor(high / step) + 1
    places = max(0, 1 - math.floor(math.log10(step)))
    return tuple(round(k * step, places) for k in range(first, last + 1))
