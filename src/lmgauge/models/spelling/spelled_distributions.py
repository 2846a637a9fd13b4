"""The distributions of a model whose unseen words are spelled: those of the model inside, with rows that are spelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from lmgauge.distributions.blocks import BlockDistributions
from lmgauge.distributions.reductions import Columns, PairReduction, Reduction
from lmgauge.distributions.tile import Tile
from lmgauge.scores import ScoreBatch


class SpelledDistributions(BlockDistributions):
    """The distributions of the model inside; `<unk>` stands for all unseen words together."""

    def __init__(self, inside: BlockDistributions, finished: Callable[[ScoreBatch], ScoreBatch]) -> None:
        self._inside, self._finished = inside, finished
        self.parallel, self.vocabulary_size = inside.parallel, inside.vocabulary_size

    def __len__(self) -> int:
        return len(self._inside)

    def tiles(self) -> Iterator[Tile]:
        return self._inside.tiles()

    def closed_form(self, reduction: Reduction | PairReduction, other: BlockDistributions | None = None) -> Columns | None:
        return self._inside.closed_form(reduction, other._inside if isinstance(other, SpelledDistributions) else other)

    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        # logprob: float64 [rows], nats, of the tokens that came; None if no tile was computed.
        return self._finished(self._inside.finish(logprob))
