"""The whole distributions of a network at the events of one block, tile by tile."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.distributions.blocks import BlockDistributions
from lmgauge.distributions.tile import LOWEST, Tile, ready
from lmgauge.models.network.engine import Job
from lmgauge.models.network.sequences import BlockEvents
from lmgauge.models.network.tokens import NO_ID
from lmgauge.scores import ScoreBatch

if TYPE_CHECKING:
    from lmgauge.models.network.model import NetworkModel


class NetworkDistributions(BlockDistributions):
    """The distributions of a network at events of one block."""

    # firsts: int64, events that nothing is shown before: all tokens are taken as equally probable there; rows: int64, which
    # of the events to look at, ascending.

    parallel = False  # the library computes in threads itself

    def __init__(
        self,
        model: NetworkModel,
        events: BlockEvents,
        jobs: Sequence[Job],
        firsts: NDArray[np.int64],
        rows: NDArray[np.int64],
        threads: int,
    ) -> None:
        self._model, self._events, self._jobs, self._threads = model, events, jobs, threads
        self._firsts, self._rows = firsts, rows
        self.vocabulary_size = len(model.vocabulary)

    def __len__(self) -> int:
        return len(self._rows)

    def tiles(self) -> Iterator[Tile]:
        model, targets = self._model, self._events.ids[self._rows].astype(np.int64)
        wanted = np.zeros(len(self._events.ids), bool)
        wanted[self._rows] = True
        # Where nothing is shown, no job computes the distribution.
        uniform = np.isin(self._rows, self._firsts)
        at = 0
        with model.engine.threads(self._threads):
            pieces = model.engine.distributions(self._jobs, model.tokens.predicted_ids, np.delete(wanted, self._firsts))
            for logprob, p in pieces:
                begin = 0
                while begin < len(logprob):
                    at = yield from self._uniform(uniform, targets, at)
                    ahead = np.flatnonzero(uniform[at : at + len(logprob) - begin])
                    size = int(ahead[0]) if len(ahead) else len(logprob) - begin
                    part = slice(begin, begin + size)
                    clipped = logprob[part].clip(min=LOWEST)
                    yield ready(clipped, None if p is None else p[part], targets[at : at + size])
                    at, begin = at + size, begin + size
            yield from self._uniform(uniform, targets, at)

    def _uniform(self, uniform: NDArray[np.bool_], targets: NDArray[np.int64], at: int) -> Generator[Tile, None, int]:
        # Tiles of events at a place that nothing is shown before; returns the place behind them.
        model = self._model
        while at < len(uniform) and uniform[at]:
            row = np.where(model.tokens.predicted_ids == NO_ID, LOWEST, model.uniform())
            yield ready(row[None], None, targets[at : at + 1])
            at += 1
        return at

    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        values = np.zeros(len(self._events.ids))
        values[self._rows] = np.zeros(0) if logprob is None else logprob
        unscored = self._model.unscored(self._events, self._firsts)
        batch = self._model.table_of(self._events, values, unscored)
        rows = self._rows if unscored is None else self._rows - np.cumsum(unscored)[self._rows]
        return batch.of_rows(rows)
