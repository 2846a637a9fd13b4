"""The segments of a text that have enough tokens for a context, so that no network computes the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from lmgauge.errors import UsageError
from lmgauge.models.network.model import NetworkModel
from lmgauge.models.network.sequences import block_events
from lmgauge.text.segments import Segments


class LongSegments:
    """The segments with a token that has at least some number of tokens before it, what begins a text included."""

    def __init__(self, model: NetworkModel, blocks: Iterable[Segments], before: int) -> None:
        self._model, self._blocks, self._before = model, blocks, before
        self.events = self.segments = 0

    def __iter__(self) -> Iterator[Segments]:
        # Blocks with the long segments only, numbered anew; none that would be empty.
        self.events = self.segments = number = 0
        model = self._model
        # Of n tokens the last has n - 1 before it, and what is shown before the first, if anything is.
        least = self._before + (model.context_policy.first not in ("bos", "eos"))
        for block in self._blocks:
            if block.given_starts is not None:
                raise UsageError("contexts are counted from where a segment begins: they do not go with given text")
            counts = block_events(block, model.tokens, model.context_policy, spans=False).counts
            self.events += int(counts.sum())
            self.segments += len(counts)
            if (chosen := counts >= least).any():
                yield replace(block.where(chosen), first=number)
                number += int(np.count_nonzero(chosen))
