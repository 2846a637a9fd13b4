"""`lmgauge.decide`: two models on one text, until it is decided which is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from lmgauge.api.inputs import Models, PathLike, Text, corpus_of, followed, listed, named_models, opened, refuse_output
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Count, Natural, Part, Positive
from lmgauge.settings import ReadingOptions, ScoringOptions

if TYPE_CHECKING:
    from lmgauge.results import Decision


@verb
def decide(
    models: Models | Mapping[str, Sequence[PathLike]],
    text: Text | None = None,
    *,
    target: Positive | None = None,
    until: Literal["decided"] | None = None,
    margin: Part | None = None,
    seed: Natural = 12345,
    output: PathLike | None = None,
    threads: Count | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Decision:
    """Score documents in random order with two models until it is decided which is better: `lmgauge compare -m A -m B`.

    The test holds at every look, all looks together: it errs in at most 5 % of comparisons of models that are alike.

    Sources: Lai (1976), "On confidence sequences"; Wang & Ramdas (2025), "Anytime-valid t-tests and confidence sequences".

    Args:
        models: models in place of runs: TEXT is scored by each; with `until` by two, a few documents at a time. With a
            target, runs; without a text, the runs of two recipes by their names, which are paired seed by seed.
        text: files, globs or a `Corpus`, of seven documents or more.
        target: is the recipe below this cross-entropy (nats per event), by its runs so far, in order?
        until: score documents in random order until it is decided, or the text is used up.
        margin: also stop where the figures are alike within this share of them, such as 0.5%.
        seed: of the order of documents.
        output: a file of the totals of documents as they become known; the same command goes on from there.
        threads: threads to use; all cores if not given. Does not change results (networks: last digits only).
        reading: how the text is read; `document` says what is independent.
        scoring: how models named by a path score.
        fields: those of `reading` and `scoring`, by name.

    Returns:
        Which model is better, or `equal`, or `undecided`; also where it is interrupted (Ctrl-C).

    Raises:
        InputError: the models may not be compared, or an event has probability zero.
        UsageError: not two models, fewer than seven documents, or documents are not known.

    Example:
        >>> from lmgauge import Corpus, train
        >>> texts = [f"the {animal} sat" for animal in ("cat", "dog", "cow", "hen", "pig", "owl", "ant", "bee", "fox")]
        >>> corpus = Corpus.from_strings(texts, documents=texts)
        >>> decide([train("witten-bell", corpus, order=order) for order in (1, 2)], corpus)
        <Decision: wb2 / wb1: perplexity 2.2552 / 7.2905, second, 7 of 9 documents>
    """
    from lmgauge.evaluation.comparison import until as of_documents

    if isinstance(models, Mapping) and text is None and target is None:
        from lmgauge.evaluation.comparison.recipes import decide_recipes

        return decide_recipes({name: [opened(run) for run in cast("list[PathLike]", runs)] for name, runs in models.items()})
    models = cast("Models", models)
    if target is not None and text is None:
        return of_documents.against_target([opened(cast("PathLike", run)) for run in listed(models)], target)
    if text is None or target is not None:
        raise UsageError("two models are compared on a text, and runs with a target: one of the two is needed")
    corpus = corpus_of(text, reading)
    corpus.refuse_once("documents are drawn from all of the text before they are scored")
    refuse_output(output, listed(models), corpus)
    if len(listed(models)) != 2:
        raise UsageError(f"two models are compared until it is decided, not {len(listed(models))}: -m A -m B TEXT")
    with of_documents.noted(output) as notes:
        opened_models, names = named_models(models, scoring, corpus)
        followed(opened_models, corpus, scoring, by_group=True)  # refuses protocols that join documents
        question = of_documents.Pair(opened_models, names, corpus, threads)
        return of_documents.decide(question, notes, margin=margin, seed=seed)
