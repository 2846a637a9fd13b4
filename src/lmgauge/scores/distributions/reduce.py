"""The engine of whole distributions: a model, a text, and what to keep of the distribution at every event; and the columns
of the score table that need them, by the names people ask for them with.

`word_boundary` is the probability that a word begins or the text ends at an event: it makes sums of pieces probabilities of
words. A tokenizer that puts the space before a word leaves it to the next token to say that the word has ended: the pieces
of "cat" are also the first ones of "catalog". Pimentel & Meister (2024, arXiv 2406.14561) and Oh & Schuler (2024, arXiv
2406.10851) give the repair: p(word | c) = p(pieces | c) B(c word) / B(c), B the mass of all that may come where a word has
ended.
"""

# Two models are walked together, whatever sizes their tiles have.

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import tee
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.choices import DISTRIBUTION_COLUMNS
from lmgauge.base.errors import UsageError
from lmgauge.base.threads import map_in_order, thread_count
from lmgauge.scores import ScoreBatch, score_in_pieces
from lmgauge.scores.distributions.blocks import BlockDistributions, Events, distributions_of
from lmgauge.scores.distributions.reductions import Columns, Entropy, Mass, Moments, PairReduction, Rank, Reduction, TopK
from lmgauge.scores.distributions.tile import Tile
from lmgauge.scores.scoring import different_events, with_same_events
from lmgauge.text.segments import is_white_space
from lmgauge.text.tokens import TokenUnit, token_bytes
from lmgauge.text.vocabulary import EOS

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


_NAMED: dict[str, Reduction] = {"entropy": Entropy(), "rank": Rank(), "moments": Moments(), "mass": Mass()}
_MOST = 1000


def reductions_named(names: Sequence[str]) -> list[Reduction]:
    """Return the reductions that fill columns."""
    # names: `entropy`, `rank`, `moments`, `mass`, and `topN` with a number in place of N, such as `top10`.
    # reductions_named(["entropy", "top5"]) -> [Entropy(), TopK(k=5)]
    return [_NAMED.get(name) or _top(name) for name in dict.fromkeys(names)]


def _top(name: str) -> Reduction:
    top = re.fullmatch(r"top([1-9][0-9]{0,3})", name)
    if top is None or int(top[1]) > _MOST:
        raise UsageError(
            f"column {name!r} is not known; choose from {', '.join(DISTRIBUTION_COLUMNS)} (N: 1 to {_MOST:,}, as in top10)"
        )
    return TopK(int(top[1]))


Marking = Literal["before", "after", "apart", "whole", "none"]
"""Where the white space is that words are known by: in the token of the word behind it, or of the one before it, in a token
of its own; tokens are whole words; or no token has any."""

BOUNDARY = "word_boundary"
_OPENING = "_opening"


@dataclass(frozen=True)
class TokenEdges:
    """Which tokens begin or end with white space (ASCII), by the bytes that they stand for."""

    # TokenEdges.of([b"the", b" cat", b" sat"], "subword").marking -> 'before'

    begins: NDArray[np.bool_]  # bool [vocabulary]
    ends: NDArray[np.bool_]  # bool [vocabulary]
    marking: Marking  # what the tokenizer does with white space

    @classmethod
    def of(cls, spelled: Sequence[bytes], unit: TokenUnit) -> TokenEdges:
        """Return the edges of tokens."""
        # spelled: the bytes of each token, [vocabulary].
        edges = [(piece[:1] in _EACH_WHITE, piece[-1:] in _EACH_WHITE, bool(piece.strip(_WHITE))) for piece in spelled]
        begins, ends, mixed = np.array(edges, bool).reshape(-1, 3).T.copy()
        if unit == "word":
            return cls(begins, ends, "whole")
        marking: Marking = "after" if (ends & mixed).any() else "apart" if begins.any() else "none"
        if (begins & mixed).any():  # also where some tokens end with it: words still end with the token behind them
            marking = "before"
        return cls(begins, ends, marking)


_WHITE = b" \t\n\v\f\r"
_EACH_WHITE = frozenset(bytes([byte]) for byte in _WHITE)


