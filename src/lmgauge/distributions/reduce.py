"""The engine of whole distributions: a model, a text, and what to keep of the distribution at every event.

A model that computes many distributions at a time offers `distributions`; of any other, `log_distribution` is asked event
by event. Two models are walked together, whatever sizes their tiles have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import tee
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import policy_of
from lmgauge.contexts import EventContexts
from lmgauge.distributions.reductions import Columns, Reduction, columns_of
from lmgauge.distributions.tile import Tile
from lmgauge.errors import UsageError
from lmgauge.scores import ScoreBatch
from lmgauge.text.vocabulary import BOS
from lmgauge.threads import map_in_order, thread_count

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.segments import Segments

Events = NDArray[np.int64]  # numbers of events of the text, from 0, ascending
TILE_ENTRIES = 1 << 16  # of a tile in float64: half a megabyte stays in a core's cache
LOGPROB = "logprob"
_Seen = TypeVar("_Seen")


class BlockDistributions(Protocol):
    """The distributions at the events of one block of text that were asked for.

    Attributes:
        parallel: whether its tiles may be computed in threads.
        vocabulary_size: columns of its tiles.
    """

    parallel: bool
    vocabulary_size: int

    def __len__(self) -> int:
        """Return the number of events."""
        ...

    def tiles(self) -> Iterator[Tile]:
        """Yield the tiles, in order; a tile is good until the next is asked for, unless `parallel`."""
        ...

    def closed_form(self, reduction: Reduction | PairReduction, other: BlockDistributions | None = None) -> Columns | None:
        """Return the columns of a reduction without looking at all tokens; None where there is no such way.

        Args:
            reduction: what to keep.
            other: for a reduction of two models, the same events of the other one.
        """
        ...

    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        """Return the rows of the score table.

        Args:
            logprob: float64 [n], nats, of the tokens that came; None if no tile was computed.
        """
        ...


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
        threads: how many to compute with; no value depends on it but for rounding.

    Raises:
        InputError: the text cannot be scored.
        UsageError: the model gives no distributions.

    Example:
        >>> import lmgauge
        >>> from lmgauge.distributions import Entropy
        >>> text = lmgauge.Corpus.from_strings(["a b", "a"])
        >>> model = lmgauge.train("mle", text, order=1)  # a and </s> twice, b once
        >>> [batch.extra["entropy"].round(3).tolist() for batch in reduce(model, text, [Entropy()])]
        [[1.055, 1.055, 1.055, 1.055, 1.055]]
    """
    blocks = distributions_of(model, segments, events=events, spans=spans, threads=threads)
    yield from reduced(model, blocks, reductions, threads)


def reduced(
    model: LanguageModel,
    blocks: Iterable[BlockDistributions],
    reductions: Sequence[Reduction],
    threads: int | None = None,
) -> Iterator[ScoreBatch]:
    """Yield a batch of the score table for each block, as `reduce` does.

    Args:
        model: the model.
        blocks: its distributions.
        reductions: what to keep.
        threads: how many to compute with.
    """
    for block in blocks:
        columns: dict[str, NDArray[Any]] = {}
        open_ones = []
        for reduction in reductions:
            closed = block.closed_form(reduction)
            if closed is None:
                open_ones.append(reduction)
            else:
                columns |= closed
        logprob = None
        if open_ones or not reductions:
            at_a_time = thread_count(threads) if block.parallel else 1
            values = joined(_with_targets(open_ones), block.tiles(), no_events(block), at_a_time)
            logprob = values.pop(LOGPROB)
            columns |= values
        batch = block.finish(logprob)
        # In the order in which they were asked for, whatever way they came.
        yield replace(batch, extra={**batch.extra, **columns})


