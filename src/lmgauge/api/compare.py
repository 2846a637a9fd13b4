"""`lmgauge.compare` and `lmgauge.compare_recipes`: whether results may be compared, and whether their difference is real."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

from lmgauge.api.inputs import PathLike, Text, corpus_of, opened, says_documents, text_of
from lmgauge.errors import UsageError
from lmgauge.evaluation.comparison.compare import compare as _compare
from lmgauge.evaluation.comparison.recipes import RecipeComparisons
from lmgauge.evaluation.comparison.recipes import compare_recipes as _compare_recipes
from lmgauge.evaluation.comparison.results import Comparisons
from lmgauge.evaluation.slicing.cuts import WordCounts
from lmgauge.text.documents import Corpus
from lmgauge.text.training_coverage import find_training_coverage


def compare(
    runs: Sequence[PathLike],
    *,
    text: Text | None = None,
    document: str | None = None,
    train: Text | None = None,
    threads: int | None = None,
    examples: int = 5,
) -> Comparisons:
    """Say whether results may be compared, whether their difference is real, and where it comes from: `lmgauge compare`.

    Args:
        runs: run folders (of `evaluate(..., output=...)`) or score tables; each is held against the first.
        text: what they scored; if not given, where the runs remember it.
        document: what is independent, if not as the runs say: see `Corpus.from_files`; needs the text.
        train: training text, for slices by how often words occur in it.
        threads: how many; no number depends on it.
        examples: how many tokens and segments to keep of each kind.

    Raises:
        InputError: a run is damaged or was changed, or the text is not the one it scored.
        UsageError: fewer than two runs.

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> text = Corpus.from_strings(["the cat sat", "the dog sat", "a dog ran"] * 2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     runs = [f"{folder}/wb{order}" for order in (1, 2)]
        ...     for order, run in enumerate(runs, start=1):
        ...         _ = evaluate(train("witten-bell", text, order=order), text, output=run)
        ...     compare(runs, text=text)[0]
        <Comparison: wb2 / wb1: perplexity 1.9085 / 6.6588, p = 0.03125 (whole)>
    """
    if isinstance(runs, (str, os.PathLike)) or not isinstance(runs, Sequence):
        raise UsageError(f"a comparison needs a list of two runs or more, not {type(runs).__name__}")
    compared = [opened(run) for run in runs]
    if len(compared) < 2:
        raise UsageError("a comparison needs two runs or more")
    corpus = None if text is None and document is None else text_of(compared, text, document)
    return _compare(
        compared,
        examples=examples,
        corpus=corpus,
        documents_of_text=says_documents(text, document),
        training=None if train is None else partial(_word_counts, corpus_of(train), threads),
    )


def _word_counts(train: Corpus, threads: int | None, scored: Corpus) -> WordCounts:
    seen = find_training_coverage(train, scored, max_order=1, threads=threads)
    return lambda block: seen.of(block)[0]


def compare_recipes(
    recipes: Mapping[str, Sequence[PathLike]], *, text: Text | None = None, document: str | None = None
) -> RecipeComparisons:
    """Say whether recipes differ, from several runs of each: seeds are a second source of chance beside the text.

    Args:
        recipes: of each recipe, by name, run folders or score tables of two models or more (other seeds) on one text; each
            recipe is compared with the first.
        text: what they scored; if not given, where the runs remember it.
        document: what is independent, if not as the runs say: see `Corpus.from_files`; needs the text.

    Raises:
        InputError: a run is damaged or was changed, the runs may not be compared, or an event has probability zero.
        UsageError: fewer than two recipes, or a recipe with one run.

    Example:
        >>> import tempfile
        >>> from lmgauge import Corpus, evaluate, train
        >>> text, parts = Corpus.from_strings(["a b a", "b a", "a"] * 2), [["a b"], ["a a b"], ["b"], ["b b a"]]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for seed, part in enumerate(parts):
        ...         model = train("laplace", Corpus.from_strings(part), order=1, words=["a", "b"])
        ...         _ = evaluate(model, text, output=f"{folder}/{seed}")
        ...     runs = {"A": [f"{folder}/0", f"{folder}/1"], "B": [f"{folder}/2", f"{folder}/3"]}
        ...     result = compare_recipes(runs, text=text)
        >>> result[0].metric, round(result[0].difference, 3), round(result[0].p_value, 3)
        ('perplexity', 1.13, 0.314)
    """
    if not isinstance(recipes, Mapping) or any(isinstance(runs, (str, os.PathLike)) for runs in recipes.values()):
        raise UsageError(
            'recipes are lists of runs by name: write lmgauge.compare_recipes({"A": ["s1", "s2"], "B": ["t1", "t2"]})'
        )
    grouped = {name: [opened(run) for run in runs] for name, runs in recipes.items()}
    runs = [run for group in grouped.values() for run in group]
    corpus = text_of(runs, text, document) if runs and (text is not None or document is not None) else None
    return _compare_recipes(grouped, corpus=corpus, documents_of_text=says_documents(text, document))
