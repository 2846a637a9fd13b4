"""`lmgauge.mix` and `lmgauge.cache`: models mixed, and such as adapt to what they score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from lmgauge.api import inputs
from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, loaded, refuse_output, saved
from lmgauge.base.declaration import verb
from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import Count, Share
from lmgauge.settings import CacheSettings, ReadingOptions, ScoringOptions

if TYPE_CHECKING:
    from lmgauge.models.combined.mixture.mixing import Mixture
    from lmgauge.models.combined.mixture.model import MixtureModel
    from lmgauge.models.combined.spelling.model import SpelledModel
    from lmgauge.results import StaticMixture


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

    Models over different words are mixed over the union of their words: a model gives probability zero to a word that
    only other models know, and its `<unk>` is for words that no model knows. The mixture of spelled models with the
    same speller has that speller. Models that cut text differently are not mixed; `lmgauge compare` compares them in
    bits per byte.

    Args:
        models: model folder, ARPA or KenLM file; two or more, from Python also models.
        held_out: text that no component was trained on; a path, several, or from Python a `Corpus`.
        weights: one per model, summing to 1, instead of estimating them; a text, if given, is then only used to measure the
            mixture.
        static: make one n-gram model of them; with the n-grams of all, each as probable as in the mixture, and new back-off
            weights (Stolcke 2002). For n-gram models that back off; or for one mixture of such, whose weights stay.
        threads: how many; all cores if not given. Does not change results.
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
        UsageError: models are spelled and not by one speller, fewer than two models, weights that are not shares of 1,
            neither weights nor text, an output that would replace an input, or `static` for models that do not back off.

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
    from lmgauge.base.progress import say_progress
    from lmgauge.models.combined.mixture.mixing import mixture_of
    from lmgauge.models.combined.mixture.static import StaticMixture, static_mixture

    if isinstance(models, PATHS):
        raise UsageError("a mixture needs a list of two models or more, not one path")
    if len(models) < 2 and not static:
        raise UsageError("a mixture needs at least two models; name each (-m)")
    corpus = None if held_out is None else corpus_of(held_out, reading)
    if len(models) > 1 and corpus is None and weights is None:
        raise UsageError("a mixture needs held-out text to estimate its weights on, or the weights themselves")
    if len(models) == 1 and weights is not None:
        raise UsageError("a mixture has its weights; for others, mix its components again")
    paths = inputs.refuse_twice(models)
    refuse_output(output, models, corpus, folder="" if static else "a mixture that is not --static")
    components = inputs.load_models(models, scoring)
    inputs.refuse_framed(components, corpus)
    if len(components) > 1:
        names = paths if len(paths) == len(models) else None
        mixture: Any = mixture_of(components, weights, corpus, names=names, threads=threads)
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


_WEIGHT = 0.1


@verb
def cache(
    model: Model,
    held_out: Text | None = None,
    *,
    weight: Share | None = None,
    memory: CacheSettings = CacheSettings(),
    threads: Count | None = None,
    output: PathLike | None = None,
    reading: ReadingOptions = ReadingOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    **fields: Any,
) -> MixtureModel | SpelledModel:
    """Mix a model with a cache of the words that went by, so that it adapts to the text it scores: `lmgauge cache`.

    Each event is scored before it is counted, and the cache is empty at the beginning of each text. Its context continues
    across the ends of segments. Source: Kuhn & De Mori (1990), "A cache-based natural language model for speech
    recognition".

    Args:
        model: any model that predicts the end of a line as `</s>`, or its path.
        held_out: text that the model was not trained on, in the order in which it was written: the weight is chosen to make
            it most probable. A path, several, or from Python a `Corpus`.
        weight: share of the cache, 0 to 1, instead of estimating it; 0.1 without held-out text either.
        memory: what the cache remembers.
        threads: how many; all cores if not given. Does not change results.
        output: folder of the model to write.
        reading: how the text is read.
        scoring: how a model named by its path scores.
        fields: those of `memory`, `reading` and `scoring`, by name.

    Returns:
        A mixture of two, the model and the cache: a model like any other; spelled if the model is.

    Raises:
        InputError: the held-out text is empty or cannot be used.
        UsageError: the model predicts no `</s>`, an option out of range, or an output that would replace an input.

    Shell:
        lmgauge cache kn5/ valid.txt -o kn5-cache/
        lmgauge eval -m kn5/ -m kn5-cache/ test.txt

    Example:
        >>> from lmgauge import Corpus, evaluate, train
        >>> model = train("laplace", Corpus.from_strings(["the cat sat", "a dog ran"]), order=1)
        >>> adapting = cache(model, weight=0.25)
        >>> text = ["the cat sat", "the cat ran", "the cat sat"]
        >>> [round(evaluate(each, texts=text).perplexity, 2) for each in (model, adapting)]
        [7.23, 6.12]
    """
    from lmgauge.models.combined.cache_model import CacheModel
    from lmgauge.models.combined.mixture.mixing import mixture_of
    from lmgauge.models.combined.spelling.model import parted

    corpus = None if held_out is None else corpus_of(held_out, reading)
    refuse_output(output, [model], corpus, folder="a model with a cache")
    base, around = parted(loaded(model, scoring))  # what adapts is which words come, not their spelling
    inputs.refuse_framed([base], corpus)
    shares = _WEIGHT if weight is None and corpus is None else weight
    weights = None if shares is None else (1 - shares, shares)
    mixture = mixture_of([base, CacheModel.beside(base, memory)], weights, corpus, threads=threads)
    return saved(around(mixture), output)  # type: ignore[no-any-return]