class PairReduction(Protocol):
    """What is kept of two distributions over the same tokens after the same context: any function of two tiles.

    Example:
        >>> from lmgauge.distributions import Tile
        >>> import numpy as np
        >>> def largest_change(a, b):
        ...     return {"change": np.abs(a.p - b.p).max(axis=1)}
        >>> tiles = [Tile(lambda p=p: np.log([p]), np.array([0])) for p in ([0.5, 0.5], [0.25, 0.75])]
        >>> largest_change(*tiles)["change"].tolist()
        [0.25]
    """

    def __call__(self, a: Tile, b: Tile) -> Columns:
        """Return columns by name, each [n] or [n, k].

        Args:
            a, b: tiles of the same n events.
        """
        ...


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
        >>> from lmgauge.distributions import Divergences
        >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
        >>> small, large = (lmgauge.train("witten-bell", text, order=order) for order in (1, 2))
        >>> for _, _, columns in reduce_pair(large, small, text, Divergences()):
        ...     columns["kl_ab"][:4].round(3).tolist()  # after <s>, the, cat, sat
        [0.617, 0.277, 0.355, 0.617]
    """
    own, other = tee(segments)
    blocks = [distributions_of(m, t, events=events, spans=spans, threads=threads) for m, t in ((a, own), (b, other))]
    for one, two in zip(*blocks, strict=True):
        closed = one.closed_form(reduction, two)
        if closed is not None:
            yield one.finish(None), two.finish(None), closed
            continue
        pairs = together(one.tiles(), two.tiles())
        at_a_time = thread_count(threads) if one.parallel and two.parallel else 1

        def look(pair: tuple[Tile, ...]) -> Columns:
            first, second = pair
            targets = {"logprob_a": first.of_targets(), "logprob_b": second.of_targets()}
            return targets | dict(reduction(first, second))

        columns = joined(look, pairs, (no_events(one), no_events(two)), at_a_time)
        first, second = columns.pop("logprob_a"), columns.pop("logprob_b")
        yield one.finish(first), two.finish(second), columns


def together(*parts: Iterator[Tile]) -> Iterator[tuple[Tile, ...]]:
    """Yield the tiles of models cut at the same events.

    Args:
        parts: of each model, tiles of the same events.

    Example:
        >>> tiles = lambda *sizes: (Tile(lambda: np.zeros((9, 1)), np.zeros(size, np.int64)) for size in sizes)
        >>> [len(one) for one, two in together(tiles(4, 2), tiles(3, 3))]
        [3, 1, 2]
    """
    waiting: list[Tile | None] = [None] * len(parts)
    while True:
        here = [tile or next(part, None) for tile, part in zip(waiting, parts, strict=True)]
        tiles = [tile for tile in here if tile is not None]
        if len(tiles) < len(parts):
            return
        size = min(map(len, tiles))
        yield tuple(tile.part(0, size) if size < len(tile) else tile for tile in tiles)
        waiting = [tile.part(size, len(tile)) if size < len(tile) else None for tile in tiles]


def distributions_of(
    model: LanguageModel,
    segments: Iterable[Segments],
    *,
    events: Events | None = None,
    spans: bool = True,
    threads: int | None = None,
) -> Iterator[BlockDistributions]:
    """Yield the distributions of a model at the events of each block; arguments as of `reduce`.

    Args:
        model: the model.
        segments: blocks of text.
        events: which events to look at; all if None.
        spans: whether the rows get byte spans.
        threads: how many to compute with.

    Raises:
        UsageError: the model has no method for it, or its first tokens are not scored, so that contexts are not whole.
    """
    if computes_many(model):
        own: Callable[..., Iterator[BlockDistributions]] = model.distributions  # type: ignore[attr-defined]
        yield from own(segments, events=events, spans=spans, threads=threads)
        return
    yield from by_event(model, model.score(segments, spans=spans, threads=threads), events)


def computes_many(model: object, method: str = "distributions") -> bool:
    """Return True if a model has a method for many distributions that speaks for its `log_distribution`.

    A class that changes `log_distribution` and inherits the other has two answers: then the first one counts.

    Args:
        model: any.
        method: its name.

    Example:
        >>> class Fast:
        ...     def log_distribution(self, context): ...
        ...     def distributions(self, segments): ...
        >>> class Changed(Fast):
        ...     def log_distribution(self, context): ...
        >>> computes_many(Fast()), computes_many(Changed())
        (True, False)
    """
    if not hasattr(model, method):
        return False
    places = [getattr(model, "__dict__", {}), *map(vars, type(model).__mro__)]

    def place(name: str) -> int:
        return next((i for i, names in enumerate(places) if name in names), len(places))

    return place(method) <= place("log_distribution")


def by_event(model: LanguageModel, batches: Iterable[ScoreBatch], events: Events | None) -> Iterator[BlockDistributions]:
    """Yield the distributions of a model that answers one question at a time, in tiles.

    Args:
        model: what has `log_distribution`.
        batches: its rows, in order.
        events: which events to look at; all if None.

    Raises:
        UsageError: first tokens are not scored, so that contexts are not whole.
    """
    policy = policy_of(model)
    if not policy.scores_first_tokens:
        raise UsageError(
            f"{model.label}: whole distributions need whole contexts, but first tokens are unscored (--first-token)"
        )
    before = np.array([BOS], np.uint32)
    seen = 0
    for batch in batches:
        ids, counts = batch.token_ids, batch.segment_events
        contexts = EventContexts(ids, counts, bos=BOS, runs_on=policy.runs_on, before=before)
        before = contexts.ids
        rows = rows_among(events, seen, len(batch))
        yield _ByEvent(model, rows_of(batch, rows), contexts, rows)
        seen += len(batch)


class _ByEvent:
    """Distributions asked of a model one by one."""

    def __init__(self, model: LanguageModel, batch: ScoreBatch, contexts: EventContexts, rows: Events) -> None:
        self._model, self._batch, self._contexts, self._rows = model, batch, contexts, rows
        # Only models that may score blocks at a time are asked from several threads.
        self.parallel = bool(getattr(model, "blocks_are_independent", False))
        self.vocabulary_size = len(model.vocabulary)

    def __len__(self) -> int:
        return len(self._rows)

    def tiles(self) -> Iterator[Tile]:
        targets = self._batch.token_ids.astype(np.int64)
        at_a_time = max(1, TILE_ENTRIES // max(1, len(self._model.vocabulary)))
        for begin in range(0, len(self._rows), at_a_time):
            rows = self._rows[begin : begin + at_a_time]
            yield Tile(lambda rows=rows: self._stacked(rows), targets[begin : begin + at_a_time])  # type: ignore[misc]

    def _stacked(self, rows: Events) -> NDArray[np.float64]:
        """Return the log-probabilities after the contexts of some rows, float64 [rows, vocabulary]."""
        return np.stack([self._model.log_distribution(self._contexts[row]) for row in rows.tolist()])

    def closed_form(self, reduction: Reduction | PairReduction, other: BlockDistributions | None = None) -> Columns | None:
        return None

    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        return self._batch


def rows_among(events: Events | None, seen: int, size: int) -> Events:
    """Return which rows of a block were asked for, int64, ascending.

    Args:
        events: numbers of events of the text, ascending; None for all.
        seen: events before the block.
        size: events of the block.

    Example:
        >>> rows_among(np.array([1, 4, 5, 9]), seen=4, size=3).tolist()
        [0, 1]
    """
    if events is None:
        return np.arange(size)
    return events[np.searchsorted(events, seen) : np.searchsorted(events, seen + size)] - seen


def rows_of(batch: ScoreBatch, rows: Events) -> ScoreBatch:
    """Return a batch of some of the rows; segments without any stay, with none.

    Args:
        batch: rows of the score table.
        rows: int64, ascending: which to keep. Spans begin where that of the row kept before ended.

    Example:
        >>> from lmgauge.scores.table import example_batch
        >>> rows_of(example_batch(), np.array([0, 2])).segment_events.tolist()
        [1, 1]
    """
    if len(rows) == len(batch):
        return batch
    owner = np.repeat(np.arange(len(batch.segment_events)), batch.segment_events)
    return replace(
        batch,
        segment_events=np.bincount(owner[rows], minlength=len(batch.segment_events)),
        token_ids=batch.token_ids[rows],
        logprob=batch.logprob[rows],
        kind=batch.kind[rows],
        ends=batch.ends[rows] if len(batch.ends) else batch.ends,
        extra={name: values[rows] for name, values in batch.extra.items()},
    )


def _with_targets(reductions: Sequence[Reduction]) -> Callable[[Tile], Columns]:
    return lambda tile: {LOGPROB: tile.of_targets(), **columns_of(tile, reductions)}


def no_events(block: BlockDistributions) -> Tile:
    """Return a tile of a block that has no events.

    Args:
        block: of which the number of tokens is taken.
    """
    return Tile(lambda: np.zeros((0, block.vocabulary_size)), np.zeros(0, np.int64))


def joined(
    work: Callable[[_Seen], Columns], items: Iterable[_Seen], nothing: _Seen, threads: int
) -> dict[str, NDArray[Any]]:
    """Return the columns that `work` makes of all items, as one.

    Args:
        work: what makes columns of an item.
        items: in order.
        nothing: an item without events, of which the columns are where none comes.
        threads: how many.

    Example:
        >>> joined(lambda n: {"square": np.full(n, n * n)}, [1, 2], 0, threads=1)["square"].tolist()
        [1, 4, 4]
    """
    columns: dict[str, list[NDArray[Any]]] = {}
    for part in map_in_order(work, items, threads):
        for name, values in part.items():
            columns.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in columns.items()} or dict(work(nothing))


def why_not_whole(model: LanguageModel) -> str:
    """Return why a model gives no whole distributions; the empty string if it does.

    Args:
        model: any language model.

    Example:
        >>> import lmgauge
        >>> why_not_whole(lmgauge.train("mle", lmgauge.Corpus.from_strings(["a"]), order=1))
        ''
    """
    if not policy_of(model).scores_first_tokens:
        return "first tokens are unscored (--first-token)"
    try:
        model.log_distribution(np.array([BOS], np.uint32))
    except UsageError:
        return "the model tells the probabilities of what came only"
    return ""
