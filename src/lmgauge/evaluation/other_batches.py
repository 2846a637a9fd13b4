"""The same model in other batches: every segment, and every window of it, by itself. What moves then is rounding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice, tee
from typing import TYPE_CHECKING

from lmgauge.scores import ScoreBatch
from lmgauge.scores.distributions.blocks import BlockDistributions, Events, WrappedDistributions, distributions_of
from lmgauge.scores.distributions.reduce import reduced_pair
from lmgauge.scores.distributions.reductions import Columns, PairReduction
from lmgauge.scores.distributions.tile import Tile, ready
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel


def by_itself(model: LanguageModel) -> LanguageModel:
    """Return the same model, which computes every window by itself; a model without windows as it is."""
    if model.tokens is None or model.options is None:
        return model
    return model.with_options(replace(model.options, batch_tokens=1))  # type: ignore[attr-defined, no-any-return]


def against_itself(
    model: LanguageModel,
    segments: Iterable[Segments],
    reduction: PairReduction,
    *,
    events: Events | None = None,
    threads: int | None = None,
) -> Iterator[tuple[ScoreBatch, ScoreBatch, Columns]]:
    """Yield what `reduce_pair` does of a model in its own batches, and of the same model one window after the other."""
    # The first are held in memory: an engine that has one context cannot compute both in turns.
    own, whole, alone = tee(segments, 3)
    one_by_one = (block.part(i, i + 1) for block in alone for i in range(len(block)))
    parts = distributions_of(by_itself(model), one_by_one, events=events, spans=False, threads=threads)
    for block, one in zip(own, distributions_of(model, whole, events=events, threads=threads), strict=True):
        held = [ready(tile.xp.asarray(tile.logprob, copy=True), None, tile.targets) for tile in one.tiles()]
        again = chain.from_iterable(part.tiles() for part in islice(parts, len(block)))
        yield reduced_pair(block, _WithTiles(one, held), _WithTiles(one, again), reduction, threads)


class _WithTiles(WrappedDistributions):
    # The events of a block, and tiles that were computed in another way.

    def __init__(self, block: BlockDistributions, tiles: Iterable[Tile]) -> None:
        super().__init__(block, lambda batch: batch)
        self._tiles = tiles

    def tiles(self) -> Iterator[Tile]:
        return iter(self._tiles)
