"""How perplexities of documents are distributed: counts in fixed bins of an eighth of an octave, by group."""

# The bins are the same everywhere, so that histograms of parts add up exactly to that of the whole.

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.decoding import Meta, Whole
from lmgauge.filtering.documents import Groups

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_POINTS = 60
"""Bins of a histogram that is drawn, at most."""

_OCTAVES = 64
# 2**(k/8), rounded to the nearest float64: written out, as exponential functions differ from machine to machine.
_EIGHTHS = (
    *(1.0, 1.0905077326652577, 1.189207115002721, 1.2968395546510096),
    *(1.4142135623730951, 1.5422108254079407, 1.681792830507429, 1.8340080864093424),
)
_BINS = _OCTAVES * len(_EIGHTHS)
_EDGES: Floats = np.array([np.ldexp(eighth, octave) for octave in range(2 * _OCTAVES) for eighth in _EIGHTHS])
"""Lower edges of the bins: float64 [2 * bins], as bins that are drawn wider may end behind the last."""


@dataclass(frozen=True)
class Bins:
    """A histogram to draw."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    infinite: int = 0  # documents with an impossible event, which are in no bin
    unscored: int = 0  # documents without a perplexity, which are in no bin


@dataclass
class _Stored:
    models: list[str]
    # of each group: its name, and of each model the bins that have documents, each with how many
    groups: list[tuple[str | None, list[list[tuple[Annotated[int, Meta(ge=0, lt=_BINS + 2)], Whole]]]]]


class PerplexityHistogram:
    """Counts documents by group, model and perplexity: 4 kB for each group and model."""

    # models: names of the models, in the order of the columns.

    STORED = _Stored

    def __init__(self, models: Sequence[str]) -> None:
        self.models = tuple(models)
        self._counts: dict[str | None, Ints] = {}

    def add(self, groups: Groups, perplexity: Floats) -> None:
        """Count the documents of a batch."""
        # perplexity: float64 [documents, models]; inf where an event is impossible, NaN where there is nothing to score.
        width = _BINS + 2
        places = np.searchsorted(_EDGES[1:_BINS], perplexity, side="right")
        places[np.isposinf(perplexity)] = _BINS
        places[np.isnan(perplexity)] = _BINS + 1
        models, rows = len(self.models), len(groups.names) + 1
        cells = ((groups.codes[:, None] + 1) * models + np.arange(models)) * width + places
        counts = np.bincount(cells.ravel(), minlength=rows * models * width).reshape(rows, models, width)
        for name, own in zip((None, *groups.names), counts, strict=True):
            if own.any():
                self._add(name, own)

    def merge(self, other: PerplexityHistogram, names: Mapping[str, str] | None = None) -> None:
        """Add the counts of other documents."""
        for name, counts in other._counts.items():
            self._add(name if name is None else (names or {}).get(name, name), counts)

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the names of the groups, in order."""
        return tuple(sorted(name for name in self._counts if name is not None))

    def counts(self, model: str, group: str | None = None) -> Ints:
        """Return the counts of a model: int64 [514], of 512 bins, of infinite perplexities and of documents without one."""
        # Each bin is an eighth of a bit per token wide, which is a factor of 2^(1/8) in perplexity.
        column = self.models.index(model)
        own = list(self._counts.values()) if group is None else [self._counts[group]]
        return np.sum([counts[column] for counts in own], axis=0) if own else np.zeros(_BINS + 2, np.int64)

    def bins(self, model: str, group: str | None = None, extent: tuple[int, int] | None = None) -> Bins:
        """Return a histogram of at most 60 bins, whose width is an eighth of a bit per token times a power of two."""
        # extent: first and last bin that others need, from `extent`, so that several histograms have the same bins.
        counts = self.counts(model, group)
        first, last = extent or self.extent(model, group) or (0, 0)
        width = 1
        while last // width - first // width >= MOST_POINTS:
            width *= 2
        first, last = first // width, last // width
        end = min((last + 1) * width, _BINS)
        joined = np.add.reduceat(counts[:end], range(first * width, end, width))
        edges = tuple(_EDGES[first * width : (last + 2) * width : width].tolist())
        return Bins(edges, tuple(joined.tolist()), int(counts[_BINS]), int(counts[_BINS + 1]))

    def extent(self, model: str, group: str | None = None) -> tuple[int, int] | None:
        """Return the first and the last bin that has documents, in eighths of a bit per token; None where none has."""
        places = np.flatnonzero(self.counts(model, group)[:_BINS])
        return (int(places[0]), int(places[-1])) if len(places) else None

    def median(self, model: str, group: str | None = None) -> tuple[float, float] | None:
        """Return the ends of the bin that the median of the documents with a perplexity is in."""
        # Both infinite where most perplexities are, None where there is no such document.
        ranks = np.cumsum(self.counts(model, group)[: _BINS + 1])
        if not ranks[-1]:
            return None
        place = int(np.searchsorted(ranks, (ranks[-1] + 1) // 2))
        if place == _BINS:
            return math.inf, math.inf
        return float(_EDGES[place]), float(_EDGES[place + 1])

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values: only bins that have documents, as pairs of place and count."""
        rows = [
            [name, [[[k, count] for k, count in enumerate(row) if count] for row in self._counts[name].tolist()]]
            for name in (None, *self.groups)
            if name in self._counts
        ]
        return {"models": list(self.models), "groups": rows}

    @classmethod
    def of_stored(cls, stored: _Stored) -> PerplexityHistogram:
        """Return the histogram whose `to_dict` was stored."""
        histogram = cls(stored.models)
        for name, columns in stored.groups:
            counts = np.zeros((len(columns), _BINS + 2), np.int64)
            for row, pairs in zip(counts, columns, strict=True):
                for place, count in pairs:
                    row[place] = count
            histogram._add(name, counts)
        return histogram

    def _add(self, name: str | None, counts: Ints) -> None:
        self._counts[name] = self._counts[name] + counts if name in self._counts else counts.astype(np.int64)
