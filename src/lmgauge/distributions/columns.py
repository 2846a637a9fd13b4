"""Columns of the score table that need whole distributions, by the names people ask for them with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import tee
from typing import TYPE_CHECKING, Any

from lmgauge.choices import DISTRIBUTION_COLUMNS
from lmgauge.distributions.reduce import reduce
from lmgauge.distributions.reductions import Entropy, Mass, Moments, Rank, Reduction, TopK
from lmgauge.distributions.word_boundaries import Marking, WordBoundaries
from lmgauge.errors import UsageError
from lmgauge.scores import score_in_pieces

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel
    from lmgauge.scores import ScoreBatch
    from lmgauge.text.segments import Segments

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
        if self._boundaries is None:
            return self._reduced(segments, spans, threads)
        blocks, scored = tee(segments)
        return self._boundaries.fill(blocks, self._reduced(scored, spans, threads))

    def _reduced(self, segments: Iterable[Segments], spans: bool, threads: int | None) -> Iterator[ScoreBatch]:
        def reduced(blocks: Iterable[Segments]) -> Iterator[ScoreBatch]:
            return reduce(self._model, blocks, self._reductions, spans=spans, threads=threads)

        return score_in_pieces(reduced, segments) if getattr(self._model, "scores_in_units", False) else reduced(segments)

    def score_block(self, block: Segments, *, spans: bool = True) -> ScoreBatch:
        """Return the batch of one block, a row for each token, with the columns; arguments as of its own `score_block`."""
        return next(self.score([block], spans=spans, threads=1))
