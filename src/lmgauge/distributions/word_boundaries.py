"""The probability that a word begins or the text ends at an event: what makes sums of pieces probabilities of words.

A tokenizer that puts the space before a word leaves it to the next token to say that the word has ended: the pieces of "cat"
are also the first ones of "catalog". Pimentel & Meister (2024, arXiv 2406.14561) and Oh & Schuler (2024, arXiv 2406.10851)
give the repair: p(word | c) = p(pieces | c) B(c word) / B(c), B the mass of all that may come where a word has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import policy_of
from lmgauge.distributions.reductions import Entropy, Mass, Reduction
from lmgauge.text.segments import is_white_space
from lmgauge.text.tokens import TokenUnit, token_bytes
from lmgauge.text.vocabulary import EOS

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.scores import ScoreBatch
    from lmgauge.text.segments import Segments

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
        begins, ends, mixed = (np.zeros(len(spelled), bool) for _ in range(3))
        for i, piece in enumerate(spelled):
            core = piece.strip(_WHITE)
            mixed[i] = bool(core)
            begins[i], ends[i] = piece[:1] in _EACH_WHITE, piece[-1:] in _EACH_WHITE
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
        self._runs_on = policy_of(model).runs_on
        self.marking = self._edges.marking
        self.reductions: tuple[Reduction, ...] = (Entropy(),)
        if self.marking not in ("whole", "none"):
            after_word, at_start = self._edges.begins.copy(), ~self._edges.begins
            after_word[EOS] = at_start[EOS] = True
            self.reductions += (_mass(after_word, BOUNDARY), _mass(at_start, _OPENING))

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


def _mass(chosen: NDArray[np.bool_], name: str) -> Mass:
    return Mass(tuple(np.flatnonzero(chosen).tolist()), name)
