"""The engine of whole distributions: a model, a text, and what to keep of the distribution at every event."""

# Two models are walked together, whatever sizes their tiles have.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import tee
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.scores import ScoreBatch
from lmgauge.scores.distributions.blocks import BlockDistributions, Events, distributions_of
from lmgauge.scores.distributions.reductions import Columns, PairReduction, Reduction
from lmgauge.scores.distributions.tile import Tile
from lmgauge.scores.scoring import different_events, with_same_events

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.segments import Segments

LOGPROB = "logprob"
_Seen = TypeVar("_Seen")


def reduce(
    model: LanguageModel,
    segments: Iterable[Segments],
    reductions: Sequence[Reduction],
    *,
    events: Events | None = None,
    spans: bool = True,
    threads: int | None = None,
) -> Iterator[ScoreBatch]:
    """Yield a batch of the score table for each block, with the columns of the reductions.

    Args:
        model: the model.
        segments: blocks of text, e.g. a `Corpus`.
        reductions: what to keep.
        events: which events to look at, by number; all if None. The batches have rows for no others.
        spans: whether to fill the column `ends`, in bytes.
        threads: how many to compute with; does not change results, except by rounding.

    Raises:
        InputError: the text cannot be scored.
        UsageError: the model gives no distributions.

    Example:
        >>> import lmgauge
        >>> from lmgauge.scores.distributions import Entropy
        >>> text = lmgauge.Corpus.from_strings(["a b", "a"])
        >>> model = lmgauge.train("mle", text, order=1)  # a and </s> twice, b once
        >>> [batch.extra["entropy"].round(3).tolist() for batch in reduce(model, text, [Entropy()])]
        [[1.055, 1.055, 1.055, 1.055, 1.055]]
    """
    blocks = distributions_of(model, segments, events=events, spans=spans, threads=threads)
    yield from reduced(blocks, reductions, threads)


def reduced(
    blocks: Iterable[BlockDistributions], reductions: Sequence[Reduction], threads: int | None = None
) -> Iterator[ScoreBatch]:
    """Yield a batch of the score table for each block, as `reduce` does."""
    for block in blocks:
        closed = [(reduction, block.closed_form(reduction)) for reduction in reductions]
        columns = {name: values for _, found in closed for name, values in (found or {}).items()}
        open_ones = [reduction for reduction, found in closed if found is None]
        if open_ones or not reductions:
            at_a_time = thread_count(threads) if block.parallel else 1
            columns |= joined(partial(_look, open_ones), block.tiles(), no_events(block), at_a_time)
        batch = block.finish(columns.pop(LOGPROB, None))
        yield replace(batch, extra={**batch.extra, **columns})


def _look(reductions: Sequence[Reduction], tile: Tile) -> Columns:
    values = {name: values for reduction in reductions for name, values in reduction(tile).items()}
    return {LOGPROB: tile.of_targets()} | values


def reduce_pair(
    a: LanguageModel,
    b: LanguageModel,
    segments: Iterable[Segments],
    reduction: PairReduction,
    *,
    events: Events | None = None,
    spans: bool = False,
    threads: int | None = None,
) -> Iterator[tuple[ScoreBatch, ScoreBatch, Columns]]:
    """Yield for each block the rows of two models and the columns of a reduction over both; arguments as of `reduce`.

    Args:
        a, b: models with the same ids for the same tokens, which cut text into the same events.
        segments: blocks of text.
        reduction: what to keep.
        events: which events to look at, by number; all if None.
        spans: whether to fill the column `ends`, in bytes.
        threads: how many.

    Raises:
        InputError: the models cut the text into different events, or it cannot be scored.

    Example:
        >>> import lmgauge
        >>> from lmgauge.scores.distributions import Divergences
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> small, large = (lmgauge.train("witten-bell", text, order=order) for order in (1, 2))
        >>> for _, _, columns in reduce_pair(large, small, text, Divergences()):
        ...     columns["kl_ab"][:4].round(3).tolist()  # after <s>, the, cat, sat
        [0.617, 0.277, 0.355, 0.617]
    """
    own, *texts = tee(segments, 3)
    chosen = {"events": events, "spans": spans, "threads": threads}
    blocks = [distributions_of(model, text, **chosen) for model, text in zip((a, b), texts, strict=True)]  # type: ignore[arg-type]
    for block, one, two in zip(own, *blocks, strict=True):
        closed = one.closed_form(reduction, two) if len(one) == len(two) else None
        columns = {} if closed is None else dict(closed)
        if closed is None:
            at_a_time = thread_count(threads) if one.parallel and two.parallel else 1
            look = partial(look_at_both, reduction)
            columns = joined(look, together(one.tiles(), two.tiles()), (no_events(one), no_events(two)), at_a_time)
        first, second = one.finish(columns.pop("logprob_a", None)), two.finish(columns.pop("logprob_b", None))
        with_same_events(block, [first, second])
        yield first, second, columns


def look_at_both(reduction: PairReduction, pair: tuple[Tile, ...]) -> Columns:
    """Return the columns of a reduction over two tiles of the same events, and what came as `logprob_a`, `logprob_b`."""
    first, second = pair
    return {"logprob_a": first.of_targets(), "logprob_b": second.of_targets()} | dict(reduction(first, second))


def together(*parts: Iterator[Tile]) -> Iterator[tuple[Tile, ...]]:
    """Yield the tiles of models cut at the same events."""
    waiting: list[Tile | None] = [None] * len(parts)
    while True:
        here = [tile or next(part, None) for tile, part in zip(waiting, parts, strict=True)]
        tiles = [tile for tile in here if tile is not None]
        if len(tiles) < len(parts):
            if tiles:
                raise different_events()
            return
        size = min(map(len, tiles))
        yield tuple(tile.part(0, size) if size < len(tile) else tile for tile in tiles)
        waiting = [tile.part(size, len(tile)) if size < len(tile) else None for tile in tiles]


def no_events(block: BlockDistributions) -> Tile:
    """Return a tile of a block that has no events."""
    return Tile(lambda: np.zeros((0, block.vocabulary_size)), np.zeros(0, np.int64))


def joined(
    work: Callable[[_Seen], Columns], items: Iterable[_Seen], nothing: _Seen, threads: int
) -> dict[str, NDArray[Any]]:
    """Return the columns that `work` makes of all items, as one."""
    # items: in order.
    # joined(lambda n: {"square": np.full(n, n * n)}, [1, 2], 0, threads=1)["square"] -> [1, 4, 4]
    columns: dict[str, list[NDArray[Any]]] = {}
    for part in map_in_order(work, items, threads):
        for name, values in part.items():
            columns.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in columns.items()} or dict(work(nothing))
