"""The distributions of one model at the events of a text, block by block, however the model comes by them."""

# A model that computes many distributions at a time offers `distributions`; of any other, `log_distribution` is asked event
# by event.

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import tee
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import UsageError
from lmgauge.scores import ScoreBatch
from lmgauge.scores.context_policy import EventContexts
from lmgauge.scores.distributions.reductions import Columns, PairReduction, Reduction
from lmgauge.scores.distributions.tile import Tile
from lmgauge.scores.scoring import after_given
from lmgauge.text.encoding import encode
from lmgauge.text.vocabulary import BOS, EOS

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.text.segments import Segments

Events = NDArray[np.int64]  # numbers of events of the text, from 0, ascending
TILE_ENTRIES = 1 << 16  # of a tile in float64: half a megabyte stays in a core's cache


class BlockDistributions(ABC):
    """The distributions at the events of one block of text that were asked for."""

    parallel: bool = False  # whether its tiles may be computed in threads
    vocabulary_size: int

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of events."""

    @abstractmethod
    def tiles(self) -> Iterator[Tile]:
        """Yield the tiles, in order; a tile is good until the next is asked for, unless `parallel`."""

    def closed_form(self, reduction: Reduction | PairReduction, other: BlockDistributions | None = None) -> Columns | None:
        """Return the columns of a reduction without looking at all tokens; None where there is no such way."""
        return None

    @abstractmethod
    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        """Return the rows of the score table."""


def distributions_of(
    model: LanguageModel,
    segments: Iterable[Segments],
    *,
    events: Events | None = None,
    spans: bool = True,
    threads: int | None = None,
) -> Iterator[BlockDistributions]:
    """Yield the distributions of a model at the events of each block; arguments as of `reduce`."""
    # Raises UsageError: the model has no method for it, or its first tokens are not scored, so that contexts are not whole.
    try:
        computes_many = model.computes_many()
    except AttributeError as error:
        how = "lmgauge.CustomModel as its base gives them, or lmgauge.models.protocol.completed(model)"
        raise UsageError(f"{type(model).__name__} has not all that a model of lmgauge has: {how}") from error
    if computes_many:
        own: Callable[..., Iterator[BlockDistributions]] = model.distributions  # type: ignore[attr-defined]
        yield from own(segments, events=events, spans=spans, threads=threads)
        return
    own_blocks, copies = tee(segments)
    batches = model.score(copies, spans=spans, threads=threads)
    checked = (after_given(block, batch, model) for block, batch in zip(own_blocks, batches, strict=True))
    yield from by_event(model, checked, events)


def of_events(model: LanguageModel) -> LanguageModel:
    """Return the model whose events a model's distributions are over: the one inside, where unseen words are spelled."""
    inside: LanguageModel = model.inner if model.is_spelled else model  # type: ignore[attr-defined]
    return inside


def by_event(model: LanguageModel, batches: Iterable[ScoreBatch], events: Events | None) -> Iterator[BlockDistributions]:
    """Yield the distributions of a model that answers one question at a time, in tiles."""
    # batches: its rows, in order.
    # Raises UsageError: first tokens are not scored, so that contexts are not whole.
    policy = model.context_policy
    if not policy.scores_first_tokens:
        raise UsageError(
            f"{model.label}: whole distributions need whole contexts, but first tokens are unscored (--first-token)"
        )
    before = np.array([BOS], np.uint32)
    seen = 0
    for batch in batches:
        ids, counts = batch.token_ids, batch.segment_events
        given_tokens = None if batch.before is None else (batch.before.ids, batch.before.counts)
        contexts = EventContexts(ids, counts, bos=BOS, runs_on=policy.runs_on, before=before, given_tokens=given_tokens)
        before = contexts.ids
        rows = rows_among(events, seen, len(batch))
        yield _ByEvent(model, batch.of_rows(rows), contexts, rows)
        seen += len(batch)


