"""The engine of whole distributions: a model, a text, and what to keep of the distribution at every event.

A model that computes many distributions at a time offers `distributions`; of any other, `log_distribution` is asked event
by event. Two models are walked together, whatever sizes their tiles have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import tee
from typing import TYPE_CHECKING, Any, Protocol

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
_TILE_ENTRIES = 1 << 16  # of a tile in float64: half a megabyte stays in a core's cache
LOGPROB = "logprob"


class BlockDistributions(Protocol):
    """The distributions at the events of one block of text that were asked for.

    Attributes:
        parallel: whether its tiles may be computed in threads.
    """

    parallel: bool

    def __len__(self) -> int:
        """Return the number of events."""
        ...

    def tiles(self) -> Iterator[Tile]:
        """Yield the tiles, in order; a tile is good until the next is asked for, unless `parallel`."""
        ...

    def closed_form(self, reduction: Reduction, other: BlockDistributions | None = None) -> Columns | None:
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
        >>> from lmgauge.distributions.reductions import Entropy
        >>> text = lmgauge.Corpus.from_strings(["a b", "a"])
        >>> model = lmgauge.train("mle", text, order=1)  # a and </s> twice, b once
        >>> [batch.extra["entropy"].round(3).tolist() for batch in reduce(model, text, [Entropy()])]
        [[1.055, 1.055, 1.055, 1.055, 1.055]]
    """
    for block in distributions_of(model, segments, events=events, spans=spans, threads=threads):
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
            values = _collected(block.tiles(), _with_targets(open_ones), thread_count(threads) if block.parallel else 1)
            logprob = values.pop(LOGPROB, np.zeros(0))
            columns |= values
        batch = block.finish(logprob)
        # In the order in which they were asked for, whatever way they came.
        yield replace(batch, extra={**batch.extra, **columns})


class PairReduction(Protocol):
    """What is kept of two distributions over the same tokens after the same context."""

    def __call__(self, a: Tile, b: Tile) -> Columns:
        """Return columns by name, each [n] or [n, k], of tiles of the same n events."""
        ...


def reduce_pair(
    a: LanguageModel,
    b: LanguageModel,
    segments: Iterable[Segments],
    reduction: PairReduction,
    *,
    events: Events | None = None,
    threads: int | None = None,
) -> Iterator[tuple[ScoreBatch, ScoreBatch, Columns]]:
    """Yield for each block the rows of two models and the columns of a reduction over both; arguments as of `reduce`.

    Args:
        a, b: models with the same ids for the same tokens, which cut text into the same events.
        segments: blocks of text.
        reduction: what to keep.
        events: which events to look at, by number; all if None.
        threads: how many.

    Raises:
        InputError: the models cut the text into different events, or it cannot be scored.
    """
    own, other = tee(segments)
    blocks = [distributions_of(m, t, events=events, spans=False, threads=threads) for m, t in ((a, own), (b, other))]
    for one, two in zip(*blocks, strict=True):
        pairs = together(one.tiles(), two.tiles())
        work = thread_count(threads) if one.parallel and two.parallel else 1

        def look(pair: tuple[Tile, Tile]) -> Columns:
            first, second = pair
            targets = {"logprob_a": first.of_targets(), "logprob_b": second.of_targets()}
            return targets | dict(reduction(first, second))

        columns = _joined(map_in_order(look, pairs, work))
        first, second = (columns.pop(name, np.zeros(0)) for name in ("logprob_a", "logprob_b"))
        yield one.finish(first), two.finish(second), columns


def together(a: Iterator[Tile], b: Iterator[Tile]) -> Iterator[tuple[Tile, Tile]]:
    """Yield the tiles of two models cut at the same events.

    Args:
        a, b: tiles of the same events.

    Example:
        >>> tiles = lambda *sizes: (Tile(lambda: np.zeros((9, 1)), np.zeros(size, np.int64)) for size in sizes)
        >>> [len(one) for one, two in together(tiles(4, 2), tiles(3, 3))]
        [3, 1, 2]
    """
    left: Tile | None = None
    right: Tile | None = None
    while True:
        left, right = left or next(a, None), right or next(b, None)
        if left is None or right is None:
            return
        size = min(len(left), len(right))
        yield left.part(0, size) if size < len(left) else left, right.part(0, size) if size < len(right) else right
        left = left.part(size, len(left)) if size < len(left) else None
        right = right.part(size, len(right)) if size < len(right) else None


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
    own: Callable[..., Iterator[BlockDistributions]] | None = getattr(model, "distributions", None)
    if own is not None:
        yield from own(segments, events=events, spans=spans, threads=threads)
        return
    yield from by_event(model, model.score(segments, spans=spans, threads=threads), events)


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

    def __len__(self) -> int:
        return len(self._rows)

    def tiles(self) -> Iterator[Tile]:
        targets = self._batch.token_ids.astype(np.int64)
        at_a_time = max(1, _TILE_ENTRIES // max(1, len(self._model.vocabulary)))
        for begin in range(0, len(self._rows), at_a_time):
            rows = self._rows[begin : begin + at_a_time]
            yield Tile(lambda rows=rows: self._stacked(rows), targets[begin : begin + at_a_time])  # type: ignore[misc]

    def _stacked(self, rows: Events) -> NDArray[np.float64]:
        """Return the log-probabilities after the contexts of some rows, float64 [rows, vocabulary]."""
        return np.stack([self._model.log_distribution(self._contexts[row]) for row in rows.tolist()])

    def closed_form(self, reduction: Reduction, other: BlockDistributions | None = None) -> Columns | None:
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


def _collected(tiles: Iterator[Tile], work: Callable[[Tile], Columns], threads: int) -> dict[str, NDArray[Any]]:
    return _joined(map_in_order(work, tiles, threads))


def _joined(parts: Iterable[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    columns: dict[str, list[NDArray[Any]]] = {}
    for part in parts:
        for name, values in part.items():
            columns.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in columns.items()}


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
