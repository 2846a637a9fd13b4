"""What the engine of whole distributions asks of an n-gram model: tiles, and columns that need no tiles."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.ngram.full_distribution import Contexts, WholeDistributions
from lmgauge.scores import ScoreBatch
from lmgauge.scores.distributions.blocks import BatchDistributions, BlockDistributions
from lmgauge.scores.distributions.reductions import (
    Columns,
    Entropy,
    KullbackLeibler,
    Mass,
    Moments,
    PairReduction,
    Rank,
    Reduction,
    TopK,
)
from lmgauge.scores.distributions.tile import Tile


class Rows(Protocol):
    """What fills rows over the vocabulary after contexts, in whatever form its tables name these."""

    @property
    def words(self) -> int:
        """Return the size of the vocabulary."""
        ...

    def rows(self, contexts: Contexts, *, logarithms: bool) -> NDArray[np.float64]:
        """Return probabilities, or their logarithms in nats, `LOWEST` for what cannot come, float64 [n, vocabulary]."""
        # contexts: uint32 [n, order - 1].
        ...


class RowBlock(BatchDistributions):
    """The distributions at some events of a block of text, each a row over the vocabulary."""

    # contexts: uint32 [n, order - 1], their contexts.

    parallel = True

    def __init__(self, whole: Rows, batch: ScoreBatch, contexts: Contexts) -> None:
        super().__init__(batch, whole.words)
        self._rows, self._contexts = whole, contexts

    def tile(self, rows: slice, targets: NDArray[np.int64]) -> Tile:
        return _RowTile(self._rows, self._contexts[rows], targets)


class NgramBlock(RowBlock):
    """The same, where sums over a distribution follow from the words seen after its context."""

    # contexts: uint32 [n, order - 1], their contexts.

    def __init__(self, whole: WholeDistributions, batch: ScoreBatch, contexts: Contexts) -> None:
        super().__init__(whole, batch, contexts)
        self._whole = whole

    def closed_form(self, reduction: Reduction | PairReduction, other: BlockDistributions | None = None) -> Columns | None:
        if isinstance(other, NgramBlock):
            same = isinstance(reduction, KullbackLeibler) and self.vocabulary_size == other.vocabulary_size
            return {"kl_ab": self._whole.divergences(self._contexts, other._whole, other._contexts)} if same else None
        if other is not None:
            return None
        if isinstance(reduction, Entropy):
            return {"entropy": np.maximum(0.0, -self._sums[:, 1])}
        if isinstance(reduction, Moments):
            return {"mean_logprob": self._sums[:, 1], "logprob_deviation": np.sqrt(self._sums[:, 2])}
        if isinstance(reduction, Mass) and reduction.ids is None:
            return {reduction.name: self._sums[:, 0]}
        if isinstance(reduction, Rank):
            return {"rank": self._whole.ranks(self._contexts, self._batch.token_ids)}
        if isinstance(reduction, TopK):
            ids, logprobs = self._whole.top(self._contexts, reduction.k)
            return {"top_ids": ids, "top_logprobs": logprobs}
        return None

    @cached_property
    def _sums(self) -> NDArray[np.float64]:
        return self._whole.sums(self._contexts)


class _RowTile(Tile):
    """A tile whose probabilities are no exponentials: the model has them."""

    def __init__(self, whole: Rows, contexts: Contexts, targets: NDArray[np.int64]) -> None:
        super().__init__(lambda: whole.rows(contexts, logarithms=True), targets)
        self._whole, self._contexts = whole, contexts

    @cached_property
    def logprob(self) -> NDArray[np.float64]:
        return self._whole.rows(self._contexts, logarithms=True)

    @cached_property
    def p(self) -> NDArray[np.float64]:
        return self._whole.rows(self._contexts, logarithms=False)
