"""What is selected of a pool, and how much: models trained on rising shares of it, measured on held-out text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError
from lmgauge.evaluation.comparison.paired_segments import Paired
from lmgauge.evaluation.evaluate import evaluate
from lmgauge.evaluation.results import Evaluation
from lmgauge.evaluation.tally import SegmentSums, Tally
from lmgauge.filtering.filter_file import FileJob
from lmgauge.filtering.histogram import Bins
from lmgauge.filtering.options import SelectionSettings
from lmgauge.filtering.results import example_text
from lmgauge.filtering.selection_results import (
    MeasuredModel,
    Selection,
    SelectionCut,
    SelectionExample,
    choose_cut,
    perplexity_of,
)
from lmgauge.filtering.selection_scores import (
    Chosen,
    Floats,
    SelectionModels,
    Sizes,
    below,
    first_share,
    measure_differences,
    most_alike_first,
    random_order,
    read_pool,
    train_models,
    write_selected,
)
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.partitioned.limits import TrainingResources
from lmgauge.models.ngram.training import train_or_within
from lmgauge.numerics.independence import caveats
from lmgauge.numerics.significance import holm
from lmgauge.numerics.units import perplexity_ratio_from_nats
from lmgauge.progress import listener_for, say_progress
from lmgauge.signature import Signature
from lmgauge.temporaries import scratch_folder
from lmgauge.text.documents import Corpus
from lmgauge.text.split import assign_groups
from lmgauge.version import NUMBERS_VERSION

MOST, LAST, NEXT, LEAST = "most alike", "the last that are selected", "the first that are left out", "least alike"
_EACH = 3
_MANY_UNSEEN = 0.1
_BINS, _OUTERMOST = 50, 0.5  # of the histogram; per cent outside its edges, at either end
_BLOCKS = 20
"""Contiguous parts of a text whose documents are not known, or are too few to hold some out."""
_SHORTEST_COPY = 40
"""Bytes of a text that two documents do not have in common by chance."""


# -- the target ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Target:
    """What a selection is to be like."""

    in_domain: Corpus  # the text that the in-domain model is trained on
    held_out: Corpus | None = None  # the text that shares of the pool are measured on; None where none is
    how: str = ""  # how one was split from the other, as a note; empty where both were named


def split_target(target: Corpus, share: float, seed: int) -> Target:
    """Return a text in two parts: whole documents are held out, or, where they are not known, contiguous blocks."""
    # Lines of one document are alike: held out line by line, a text would seem easier than it is.
    lengths, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for block in target:
        lengths.append(block.ends - block.starts + 1)
        if block.documents is not None:
            numbers.append(block.documents)
    sizes = np.concatenate(lengths)
    if len(sizes) < 2:
        raise InputError(
            "the target has fewer than two segments, and nothing can be held out; name a held-out text (--held-out)"
        )
    documents = np.concatenate(numbers)
    shares = (1 - share, share, 0.0)
    name = "documents"
    held_out = np.zeros(len(sizes), bool)
    if len(documents) and np.any(documents != documents[0]):
        held_out = assign_groups(documents, sizes, shares, seed) == 1
    if held_out.all() or not held_out.any():
        name, documents = "contiguous blocks", _blocks(sizes)
        held_out = assign_groups(documents, sizes, shares, seed) == 1
    if held_out.all() or not held_out.any():
        raise InputError(f"the target is too short to hold {share:.0%} of it out; name a held-out text (--held-out)")
    number, of = (len(np.unique(codes)) for codes in (documents[held_out], documents))
    how = f"{number:,} of {of:,} {name} of the target are held out"
    return Target(target.chosen(~held_out), target.chosen(held_out), how)


def _blocks(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    # Block of each segment: blocks are contiguous and of about the same number of bytes.
    middles = np.cumsum(sizes) - sizes / 2
    blocks = (middles * min(_BLOCKS, len(sizes)) / sizes.sum()).astype(np.int64)
    codes: NDArray[np.int64] = np.unique(blocks, return_inverse=True)[1].astype(np.int64)
    return codes


def long_texts(held_out: Corpus) -> set[bytes]:
    """Return the held-out texts of 40 bytes or more, which do not stand in the pool by chance."""
    # held_out: read once.
    return {
        block.text(i) for block in held_out for i in np.flatnonzero(block.ends - block.starts >= _SHORTEST_COPY).tolist()
    }


# -- shares that are tried ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Scored:
    """A model's figures on the held-out text, and those of each segment."""

    evaluation: Evaluation  # of the whole text
    sums: SegmentSums

    @classmethod
    def of(cls, model: NgramModel, held_out: Corpus, threads: int | None) -> Scored:
        """Return what a model makes of a text: nats, impossible events and all events of each segment."""
        tallies = Tally()
        result = evaluate([model], held_out, threads=threads, watch=lambda i, block, batch, tally: tallies.merge(tally))
        return cls(result.items[0], tallies.per_segment())

    def versus(self, other: Scored) -> MeasuredModel:
        """Return the figures of this model, its ratio to another of the same text, and the test of their difference."""
        mine, theirs = self.sums, other.sums
        alone = MeasuredModel(self.evaluation.perplexity, self.evaluation.interval)
        if other is self:
            return replace(alone, ratio=1.0)
        events = mine.events[:, None].astype(np.float64)
        (spread,) = Paired((theirs.nats, mine.nats), mine.zeros + theirs.zeros, events, mine.documents).spreads()
        if spread is None:
            return replace(alone, ratio=self.evaluation.perplexity / other.evaluation.perplexity)
        return replace(
            alone,
            ratio=perplexity_ratio_from_nats(spread.ratio),
            ratio_interval=spread.interval().mapped(perplexity_ratio_from_nats),
            p_value=spread.p_value,
        )


