"""`lmgauge.select_documents`: the documents of a pool that are most like a target."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lmgauge.api.inputs import PATHS, PathLike, Text, corpus_of
from lmgauge.api.selection_search import MeasuredPool, Scored, try_cuts
from lmgauge.errors import InputError, UsageError
from lmgauge.filtering.plan import FileJob
from lmgauge.filtering.selection_cuts import Chosen, below, first_share, most_alike_first
from lmgauge.filtering.selection_examples import draw_examples
from lmgauge.filtering.selection_files import making_folders, plan_outputs, write_selected
from lmgauge.filtering.selection_results import DifferenceHistogram, Selection, SelectionCut, choose_cut, perplexity_of
from lmgauge.filtering.selection_scores import Floats, SelectionModels, document_bytes, measure_differences, train_models
from lmgauge.filtering.selection_settings import SelectionSettings
from lmgauge.filtering.selection_target import Target, copies_of, long_texts, split_target
from lmgauge.models.ngram.partitioned.limits import TrainingResources
from lmgauge.numerics.independence import caveats
from lmgauge.signature import Signature
from lmgauge.text.documents import Corpus
from lmgauge.version import NUMBERS_VERSION

_MANY_UNSEEN = 0.1
_BINS, _OUTERMOST = 50, 0.5  # of the histogram; per cent outside its edges, at either end


@dataclass(frozen=True)
class _HeldOut:
    """What is said of the held-out text, and of the shares that were tried on it."""

    cuts: tuple[SelectionCut, ...] = ()
    in_domain_perplexity: float | None = None
    events: int = 0
    oov_rate: float | None = None
    independence: str = ""
    notes: tuple[str, ...] = ()


def select_documents(
    pool: Text,
    target: Text,
    output: PathLike | None = None,
    *,
    held_out: Text | None = None,
    settings: SelectionSettings | None = None,
    temp: PathLike | None = None,
    threads: int | None = None,
) -> Selection:
    """Select the documents of a pool that are most like a target (Moore & Lewis 2010): `lmgauge select`.

    Each document gets the difference of its cross-entropies, in bits per token, under a model of the target and a model of a
    random sample of the pool, both over the words that occur at least twice in the target. The documents with the lowest
    differences are selected. How many is found by trying shares of the pool: a model is trained on each, over the same
    words, and the share whose model has the lowest perplexity on held-out target text is taken. Beside each stands a model
    trained on as much text chosen at random.

    Args:
        pool: files: a path, several, or a `Corpus`; each line or record is a document. They are read several times, and some
            20 bytes of memory are held for each document (45 while they are sorted).
        target: text to be like: a path, several, or a `Corpus`. It is read several times.
        output: where to write the selected documents, in the form they have: a file for a pool of one file; a folder (there,
            or with a slash at its end) with a file for each of several. Every field of a record stays, and
            `in_domain_bits_per_token`, `pool_bits_per_token` and `cross_entropy_difference` are added to it.
        held_out: text like the target, to measure shares on; if not given, a part of the target is held out.
        settings: order and smoothing of the models, shares to try, or how much to select, seed; see `SelectionSettings`.
        temp: existing folder for models that do not fit into memory; the system's if not given.
        threads: how many; no figure depends on it.

    Returns:
        The share that is selected, and a row for each one tried: documents, bytes, threshold, perplexity with its 95 %
        interval, how it compares with the best, and the perplexity of a random selection of the same size.

    Raises:
        InputError: a text is empty or cannot be used, or the target has too few words.
        OutputError: the output cannot be written.
        UsageError: a text can be read only once, or the output would replace an input.

    Example:
        >>> from lmgauge import Corpus, SelectionSettings
        >>> pool = Corpus.from_strings(["the cat sat", "buy now", "the dog sat", "buy cheap", "now buy"] * 9)
        >>> target = Corpus.from_strings(["the cat ran", "the dog ran home", "the cat sat", "the dog sat down"] * 9)
        >>> settings = SelectionSettings(order=2, smoothing="laplace", cuts=(0.25, 0.5, 1))
        >>> select_documents(pool, target, settings=settings)
        <Selection: 18 of 45 documents, 198 of 405 bytes, held-out perplexity 4.316, random 5.098>
    """
    settings = settings or SelectionSettings()
    documents = _pool_of(pool)
    goal = _target_of(target, held_out, settings)
    read = [source.path for corpus in (goal.in_domain, goal.held_out) if corpus is not None for source in corpus.sources]
    jobs = [] if output is None else plan_outputs(documents, os.fspath(output), read)
    TrainingResources(temp=temp)  # refuses what is not a folder to write to
    with making_folders(jobs):
        return _select(documents, goal, settings, jobs, temp=None if temp is None else Path(temp), threads=threads)


def _select(
    pool: Corpus,
    goal: Target,
    settings: SelectionSettings,
    jobs: Sequence[FileJob],
    *,
    temp: Path | None,
    threads: int | None,
) -> Selection:
    sizes = document_bytes(pool)
    models = train_models(settings, goal.in_domain, pool, sizes, threads=threads)
    differences = measure_differences(models, pool, threads=threads)
    without_words = int(np.count_nonzero(np.isnan(differences)))
    notes = _leave_out_copies(differences, goal, pool)
    if np.isnan(differences).all():
        raise InputError("no document of the pool has a word: there is nothing to select")
    measured = MeasuredPool(pool, sizes, differences)
    tried = _try(measured, goal, settings, models, temp, threads)
    chosen_documents, chosen = _choose(measured, tried.cuts, settings)
    written = write_selected(jobs, pool, chosen_documents, models, threads=threads)
    return Selection(
        chosen=chosen,
        cuts=tried.cuts or (chosen,),
        tolerance=settings.tolerance,
        documents=len(sizes),
        bytes=int(sizes.sum(dtype=np.int64)),
        without_words=without_words,
        in_domain_bytes=goal.in_domain.report.bytes,
        in_domain_perplexity=tried.in_domain_perplexity,
        held_out_events=tried.events,
        oov_rate=tried.oov_rate,
        vocabulary=len(models.words),
        independence=tried.independence,
        outputs=tuple(written),
        histogram=_histogram(differences),
        examples=draw_examples(pool, differences, chosen_documents),
        notes=(*notes, *tried.notes, *(f"pool: {note}" for note in pool.report.notes())),
        signature=_signature(settings, models, goal, pool),
    )


def _pool_of(pool: Text) -> Corpus:
    """Return the pool; of files, records that cannot be used are left out and counted."""
    if isinstance(pool, Corpus):
        corpus = pool
    else:
        corpus_of(pool)  # refuses what is not a text, in words
        corpus = Corpus.from_files([pool] if isinstance(pool, PATHS) else list(pool), errors="skip")
    return _rereadable(corpus, "the pool")


def _target_of(target: Text, held_out: Text | None, settings: SelectionSettings) -> Target:
    whole = _rereadable(corpus_of(target), "the target")
    if not settings.searches:
        if held_out is not None:
            raise UsageError("held-out text is for trying shares: leave it out, or share and max-difference")
        return Target(whole)
    if held_out is not None:
        return Target(whole, _rereadable(corpus_of(held_out), "the held-out text"))
    return split_target(whole, settings.held_out_share, settings.seed)


def _rereadable(corpus: Corpus, name: str) -> Corpus:
    corpus.without_given("a selection")
    if not corpus.rereadable:
        raise UsageError(f"{name} is read several times, and standard input can be read only once: save it in a file first")
    return corpus


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


def _try(
    pool: MeasuredPool,
    goal: Target,
    settings: SelectionSettings,
    models: SelectionModels,
    temp: Path | None,
    threads: int | None,
) -> _HeldOut:
    """Return what comes of the shares that are tried; nothing where none is."""
    if goal.held_out is None:
        return _HeldOut()
    own = Scored.of(models.in_domain, goal.held_out, threads).evaluation
    cuts = try_cuts(pool, goal.held_out, settings, models.words, temp=temp, threads=threads)
    notes = [*caveats(own.interval)]
    if own.oov_rate > _MANY_UNSEEN:
        notes.append(
            f"{own.oov_rate:.0%} of the held-out tokens are unseen words, all one event <unk>: more target text, or "
            "--min-count 1, makes them fewer"
        )
    if len(cuts) > 1 and min(cuts, key=perplexity_of) is cuts[0]:
        notes.append("the smallest share that was tried is the best one; smaller ones may be better still (--cuts)")
    return _HeldOut(tuple(cuts), own.perplexity, own.events, own.oov_rate, own.independence, tuple(notes))


def _choose(pool: MeasuredPool, cuts: tuple[SelectionCut, ...], settings: SelectionSettings) -> tuple[Chosen, SelectionCut]:
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
