"""The whole distributions of a network at the events of one block, tile by tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, starmap
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
        computed = np.flatnonzero(~np.isin(self._rows, self._firsts))
        same = np.where(model.tokens.predicted_ids == NO_ID, LOWEST, model.uniform())[None]
        at = done = 0
        with model.engine.threads(self._threads):
            pieces = model.engine.distributions(self._jobs, model.tokens.predicted_ids, np.delete(wanted, self._firsts))
            for logprob, p in pieces:
                places = computed[done : done + len(logprob)]
                done += len(places)
                # places [1, 2, 4] -> bounds [0, 2, 3]: two tiles, and the distribution that is the same before each.
                bounds = [0, *(np.flatnonzero(np.diff(places) > 1) + 1).tolist(), len(places)] if len(places) else []
                for part in starmap(slice, pairwise(bounds)):
                    first, last = int(places[part][0]), int(places[part][-1]) + 1
                    yield from (ready(same, None, targets[i : i + 1]) for i in range(at, first))
                    yield ready(logprob[part].clip(min=LOWEST), None if p is None else p[part], targets[first:last])
                    at = last
        yield from (ready(same, None, targets[i : i + 1]) for i in range(at, len(targets)))

    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        values = np.zeros(len(self._events.ids))
        values[self._rows] = np.zeros(0) if logprob is None else logprob
        unscored = self._model.unscored(self._events, self._firsts)
        batch = self._model.table_of(self._events, values, unscored)
        rows = self._rows if unscored is None else self._rows - np.cumsum(unscored)[self._rows]
        return batch.of_rows(rows)
