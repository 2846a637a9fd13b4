"""Verdicts, from `import lmgauge`: whether numbers may be compared, are real, can be proved; the command line's words."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmgauge.api.models import Model, PathLike, Text, corpus_of, loaded
from lmgauge.choices import DEFAULT_SEED
from lmgauge.errors import UsageError
from lmgauge.evaluation.comparison.compare import compare as _compare
from lmgauge.evaluation.comparison.judge import ComparisonSettings
from lmgauge.evaluation.comparison.pair_sums import WordCounts
from lmgauge.evaluation.comparison.recipes import RecipeComparison
from lmgauge.evaluation.comparison.recipes import compare_recipes as _compare_recipes
from lmgauge.evaluation.comparison.results import Comparisons
from lmgauge.evaluation.diagnosis.calibration import DEFAULT_CONTEXTS
from lmgauge.evaluation.diagnosis.diagnose import SECTIONS, DiagnosisSettings, TrainingWords
from lmgauge.evaluation.diagnosis.diagnose import diagnose as _diagnose
from lmgauge.evaluation.diagnosis.results import Diagnosis
from lmgauge.evaluation.divergence.divergence import DEFAULT_EVENTS, DEFAULT_TOP_K, Divergence, DivergenceSettings
from lmgauge.evaluation.divergence.divergence import divergence as _divergence
from lmgauge.evaluation.runs import Run, open_run, remembered
from lmgauge.models.mixture.model import MixtureModel
from lmgauge.models.mixture.vocabulary_alignment import aligned
from lmgauge.models.mixture.weights import measure_weights
from lmgauge.models.mixture.weights import mix as _mix
from lmgauge.models.sampling import sample_ids
from lmgauge.numerics.resampling import DEFAULT_TRIALS
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.training_coverage import seen_in_training


def compare(
    runs: Sequence[PathLike],
    *,
    text: Text | None = None,
    document: str | None = None,
    train: Text | None = None,
    resamples: int = DEFAULT_TRIALS,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
    examples: int = 5,
) -> Comparisons:
    """Says whether results may be compared, whether their difference is real, and where it comes from.

    Args:
        runs: run folders (of `evaluate(..., output=...)`) or score tables; each is held against the first.
        text: what they scored; if not given, where the runs remember it.
        document: what is independent, if not as the runs say: see `Corpus.from_files`; needs the text.
        train: training text, for slices by how often words occur in it.
        resamples: of the permutation test over documents or segments.
        seed: of it.
        threads: how many; no number depends on it.
        examples: how many tokens and segments to keep of each kind.

    Raises:
        InputError: a run is damaged or was changed, or the text is not the one it scored.
        UsageError: fewer than two runs.
    """
    if isinstance(runs, (str, os.PathLike)) or not isinstance(runs, Sequence):
        raise UsageError(f"a comparison needs a list of two runs or more, not {type(runs).__name__}")
    settings = ComparisonSettings(resamples=resamples, seed=seed, threads=threads, examples=examples)
    opened = [_opened(run) for run in runs]
    if len(opened) < 2:
        raise UsageError("a comparison needs two runs or more")
    corpus = None if text is None and document is None else _text_of(opened, text, document)
    return _compare(
        opened,
        settings,
        corpus=corpus,
        documents_of_text=_says_documents(text, document),
        training=None if train is None else partial(_word_counts, corpus_of(train), threads),
    )


def _word_counts(train: Corpus, threads: int | None, scored: Corpus) -> WordCounts:
    seen = seen_in_training(train, scored, max_order=1, threads=threads)
    return lambda block: seen.of(block)[0]


def compare_recipes(
    recipes: Mapping[str, Sequence[PathLike]], *, text: Text | None = None, document: str | None = None
) -> tuple[RecipeComparison, ...]:
    """Say whether recipes differ, from several runs of each: seeds are a second source of chance beside the text.

    Args:
        recipes: of each recipe, by name, run folders or score tables of two models or more (other seeds) on one text; each
            recipe is compared with the first.
        text: what they scored; if not given, where the runs remember it.
        document: what is independent, if not as the runs say: see `Corpus.from_files`; needs the text.

    Raises:
        InputError: a run is damaged or was changed, the runs may not be compared, or an event has probability zero.
        UsageError: fewer than two recipes, or a recipe with one run.
    """
    opened = {name: [_opened(run) for run in runs] for name, runs in recipes.items()}
    runs = [run for group in opened.values() for run in group]
    corpus = _text_of(runs, text, document) if runs and (text is not None or document is not None) else None
    return _compare_recipes(opened, corpus=corpus, documents_of_text=_says_documents(text, document))


def diagnose(
    run: PathLike,
    *,
    text: Text | None = None,
    train: Text | None = None,
    model: Model | None = None,
    contexts: int = DEFAULT_CONTEXTS,
    exhaustive: bool = False,
    sample_tokens: int | None = None,
    examples: int = 10,
    only: Collection[str] = SECTIONS,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Diagnosis:
    """Shows where a model fails: slices of the text, worst tokens and segments, calibration, memory, and baselines.

    Args:
        run: a run folder (of `evaluate(..., output=...)`) or a score table.
        text: what it scored; if not given, where the run remembers it.
        train: training text, for slices by how often words, and how long n-grams, occur in it.
        model: the model behind the run, for calibration and for text sampled from it.
        contexts: how many contexts to draw for calibration.
        exhaustive: all of them.
        sample_tokens: how many tokens to sample for the mutual-information curve; what takes seconds if None.
        examples: how many tokens, segments and words to keep of each kind.
        only: which sections to work out: baselines, slices, tokens, segments, unseen, calibration, information.
        seed: of whatever is drawn.
        threads: how many; no number depends on it.
        progress: told in words what is being done.

    Raises:
        InputError: the run is damaged or was changed, or text or model are not those behind it.
        UsageError: a section is not known, or `train` is given but the text that was scored is not at hand.
    """
    settings = DiagnosisSettings(
        only=[only] if isinstance(only, str) else only,
        contexts=None if exhaustive else contexts,
        sample_tokens=sample_tokens,
        examples=examples,
        seed=seed,
        threads=threads,
    )
    opened = _opened(run)
    corpus = remembered(opened) if text is None else _text_of([opened], text)
    training: TrainingWords | None = None
    sample = behind = None
    if train is not None and "slices" in settings.only:
        if corpus is None:
            raise UsageError("slices by what was seen in training need the text that was scored: name it (--text)")
        progress("reading the training text")
        seen = seen_in_training(corpus_of(train), corpus, threads=threads)

        def training(block: Segments) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
            return seen.of(block)[:2]

    if model is not None:
        progress("loading the model")
        behind = loaded(model)
        sample = partial(sample_ids, behind, seed=seed, threads=threads)
    return _diagnose(
        opened,
        settings,
        corpus=corpus,
        training=training,
        model=behind,
        sample=sample,
        progress=progress,
    )


def _opened(run: PathLike, *, check_seal: bool = True) -> Run:
    if not isinstance(run, (str, os.PathLike)):
        raise UsageError(f"a run is the path of a folder or a score table, not {type(run).__name__}")
    return open_run(Path(run), check_seal=check_seal)


def _says_documents(text: Text | None, document: str | None) -> bool:
    """Return True if the caller says what documents are, and the runs need not be asked."""
    return document is not None or (isinstance(text, Corpus) and text.settings.get("document") is not None)


def _text_of(runs: Sequence[Run], text: Text | None, document: str | None = None) -> Corpus:
    """Return the text of runs, read as it was when it was scored (unit, field, groups), with documents as asked."""
    if isinstance(text, Corpus):
        return corpus_of(text, document=document)
    if text is None:
        found = next((corpus for run in runs if (corpus := run.corpus(document=document)) is not None), None)
        if found is None:
            raise UsageError("--document needs the text that was scored: name it (--text)")
        return found
    corpus_of(text)  # refuses what is no text, in words
    paths = [str(path) for path in ([text] if isinstance(text, (str, os.PathLike)) else text)]
    run = next((run for run in runs if run.settings), runs[0])
    corpus = run.corpus(paths, document=document)
    return corpus_of(paths) if corpus is None else corpus


def mix(
    models: Sequence[Model],
    held_out: Text | None = None,
    *,
    weights: Sequence[float] | None = None,
    threads: int | None = None,
) -> MixtureModel:
    """Mixes models over one vocabulary: linear interpolation, weights given or by EM on held-out text.

    Args:
        models: two or more, or the paths of them.
        held_out: text that no component was trained on: a path, several, or a `Corpus`.
        weights: one a model, summing to 1, instead of estimating them; the text, if given, then only measures them.
        threads: how many; no weight depends on it.

    Returns:
        A model like any other, with `weights` and how they were found, and what they are worth, in `estimation`.

    Raises:
        InputError: the vocabularies or tokenizers differ, or the text is empty.
        UsageError: fewer than two models, weights that are none, or neither weights nor text.
    """
    if isinstance(models, (str, os.PathLike)):
        raise UsageError("a mixture needs a list of two models or more, not one path")
    if held_out is None and weights is None:
        raise UsageError("a mixture needs held-out text to estimate its weights on, or the weights themselves")
    components = [loaded(model) for model in models]
    if held_out is None:
        return MixtureModel(components, weights or ())
    corpus = corpus_of(held_out)
    if weights is None:
        return _mix(components, corpus, threads=threads)
    fit = measure_weights(components, weights, corpus, threads=threads)
    return MixtureModel(components, fit.weights, estimation=fit.to_dict())


def divergence(
    a: Model,
    b: Model,
    text: Text,
    *,
    events: int = DEFAULT_EVENTS,
    exhaustive: bool = False,
    top_k: int | Sequence[int] = DEFAULT_TOP_K,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
) -> Divergence:
    """Measures how far the predictions of two models are apart in the contexts of a text.

    Args:
        a: the model to stay close to, e.g. before pruning or quantising.
        b: the other one, over the same tokens.
        text: a path, several, or a `Corpus`.
        events: about how many events to look at, in whole segments drawn at random.
        exhaustive: all of them.
        top_k: for how many most probable tokens to count the agreement; one number or several.
        seed: of the draw and of the bootstrap.
        threads: how many; no number depends on it.

    Raises:
        InputError: the vocabularies or tokenizers differ, or the text is empty.
    """
    first = loaded(a)
    return _divergence(
        first,
        aligned(loaded(b), first),
        corpus_of(text),
        DivergenceSettings(
            events=None if exhaustive else events,
            top_k=[top_k] if isinstance(top_k, int) else top_k,
            seed=seed,
            threads=threads,
        ),
    )
