"""The distributions of a mixture: those of its components, walked together and mixed tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lmgauge.distributions.blocks import BlockDistributions
from lmgauge.distributions.reduce import together
from lmgauge.distributions.tile import Tile, as_numpy, possible
from lmgauge.scores import ScoreBatch
from lmgauge.text.segments import Segments

Floats = NDArray[np.float64]


def mixed(logprobs: Sequence[Floats], log_weights: Floats) -> Floats:
    """Return ln sum_k weight_k p_k; the largest term is taken out first, so that nothing underflows."""
    # logprobs: of each component float64 of one shape, nats; -inf allowed; log_weights: float64 [components].
    # np.exp(mixed([np.log([0.2]), np.log([0.6])], np.log([0.5, 0.5]))).round(6) -> [0.4]
    terms = [logprob + weight for logprob, weight in zip(logprobs, log_weights, strict=True)]
    shift = np.maximum.reduce(terms)
    shift[shift == -np.inf] = 0.0
    # One after another: np.sum may add in an order that depends on the length, and so on the batch.
    total = np.zeros_like(shift)
    for term in terms:
        total += np.exp(term - shift)
    with np.errstate(divide="ignore"):
        logprob: Floats = shift + np.log(total)
    return np.minimum(logprob, 0.0)  # a certain event is not more than certain by rounding


class MixedDistributions(BlockDistributions):
    """The distributions of a mixture at events of one block."""

    # log_weights: float64 [components]; combine: makes one batch of the components' own.

    def __init__(
        self,
        block: Segments,
        parts: Sequence[BlockDistributions],
        log_weights: Floats,
        combine: Callable[[Segments, list[ScoreBatch]], ScoreBatch],
    ) -> None:
        self._block, self._parts, self._log_weights, self._combine = block, parts, log_weights, combine
        self._own: list[list[Floats]] = [[] for _ in parts]
        self.vocabulary_size = parts[0].vocabulary_size

    def __len__(self) -> int:
        return len(self._parts[0])

    def tiles(self) -> Iterator[Tile]:
        for tiles in together(*(part.tiles() for part in self._parts)):
            for own, tile in zip(self._own, tiles, strict=True):
                own.append(tile.of_targets())
            arrays = [possible(as_numpy(tile.logprob)) for tile in tiles]
            # Over a union of words, a component that does not know the word has <unk>, id 0.
            targets = np.maximum.reduce([tile.targets for tile in tiles])
            yield Tile(lambda arrays=arrays: mixed(arrays, self._log_weights), targets)  # type: ignore[misc]

    def finish(self, logprob: Floats | None) -> ScoreBatch:
        own = [np.concatenate([np.zeros(0), *values]) for values in self._own]
        return self._combine(self._block, [part.finish(values) for part, values in zip(self._parts, own, strict=True)])
