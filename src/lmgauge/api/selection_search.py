"""How much of a pool to select: models trained on rising shares of it, measured on held-out text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import NotEnoughMemoryError
from lmgauge.evaluation.comparison.paired_segments import Paired
from lmgauge.evaluation.evaluate import evaluate
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.tally import Tally
from lmgauge.filtering.selection_cuts import Sizes, first_share, most_alike_first, random_order
from lmgauge.filtering.selection_results import MeasuredModel, SelectionCut
from lmgauge.filtering.selection_settings import SelectionSettings
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.partitioned.limits import TrainingResources
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.training import train_ngram
from lmgauge.numerics.significance import holm
from lmgauge.numerics.units import perplexity_ratio_from_nats
from lmgauge.progress import listener, say_progress
from lmgauge.temporaries import scratch_folder
from lmgauge.text.documents import Corpus

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Scored:
    """A model's figures on the held-out text, and those of each segment.

    Attributes:
        evaluation: of the whole text.
        nats: float64 [segments], log-probabilities.
        zeros, events: int64 [segments].
        documents: int64 [segments]; None where documents are not known.
    """

    evaluation: Evaluation
    nats: Floats
    zeros: Ints
    events: Ints
    documents: Ints | None

    @classmethod
    def of(cls, model: NgramModel, held_out: Corpus, threads: int | None) -> Scored:
        """Return what a model makes of a text: nats, impossible events and all events of each segment."""
        tallies = Tally()
        result = evaluate([model], held_out, threads=threads, watch=lambda i, block, batch, tally: tallies.merge(tally))
        sums = tallies.per_segment()
        return cls(result.items[0], sums.nats, sums.zeros, sums.events, sums.documents)

    def alone(self) -> MeasuredModel:
        """Return the figures of this model alone."""
        return MeasuredModel(self.evaluation.perplexity, self.evaluation.interval)

    def versus(self, other: Scored) -> MeasuredModel:
        """Return the figures of this model, its ratio to another, and the test of their difference.

        Args:
            other: of the same text.
        """
        zeros = self.zeros + other.zeros
        paired = Paired((other.nats, self.nats), zeros, self.events[:, None].astype(np.float64), self.documents)
        (spread,) = paired.spreads()
        if spread is None:
            return replace(self.alone(), ratio=self.evaluation.perplexity / other.evaluation.perplexity)
        return replace(
            self.alone(),
            ratio=perplexity_ratio_from_nats(spread.ratio),
            ratio_interval=spread.interval().mapped(perplexity_ratio_from_nats),
            p_value=spread.p_value,
        )


@dataclass(frozen=True)
class MeasuredPool:
    """The documents of a pool, and how they differ from the in-domain text.

    Attributes:
        corpus: the documents.
        sizes: uint32 [documents], bytes of each.
        differences: float64 [documents], bits per token; NaN for those that are never selected.
    """

    corpus: Corpus
    sizes: Sizes
    differences: Floats

    def cut(self, chosen: NDArray[np.bool_], share: float | None = None) -> SelectionCut:
        """Return what a selection holds.

        Args:
            chosen: bool [documents], one at least.
            share: of the bytes, as it was asked for; None for the one it has.
        """
        size, of = (int(self.sizes[part].sum(dtype=np.int64)) for part in (chosen, ~np.isnan(self.differences)))
        return SelectionCut(
            size / of if share is None else share, int(chosen.sum()), size, float(self.differences[chosen].max())
        )


@dataclass(frozen=True)
class _Tried:
    cut: SelectionCut
    selected: Scored
    random: Scored | None


def try_cuts(
    pool: MeasuredPool,
    held_out: Corpus,
    settings: SelectionSettings,
    words: tuple[str, ...],
    *,
    temp: Path | None = None,
    threads: int | None = None,
) -> list[SelectionCut]:
    """Return each share of the pool with the perplexity of models trained on it, and how it compares with the best one.

    Args:
        pool: the documents, scored.
        held_out: the text to measure on.
        settings: which shares, and how models are trained.
        words: the vocabulary of the models, the same for all, so that their perplexities can be compared.
        temp: folder for models that do not fit into memory.
        threads: how many; no figure depends on it.

    Returns:
        The shares, rising.
    """
    alike, random = most_alike_first(pool.differences), random_order(pool.differences, settings.seed)
    training = settings.training(words)
    tried: list[_Tried] = []
    for share in settings.cuts:
        scored = []
        for order in (alike, random) if share < 1 else (alike,):
            chosen = first_share(order, pool.sizes, share)
            say_progress(f"trying {share:.3g} of the pool{' at random' * (order is random)}")
            with _trained(training, pool.corpus.chosen(chosen), temp, threads) as model:
                scored.append(Scored.of(model, held_out, threads))
        cut = pool.cut(first_share(alike, pool.sizes, share), share)
        tried.append(_Tried(cut, scored[0], scored[1] if len(scored) > 1 else None))
    return _compared(tried)


def _compared(tried: Sequence[_Tried]) -> list[SelectionCut]:
    """Return shares with their ratios: of each to the best one, and to as much text at random."""
    best = min(tried, key=lambda one: one.selected.evaluation.perplexity)
    selected = [
        replace(one.selected.alone(), ratio=1.0) if one is best else one.selected.versus(best.selected) for one in tried
    ]
    cuts = []
    for one, model, adjusted in zip(tried, selected, holm([model.p_value for model in selected]), strict=True):
        random = None
        if one.random is not None:
            gain = one.selected.versus(one.random)
            random = replace(gain, perplexity=one.random.evaluation.perplexity, interval=one.random.evaluation.interval)
        cuts.append(replace(one.cut, selected=model, random=random, p_value_holm=adjusted))
    return cuts


@contextmanager
def _trained(
    settings: NgramTrainingSettings, corpus: Corpus, temp: Path | None, threads: int | None
) -> Iterator[NgramModel]:
    """Train a model, in memory or, where it does not fit, within most of what is free, in a folder that goes with it."""
    try:
        model = train_ngram(settings, corpus, threads=threads)
    except NotEnoughMemoryError:
        model = None
    if model is not None:
        yield model
        return
    from lmgauge.models.ngram.partitioned.training import train_within

    with scratch_folder(temp) as folder:
        limits = TrainingResources(output=folder, temp=folder).limits(threads=threads)
        yield train_within(settings, corpus, Path(folder, "model"), limits, threads=threads, progress=listener())