@dataclass(frozen=True)
class MeasuredPool:
    """The documents of a pool, and how they differ from the in-domain text."""

    corpus: Corpus
    sizes: Sizes  # uint32 [documents], bytes of each
    differences: Floats  # float64 [documents], bits per token; NaN for those that are never selected

    def cut(self, chosen: Chosen, share: float | None = None) -> SelectionCut:
        """Return what a selection of one document or more holds."""
        # share: of the bytes, as it was asked for; None for the one it has.
        size, of = (int(self.sizes[part].sum(dtype=np.int64)) for part in (chosen, ~np.isnan(self.differences)))
        highest = float(self.differences[chosen].max())
        return SelectionCut(size / of if share is None else share, int(chosen.sum()), size, highest)


def try_cuts(
    pool: MeasuredPool,
    held_out: Corpus,
    settings: SelectionSettings,
    words: tuple[str, ...],
    *,
    temp: str | os.PathLike[str] | None = None,
    threads: int | None = None,
) -> list[SelectionCut]:
    """Return each share of the pool with the perplexity of models trained on it, and how it compares with the best one."""
    # words: the vocabulary of the models, the same for all, so that their perplexities can be compared.
    alike, random = most_alike_first(pool.differences), random_order(pool.differences, settings.seed)
    training = settings.training(words)
    tried: list[tuple[SelectionCut, list[Scored]]] = []
    for share in settings.cuts:
        scored = []
        for order in (alike, random) if share < 1 else (alike,):
            trying = f"trying {share:.3g} of the pool{' at random' * (order is random)}"
            text = pool.corpus.chosen(first_share(order, pool.sizes, share))
            say_progress(trying)
            with scratch_folder(temp) as folder:
                room = TrainingResources(output=Path(folder, "model"), temp=folder)
                model = train_or_within(training, text, room, threads=threads, scratch=True, progress=listener_for(trying))
                scored.append(Scored.of(model, held_out, threads))
        tried.append((pool.cut(first_share(alike, pool.sizes, share), share), scored))
    return compared(tried)


def compared(tried: Sequence[tuple[SelectionCut, Sequence[Scored]]]) -> list[SelectionCut]:
    """Return shares with their ratios: of each to the best one, and to as much text at random where that was tried."""
    best = min((one for _, (one, *_) in tried), key=lambda one: one.evaluation.perplexity)
    selected = [one.versus(best) for _, (one, *_) in tried]
    cuts = []
    adjusted = holm([model.p_value for model in selected])
    for (cut, (one, *random)), model, p_value in zip(tried, selected, adjusted, strict=True):
        gains = [
            replace(one.versus(other), perplexity=other.evaluation.perplexity, interval=other.evaluation.interval)
            for other in random
        ]
        cuts.append(replace(cut, selected=model, random=gains[0] if gains else None, p_value_holm=p_value))
    return cuts