class BatchDistributions(BlockDistributions):
    """The distributions at the rows of a batch, in tiles of a size that a core's cache holds."""

    def __init__(self, batch: ScoreBatch, vocabulary_size: int) -> None:
        self._batch, self.vocabulary_size = batch, vocabulary_size

    def __len__(self) -> int:
        return len(self._batch)

    def tiles(self) -> Iterator[Tile]:
        targets = self._batch.token_ids.astype(np.int64)
        at_a_time = max(1, TILE_ENTRIES // max(1, self.vocabulary_size))
        for begin in range(0, len(self), at_a_time):
            rows = slice(begin, begin + at_a_time)
            yield self.tile(rows, targets[rows])

    @abstractmethod
    def tile(self, rows: slice, targets: NDArray[np.int64]) -> Tile:
        """Return the tile of some rows, given the tokens that came, int64 [rows]."""

    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        return self._batch


class WrappedDistributions(BlockDistributions):
    """The distributions of a model inside another one, whose rows are changed by that."""

    def __init__(self, inside: BlockDistributions, finished: Callable[[ScoreBatch], ScoreBatch]) -> None:
        self._inside, self._finished = inside, finished
        self.parallel, self.vocabulary_size = inside.parallel, inside.vocabulary_size

    def __len__(self) -> int:
        return len(self._inside)

    def tiles(self) -> Iterator[Tile]:
        return self._inside.tiles()

    def closed_form(self, reduction: Reduction | PairReduction, other: BlockDistributions | None = None) -> Columns | None:
        return self._inside.closed_form(reduction, other._inside if isinstance(other, WrappedDistributions) else other)

    def finish(self, logprob: NDArray[np.float64] | None) -> ScoreBatch:
        # logprob: float64 [rows], nats, of the tokens that came; None if no tile was computed.
        return self._finished(self._inside.finish(logprob))


class _ByEvent(BatchDistributions):
    """Distributions asked of a model one by one."""

    def __init__(self, model: LanguageModel, batch: ScoreBatch, contexts: EventContexts, events: Events) -> None:
        super().__init__(batch, len(model.vocabulary))
        self._model, self._contexts, self._events = model, contexts, events
        # Only models that may score blocks at a time are asked from several threads.
        self.parallel = model.blocks_are_independent

    def tile(self, rows: slice, targets: NDArray[np.int64]) -> Tile:
        events = self._events[rows].tolist()
        return Tile(lambda: np.stack([self._model.log_distribution(self._contexts[event]) for event in events]), targets)


def why_not_whole(model: LanguageModel) -> str:
    """Return why a model gives no whole distributions; the empty string if it does.

    >>> import lmgauge
    >>> why_not_whole(lmgauge.train("mle", lmgauge.Corpus.from_strings(["a"]), order=1))
    ''
    """
    if not model.context_policy.scores_first_tokens:
        return "first tokens are unscored (--first-token)"
    try:
        model.log_distribution(np.array([BOS], np.uint32))
    except UsageError:
        return "the model tells the probabilities of what came only"
    return ""


def rows_among(events: Events | None, seen: int, size: int) -> Events:
    """Return which rows of a block were asked for, int64, ascending."""
    # rows_among([1, 4, 5, 9], seen=4, size=3) -> [0, 1]
    # events: numbers of events of the text, ascending; None for all.
    if events is None:
        return np.arange(size)
    return events[np.searchsorted(events, seen) : np.searchsorted(events, seen + size)] - seen


def event_counts(model: LanguageModel, block: Segments, *, seen: int = 0) -> NDArray[np.int64]:
    """Return how many events a model makes of each segment, by its tokenizer alone, before it computes anything."""
    # -> int64 [segments]; first tokens that the model leaves unscored are not counted.
    # Whether a reserved word may stand in the text is for the model to say: it is a token in any case.
    if (of_turns := model.count_events(block)) is not None:
        return of_turns
    encoded = encode(block, model.tokenizer, model.vocabulary, bos=False, reserved="escape")
    ids = encoded.ids if block.given_starts is None else encoded.ids[~encoded.is_given]
    counts: NDArray[np.int64] = np.diff(np.flatnonzero(ids == EOS), prepend=-1)
    policy = model.context_policy
    if policy.end != "eos":
        counts = counts - 1
    if not policy.scores_first_tokens:
        firsts = (counts > 0) & (block.given_lengths() == 0)
        if policy.runs_on:  # one context, one first token
            firsts &= (np.cumsum(firsts) == 1) & (seen == 0)
        counts = counts - firsts
    return counts
