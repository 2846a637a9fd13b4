"""Which candidate is nearer to a base, or whether one is within a limit: what a divergence until it is decided asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import tee
from typing import TYPE_CHECKING

import numpy as np

from lmgauge.evaluation.comparison.until import KL, Question
from lmgauge.evaluation.divergence.bases import ModelFacts
from lmgauge.evaluation.divergence.divergence import pair_notes
from lmgauge.numerics.exact import Floats
from lmgauge.scores import ScoreBatch
from lmgauge.scores.distributions.reduce import reduce_pair
from lmgauge.scores.distributions.reductions import KullbackLeibler
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    from lmgauge.models.protocol import LanguageModel


class Nearness(Question):
    """Which of two candidates is nearer to a base, by mean KL(base || candidate); or whether one is nearer than a limit."""

    # models: the base and its candidates, over the same tokens; limit: nats per event, None where there are two candidates.

    infinite = (
        "the divergence is infinite or undefined at an event, as a model rules out what the base holds possible: there is "
        "nothing to decide"
    )

    def __init__(
        self,
        models: Sequence[LanguageModel],
        names: Sequence[str],
        corpus: Corpus,
        *,
        limit: float | None = None,
        notes: Sequence[str] = (),
        threads: int | None = None,
    ) -> None:
        super().__init__(models, names, corpus, threads)
        self.base, self.limit = names[0], limit
        self.sides = names[1:] if limit is None else (f"{limit:g} nats", names[1])
        self.made_of["figure"] = "kl"  # the totals of a comparison of the same models are others
        base, *candidates = map(ModelFacts.of, models, names)
        self.notes += (*notes, *dict.fromkeys(note for one in candidates for note in pair_notes(base, one)))

    def batches(self, text: Corpus) -> Iterator[tuple[Segments, Sequence[ScoreBatch]]]:
        """Yield each block of a text with the divergences of each candidate, as what it pays."""
        base, *candidates = self.models
        blocks, *copies = tee(text, 1 + len(candidates))
        kl, threads = KullbackLeibler(), self.threads
        pairs = [reduce_pair(base, one, copy, kl, threads=threads) for one, copy in zip(candidates, copies, strict=True)]
        for block, *each in zip(blocks, *pairs, strict=True):
            yield block, [_paid(batch, columns["kl_ab"]) for _, batch, columns in each]

    def metric(self) -> int:
        """Return the number of the figure that this is about."""
        return KL


def _paid(batch: ScoreBatch, kl: Floats) -> ScoreBatch:
    # What sums nats takes costs as log-probabilities: an infinite divergence is an event of probability zero.
    return replace(batch, logprob=-np.where(np.isnan(kl), np.inf, kl), extra={})