# -- a selection --------------------------------------------------------------------------------------------------------
def select(
    pool: Corpus,
    goal: Target,
    settings: SelectionSettings,
    jobs: Sequence[FileJob],
    *,
    temp: str | os.PathLike[str] | None,
    threads: int | None,
) -> Selection:
    """Return what is selected of a pool, written as the jobs say; see `lmgauge.select_documents`."""
    texts = set() if goal.held_out is None else long_texts(goal.held_out)
    sizes, copies = read_pool(pool, texts)
    models = train_models(settings, goal.in_domain, pool, sizes, threads=threads)
    differences = measure_differences(models, pool, threads=threads)
    without_words = int(np.count_nonzero(np.isnan(differences)))
    notes = [goal.how] if goal.how else []
    if many := np.count_nonzero(copies):  # models of them would be measured on what they have seen
        notes.append(f"held-out texts that are in the pool, byte for byte: {many:,}; these documents are never selected")
        differences[copies] = np.nan
    if np.isnan(differences).all():
        raise InputError("no document of the pool has a word: there is nothing to select")
    measured, cuts = MeasuredPool(pool, sizes, differences), []
    of_held_out: dict[str, Any] = {"in_domain_perplexity": None, "held_out_events": 0, "oov_rate": None}
    if goal.held_out is not None:
        own = Scored.of(models.in_domain, goal.held_out, threads).evaluation
        of_held_out = {name: getattr(own, name) for name in ("oov_rate", "independence")}
        of_held_out |= {"in_domain_perplexity": own.perplexity, "held_out_events": own.events}
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
        vocabulary=len(models.words),
        outputs=tuple(written),
        histogram=_histogram(differences),
        examples=draw_examples(pool, differences, chosen_documents),
        notes=tuple(notes),
        signature=_signature(settings, models, goal, pool),
        **of_held_out,
    )


def _doubts(own: Evaluation, cuts: Sequence[SelectionCut]) -> list[str]:
    # What a reader must know of the model of the target on the held-out text, and of the shares that were tried.
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
    # Which documents are selected, and their row.
    cut = choose_cut(cuts, settings.tolerance) if cuts else None
    share = settings.share if cut is None else cut.share
    if share is not None:
        chosen = first_share(most_alike_first(pool.differences), pool.sizes, share)
        return chosen, cut or pool.cut(chosen, share)
    assert settings.max_difference is not None  # one of the two, or shares are tried
    chosen = below(pool.differences, settings.max_difference)
    if not chosen.any():
        raise InputError(
            f"no document of the pool differs by at most {settings.max_difference:g} bits per token; the lowest difference "
            f"is {np.nanmin(pool.differences):.4g}: give a higher --max-difference"
        )
    return chosen, pool.cut(chosen)


def _histogram(differences: Floats) -> Bins:
    known = differences[~np.isnan(differences)]
    low, high = np.percentile(known, (_OUTERMOST, 100 - _OUTERMOST), overwrite_input=True).tolist()
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    counts, _ = np.histogram(np.clip(known, edges[0], edges[-1], out=known), edges)
    return Bins(tuple(edges.tolist()), tuple(counts.tolist()))


def _signature(settings: SelectionSettings, models: SelectionModels, goal: Target, pool: Corpus) -> str:
    rule = f"within {settings.tolerance:g}" if settings.tolerance else "best"
    if settings.share is not None:
        rule = f"share {settings.share:g}"
    elif settings.max_difference is not None:
        rule = f"difference {settings.max_difference:g}"
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


# -- documents to look at -----------------------------------------------------------------------------------------------
def draw_examples(pool: Corpus, differences: Floats, chosen: Chosen) -> dict[str, tuple[SelectionExample, ...]]:
    """Return documents by where they stand in the order, lowest difference first; none twice."""
    # pool: the documents; read once; differences: float64 [documents], bits per token; NaN where there is no score; chosen:
    # bool [documents], those selected: the first in the order.
    order, number = most_alike_first(differences), int(np.count_nonzero(chosen))
    ranges = {
        MOST: range(min(_EACH, number)),
        LAST: range(max(_EACH, number - _EACH), number),
        NEXT: range(number, min(number + _EACH, len(order))),
        LEAST: range(max(number + _EACH, len(order) - _EACH), len(order)),
    }
    places = {where: order[places.start : places.stop].tolist() for where, places in ranges.items() if places}
    wanted = np.array(sorted(number for numbers in places.values() for number in numbers), np.int64)
    texts: dict[int, SelectionExample] = {}
    for block in pool:
        for number in wanted[(wanted >= block.first) & (wanted < block.first + len(block))].tolist():
            i = number - block.first
            texts[number] = SelectionExample(block.place(i), float(differences[number]), example_text(block.text(i)))
    return {where: tuple(texts[document] for document in documents) for where, documents in places.items()}
