"""`lmgauge.compare` and `lmgauge.compare_recipes`: whether results may be compared, and whether their difference is real."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.api.run_text import RunText
from lmgauge.api.types import PathLike, Text
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.option_numbers import Count, Natural

if TYPE_CHECKING:
    from lmgauge.evaluation.comparison.recipes import RecipeComparisons
    from lmgauge.evaluation.comparison.results import Comparisons
    from lmgauge.evaluation.slicing.cuts import WordCounts
    from lmgauge.text.documents import Corpus


@verb
def compare(
    runs: Sequence[PathLike] = (),
    *,
    examples: Natural = 5,
    threads: Count | None = None,
    about: RunText = RunText(),
    **fields: Any,
) -> Comparisons:
    """Say whether results may be compared, whether their difference is real, and where it comes from: `lmgauge compare`.

    A verdict is about these two models, on texts like this one, and not about the recipes that made them: what compares
    several runs of each recipe is (`--recipe`, `compare_recipes`).

    Args:
        runs: run folders (of `evaluate(..., output=...)` or `lmgauge eval -o`) or score tables (Parquet, JSONL); each is
            compared with the first.
        examples: tokens and segments to show of each kind.
        threads: threads to use; all cores if not given. No number depends on it.
        about: the text that was scored, and the training text.
        fields: those of `about`, by name.

    Raises:
        InputError: a run is damaged or was changed, or the text is not the one it scored.
        UsageError: fewer than two runs.

    Shell:
        lmgauge compare run-kn5/ run-wb5/
        lmgauge compare --recipe small=s1/,s2/,s3/ --recipe large=l1/,l2/,l3/

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
    from lmgauge.api.inputs import opened
    from lmgauge.evaluation.comparison import compare as comparison

    if isinstance(runs, (str, os.PathLike)) or not isinstance(runs, Sequence):
        raise UsageError(f"a comparison needs a list of two runs or more, not {type(runs).__name__}")
    compared = [opened(run) for run in runs]
    if len(compared) < 2:
        raise UsageError("a comparison needs two runs or more; each is compared with the first")
    training = about.trained(_word_counts, threads)
    return comparison.compare(compared, examples=examples, training=training, **about.of(compared))


def _word_counts(train: Corpus, threads: int | None, scored: Corpus) -> WordCounts:
    from lmgauge.text.training_coverage import find_training_coverage

    seen = find_training_coverage(train, scored, max_order=1, threads=threads)
    return lambda block: seen.of(block)[0]


@verb
def compare_recipes(
    recipes: Mapping[str, Sequence[PathLike]],
    *,
    text: Text | None = None,
    document: str | None = None,
) -> RecipeComparisons:
    """Say whether recipes differ, from several runs of each: seeds are a second source of chance beside the text.

    Args:
        recipes: several runs (seeds) of a recipe instead of RUNS; on one text, twice or more, each recipe is compared with
            the first.
        text: the text that was scored, if it is not where the runs remember it.
        document: what is independent, as of `compare`.

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
    from lmgauge.api.inputs import opened
    from lmgauge.evaluation.comparison import recipes as of_recipes

    if not isinstance(recipes, Mapping) or any(isinstance(runs, (str, os.PathLike)) for runs in recipes.values()):
        raise UsageError(
            'recipes are lists of runs by name: write lmgauge.compare_recipes({"A": ["s1", "s2"], "B": ["t1", "t2"]})'
        )
    grouped = {name: [opened(run) for run in runs] for name, runs in recipes.items()}
    runs = [run for group in grouped.values() for run in group]
    said = RunText(text=text, document=document)
    return of_recipes.compare_recipes(grouped, **(said.of(runs) if runs else {}))
