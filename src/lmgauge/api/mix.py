"""`lmgauge.mix`: models mixed by linear interpolation, or made into one n-gram model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from lmgauge.api.types import PATHS, Model, PathLike, Text
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.models.network.options import ScoringOptions
from lmgauge.option_numbers import Count
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.mixture.static import StaticMixture
    from lmgauge.models.mixture.together import Mixture


@overload
def mix(
    models: Sequence[Model], held_out: Text | None = None, *, static: Literal[False] = False, **options: Any
) -> Mixture: ...
@overload
def mix(
    models: Sequence[Model], held_out: Text | None = None, *, static: Literal[True], **options: Any
) -> StaticMixture: ...
@verb
def mix(
    models: Sequence[Model],
    held_out: Text | None = None,
    *,
    weights: Sequence[float] | None = None,
    static: bool = False,
    threads: Count | None = None,
    output: PathLike | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> Mixture | StaticMixture:
    """Mix models by linear interpolation, weights given or by EM on held-out text: `lmgauge mix`.

    Models over different words are mixed over the union of their words: a model gives probability zero to a word that it
    does not know and another does, and its `<unk>` is for words that no model knows. Spelled models with the same speller
    get it around their mixture. Models that cut text differently are mixed byte by byte, if each of them gives every text a
    probability: spelled words, spelled characters, bytes.

    Args:
        models: model folder, ARPA or KenLM file; two or more, from Python also models.
        held_out: text that no component was trained on; a path, several, or from Python a `Corpus`.
        weights: one a model, summing to 1, instead of estimating them; the text, if given, then only measures them.
        static: make one n-gram model of them; with the n-grams of all, each as probable as in the mixture, and new back-off
            weights (Stolcke 2002). For n-gram models that back off; or for one mixture of such, whose weights stay.
        threads: how many; all cores if not given. No weight depends on it.
        output: folder to write; with `static` also an ARPA file or a binary file of KenLM, by its ending.
        reading: how the text is read.
        scoring: how models named by a path score.
        fields: those of `reading` and `scoring`, by name.

    Returns:
        A model like any other, with `weights`, and how they were found and what they are worth in `estimation`; of spelled
        models with one speller, what is estimated and measured is the mixture of the models inside. With
        `static`, an n-gram model in `model`, and the perplexity lost on the text.

    Raises:
        InputError: the tokenizers differ, or the vocabularies of networks, or the text is empty.
        UsageError: some models are spelled and another one cannot be read as bytes, fewer than two models, weights that are
            not shares of 1, neither weights nor text, an output that would replace an input, or `static` for models that do
            not back off.

    Shell:
        lmgauge mix -m kn3/ -m wb3/ valid.txt -o mixed/
        lmgauge mix -m kn3/ -m wb3/ --weights 0.7,0.3 -o mixed/
        lmgauge mix -m theirs.arpa -m kn3/ --reserved unk valid.txt --static -o m.arpa

    Example:
        >>> from lmgauge import Corpus, train
        >>> text = Corpus.from_strings(["a b", "a"])
        >>> mix([train("laplace", text, order=n) for n in (1, 2)], weights=[0.25, 0.75]).weights
        (0.25, 0.75)
    """
    from lmgauge.api.evaluate import evaluate
    from lmgauge.api.inputs import corpus_of, load_models, refuse_output, refuse_twice, saved
    from lmgauge.models.mixture.static import StaticMixture, static_mixture
    from lmgauge.models.mixture.together import together
    from lmgauge.progress import say_progress

    if isinstance(models, PATHS):
        raise UsageError("a mixture needs a list of two models or more, not one path")
    if len(models) < 2 and not static:
        raise UsageError("a mixture needs at least two models; name each (-m)")
    corpus = None if held_out is None else corpus_of(held_out, reading)
    if len(models) > 1 and corpus is None and weights is None:
        raise UsageError("a mixture needs held-out text to estimate its weights on, or the weights themselves")
    if len(models) == 1 and weights is not None:
        raise UsageError("a mixture has its weights; for others, mix its components again")
    paths = refuse_twice(models)
    refuse_output(output, models, corpus, folder="" if static else "a mixture that is not --static")
    components = load_models(models, scoring)
    if len(components) > 1:
        parts = together(components, paths if len(paths) == len(models) else None)
        mixture: Any = parts.fitted(weights, corpus, threads=threads)
    else:
        mixture = next(iter(components), None)
    if not static:
        return saved(mixture, output)  # type: ignore[no-any-return]
    say_progress("merging n-grams")
    model, measured = static_mixture(mixture), dict[str, Any]()
    if corpus is not None:
        exact, mine = (evaluate(one, corpus, threads=threads) for one in (mixture, model))
        measured = {"perplexity_of_mixture": exact.perplexity, "perplexity": mine.perplexity, "events": mine.events}
    return StaticMixture(saved(model, output), mixture, **measured)
