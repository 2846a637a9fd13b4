"""What is selected of a pool, and how much: models trained on rising shares of it, measured on held-out text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmgauge.api.types import PathLike
from lmgauge.errors import InputError, NotEnoughMemoryError
from lmgauge.evaluation.comparison.paired_segments import Paired
from lmgauge.evaluation.evaluate import evaluate
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.tally import Tally
from lmgauge.filtering.plan import FileJob
from lmgauge.filtering.selection_cuts import Chosen, Sizes, below, first_share, most_alike_first, random_order
from lmgauge.filtering.selection_examples import draw_examples
from lmgauge.filtering.selection_files import write_selected
from lmgauge.filtering.selection_results import (
    DifferenceHistogram,
    MeasuredModel,
    Selection,
    SelectionCut,
    choose_cut,
    perplexity_of,
)
from lmgauge.filtering.selection_scores import (
    Floats,
    Ints,
    SelectionModels,
    document_bytes,
    measure_differences,
    train_models,
)
from lmgauge.filtering.selection_settings import SelectionSettings
from lmgauge.filtering.selection_target import Target, copies_of, long_texts
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.partitioned.limits import TrainingResources
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.training import train_ngram
from lmgauge.numerics.independence import caveats
from lmgauge.numerics.significance import holm
from lmgauge.numerics.units import perplexity_ratio_from_nats
from lmgauge.progress import listener, say_progress
from lmgauge.signature import Signature
from lmgauge.temporaries import scratch_folder
from lmgauge.text.documents import Corpus
from lmgauge.version import NUMBERS_VERSION

_MANY_UNSEEN = 0.1
_BINS, _OUTERMOST = 50, 0.5  # of the histogram; per cent outside its edges, at either end


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
    temp: PathLike | None = None,
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
    settings: NgramTrainingSettings, corpus: Corpus, temp: PathLike | None, threads: int | None
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


# -- a selection --------------------------------------------------------------------------------------------------------
def select(
    pool: Corpus,
    goal: Target,
    settings: SelectionSettings,
    jobs: Sequence[FileJob],
    *,
    temp: PathLike | None,
    threads: int | None,
) -> Selection:
    """Return what is selected of a pool, written as the jobs say; see `lmgauge.select_documents`."""
    sizes = document_bytes(pool)
    models = train_models(settings, goal.in_domain, pool, sizes, threads=threads)
    differences = measure_differences(models, pool, threads=threads)
    without_words = int(np.count_nonzero(np.isnan(differences)))
    notes = _leave_out_copies(differences, goal, pool)
    if np.isnan(differences).all():
        raise InputError("no document of the pool has a word: there is nothing to select")
    measured, cuts, own = MeasuredPool(pool, sizes, differences), [], None
    if goal.held_out is not None:
        own = Scored.of(models.in_domain, goal.held_out, threads).evaluation
        cuts = try_cuts(measured, goal.held_out, settings, models.words, temp=temp, threads=threads)
        notes += _doubts(own, cuts)
    chosen_documents, chosen = _choose(measured, cuts, settings)
    written = write_selected(jobs, pool, chosen_documents, models, threads=threads)
    for name, corpus in (("pool", pool), ("target", goal.in_domain)):
        notes += [f"{name}: {note}" for note in corpus.report.notes()]
    return Selection(
        chosen=chosen,
        cuts=tuple(cuts) or (chosen,),
        tolerance=settings.tolerance,
        documents=len(sizes),
        bytes=int(sizes.sum(dtype=np.int64)),
        without_words=without_words,
        in_domain_bytes=goal.in_domain.report.bytes,
        in_domain_perplexity=None if own is None else own.perplexity,
        held_out_events=0 if own is None else own.events,
        oov_rate=None if own is None else own.oov_rate,
        vocabulary=len(models.words),
        independence="" if own is None else own.independence,
        outputs=tuple(written),
        histogram=_histogram(differences),
        examples=draw_examples(pool, differences, chosen_documents),
        notes=tuple(notes),
        signature=_signature(settings, models, goal, pool),
    )


def _leave_out_copies(differences: Floats, goal: Target, pool: Corpus) -> list[str]:
    """Take held-out texts out of the pool, whose models would be measured on what they have seen; return a note on it."""
    if goal.held_out is None:
        return []
    notes = [goal.how] if goal.how else []
    texts = long_texts(goal.held_out)
    copies = copies_of(texts, pool) if texts else np.zeros(len(differences), bool)
    if copies.any():
        differences[copies] = np.nan
        notes.append(
            f"held-out texts that are in the pool, byte for byte: {int(copies.sum()):,}; these documents are never selected"
        )
    return notes


def _doubts(own: Evaluation, cuts: Sequence[SelectionCut]) -> list[str]:
    """Return what a reader must know of the model of the target on the held-out text, and of the shares that were tried."""
    notes = [*caveats(own.interval)]
    if own.oov_rate > _MANY_UNSEEN:
        notes.append(
            f"{own.oov_rate:.0%} of the held-out tokens are unseen words, all one event <unk>: more target text, or "
            "--min-count 1, makes them fewer"
        )
    if len(cuts) > 1 and min(cuts, key=perplexity_of) is cuts[0]:
        notes.append("the smallest share that was tried is the best one; smaller ones may be better still (--cuts)")
    return notes


def _choose(pool: MeasuredPool, cuts: Sequence[SelectionCut], settings: SelectionSettings) -> tuple[Chosen, SelectionCut]:
    """Return which documents are selected, and their row."""
    if cuts:
        cut = choose_cut(cuts, settings.tolerance)
        return first_share(most_alike_first(pool.differences), pool.sizes, cut.share), cut
    if settings.share is not None:
        chosen = first_share(most_alike_first(pool.differences), pool.sizes, settings.share)
        return chosen, pool.cut(chosen, settings.share)
    assert settings.max_difference is not None  # one of the two, or shares are tried
    chosen = below(pool.differences, settings.max_difference)
    if not chosen.any():
        raise InputError(
            f"no document of the pool differs by at most {settings.max_difference:g} bits per token; the lowest difference "
            f"is {np.nanmin(pool.differences):.4g}: give a higher --max-difference"
        )
    return chosen, pool.cut(chosen)


def _histogram(differences: Floats) -> DifferenceHistogram:
    known = differences[~np.isnan(differences)]
    low, high = np.percentile(known, (_OUTERMOST, 100 - _OUTERMOST), overwrite_input=True).tolist()
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    counts, _ = np.histogram(np.clip(known, edges[0], edges[-1], out=known), edges)
    return DifferenceHistogram(tuple(edges.tolist()), tuple(counts.tolist()))


def _signature(settings: SelectionSettings, models: SelectionModels, goal: Target, pool: Corpus) -> str:
    if settings.share is not None:
        rule = f"share {settings.share:g}"
    elif settings.max_difference is not None:
        rule = f"difference {settings.max_difference:g}"
    else:
        rule = f"within {settings.tolerance:g}" if settings.tolerance else "best"
    held_out = goal.held_out
    parts = {
        "score": "cross-entropy-difference",
        "model": f"{models.in_domain.label}@{models.in_domain.fingerprint[:6]}",
        "pool-model": f"{models.pool[0].fingerprint[:6]}+{models.pool[1].fingerprint[:6]}",
        "vocab": f"{models.in_domain.vocabulary.fingerprint[:6]}",
        "min-count": str(settings.min_count),
        "rule": rule,
        **({"cuts": ",".join(f"{cut:.6g}" for cut in settings.cuts)} if settings.searches else {}),
        "in-domain": goal.in_domain.report.sha256[:6],
        **({} if held_out is None else {"held-out": held_out.report.sha256[:6]}),
        "pool": pool.report.sha256[:6],
        "seed": str(settings.seed),
        "v": NUMBERS_VERSION,
    }
    return str(Signature(parts, head="select"))