class WordBoundaries:
    """Fills the columns `entropy` and `word_boundary` of a model's score table."""

    # `word_boundary` is the probability, at the place of an event, of all that may come where a word has ended: of the
    # tokens that begin with white space, and of the end. It is 1 where that is settled already: after white space, and for
    # tokens that are words. Where the text begins without white space, its words need none either: there it is the
    # probability of the tokens that do not begin with it, and of the end (Pimentel & Meister's rule for the first word).

    def __init__(self, model: LanguageModel) -> None:
        self._edges = TokenEdges.of(token_bytes(model.tokenizer, model.vocabulary.tokens), model.tokenizer.unit)
        self._runs_on = model.context_policy.runs_on
        self.marking = self._edges.marking
        self.reductions: tuple[Reduction, ...] = (Entropy(),)
        if self.marking not in ("whole", "none"):
            after_word, at_start = self._edges.begins.copy(), ~self._edges.begins
            after_word[EOS] = at_start[EOS] = True
            chosen = ((after_word, BOUNDARY), (at_start, _OPENING))
            self.reductions += tuple(Mass(tuple(np.flatnonzero(flags).tolist()), name) for flags, name in chosen)

    def fill(self, blocks: Iterable[Segments], batches: Iterable[ScoreBatch]) -> Iterator[ScoreBatch]:
        """Yield batches with the column `word_boundary`."""
        last = EOS
        for block, batch in zip(blocks, batches, strict=True):
            columns = dict(batch.extra)
            opening, boundary = columns.pop(_OPENING, None), columns.pop(BOUNDARY, np.ones(len(batch)))
            if opening is not None and len(batch):
                before, inside = self._before(block, batch, last)
                starts = ~inside & ~self._edges.begins[batch.token_ids]
                boundary = np.where(before, 1.0, np.where(starts, opening, boundary))
                last = int(batch.token_ids[-1])
            yield replace(batch, extra={**columns, BOUNDARY: boundary})

    def _before(self, block: Segments, batch: ScoreBatch, last: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        # Of each row if white space is right before it, and if any text of its context is, both bool [n].
        previous = np.concatenate(([last], batch.token_ids[:-1])).astype(np.int64)
        white, inside = self._edges.ends[previous], previous != EOS
        scored = batch.segment_events > 0
        firsts, segments = (np.cumsum(batch.segment_events) - batch.segment_events)[scored], batch.segments[scored]
        if not self._runs_on:
            white[firsts] = inside[firsts] = False
        if block.given_starts is not None:
            starts = block.starts[segments - block.first]
            shown = starts > block.given_starts[segments - block.first]
            firsts, starts = firsts[shown], starts[shown]
            # A token that begins with white space has taken that of the given text, if there was any.
            white[firsts] = is_white_space(block.data[starts - 1]) & ~self._edges.begins[batch.token_ids[firsts]]
            inside[firsts] = True
        return white, inside


class WithColumns:
    """A model whose score tables have more columns; in all else it is the model."""

    def __init__(self, model: LanguageModel, names: Sequence[str] = (), *, word_boundaries: bool = False) -> None:
        self._model, self._reductions = model, reductions_named(names)
        self._boundaries = WordBoundaries(model) if word_boundaries else None
        if self._boundaries is not None:
            self._reductions += [one for one in self._boundaries.reductions if one not in self._reductions]

    @property
    def word_marking(self) -> Marking | None:
        """Return what the tokenizer does with white space, where `word_boundaries` are filled; else None."""
        return None if self._boundaries is None else self._boundaries.marking

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def score(self, segments: Iterable[Segments], *, spans: bool = True, threads: int | None = None) -> Iterator[ScoreBatch]:
        """Yield the batches of the model, a row for each token, with the columns; arguments as of its own `score`."""
        blocks, scored = tee(segments)
        reduced = partial(reduce, self._model, reductions=self._reductions, spans=spans, threads=threads)
        batches = score_in_pieces(reduced, scored) if self._model.scores_in_units else reduced(scored)
        return batches if self._boundaries is None else self._boundaries.fill(blocks, batches)

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block, a row for each token, with the columns; arguments as of its own `score_block`."""
        return next(self.score([block], spans=spans, threads=1))
