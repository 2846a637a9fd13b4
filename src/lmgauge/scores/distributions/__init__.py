"""Whole predictive distributions: what is kept of them, and the engine that walks a text with one model or two.

    >>> import lmgauge
    >>> from lmgauge.scores.distributions import Entropy, TopK, reduce
    >>> text = lmgauge.Corpus.from_strings(["the cat sat", "the dog sat"])
    >>> model = lmgauge.train("witten-bell", text, order=2)
    >>> for batch in reduce(model, text, [Entropy(), TopK(1)]):
    ...     best = [model.vocabulary.tokens[i] for i in batch.extra["top_ids"][:4, 0].tolist()]
    ...     print(best, batch.extra["entropy"][:4].round(2).tolist())
    ['the', 'cat', 'sat', '</s>'] [0.97, 1.56, 1.27, 0.97]

`lmgauge eval --columns` writes the same to a run folder. A distribution is never kept: a reduction sees a tile, a few events
times the whole vocabulary, and what it returns is all that stays.

May import `text`, `scores`, `numerics` and what every room may; models import it, and so does what reads them.
"""

from lmgauge.scores.distributions.reduce import reduce, reduce_pair
from lmgauge.scores.distributions.reductions import (
    Divergences,
    Entropy,
    KullbackLeibler,
    Mass,
    Moments,
    PairReduction,
    Rank,
    Reduction,
    TopK,
)
from lmgauge.scores.distributions.tile import Tile

__all__ = [
    "Divergences",
    "Entropy",
    "KullbackLeibler",
    "Mass",
    "Moments",
    "PairReduction",
    "Rank",
    "Reduction",
    "Tile",
    "TopK",
    "reduce",
    "reduce_pair",
]
