"""`lmgauge.cache`: a model that adapts to the text it scores."""

from __future__ import annotations

import os
from typing import TypedDict, Unpack

from lmgauge.api.inputs import PATHS, Model, PathLike, Text, corpus_of, loaded
from lmgauge.choices import ARPA_ENDINGS, KENLM_ENDINGS
from lmgauge.errors import UsageError
from lmgauge.files import refuse_replacing
from lmgauge.models.cache.counts import CacheSettings
from lmgauge.models.cache.model import CacheModel
from lmgauge.models.mixture.model import MixtureModel
from lmgauge.models.mixture.weights import estimate_weights, measure_weights
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.spelling.model import SpelledModel
from lmgauge.progress import say_progress

DEFAULT_WEIGHT = 0.1
DEFAULT_WINDOW = 500


class CacheOptions(TypedDict, total=False):
    """The fields of `CacheSettings`, each of which may be left out."""

    order: int
    window: int | None
    decay: float | None


def cache(
    model: Model,
    held_out: Text | None = None,
    *,
    weight: float | None = None,
    threads: int | None = None,
    output: PathLike | None = None,
    scoring: ScoringOptions | None = None,
    **options: Unpack[CacheOptions],
) -> MixtureModel | SpelledModel:
    """Mix a model with a cache of the words that went by, so that it adapts to the text it scores: `lmgauge cache`.

    Each event is scored before it is counted, and the cache is empty at the beginning of each text. Its context runs on over
    the ends of segments. Source: Kuhn & De Mori (1990), "A cache-based natural language model for speech recognition".

    Args:
        model: any model that predicts the end of a line as `</s>`, or its path.
        held_out: text that the model was not trained on, in the order in which it was written: the weight is the one that
            makes it most probable. A path, several, or a `Corpus`.
        weight: of the cache, from 0 to 1, instead of estimating it; 0.1 if there is no held-out text either.
        threads: how many; no number depends on it.
        output: a folder to save the model to.
        scoring: how a model named by its path scores.
        options: `order` (1: which words went by; 2, the default: also which word came after which), `window` (how many of
            the last events count; 500), `decay` in place of it (an event that i others came after counts decay ** i).

    Returns:
        A mixture of two, the model and the cache: a model like any other; spelled if the model is.

    Raises:
        InputError: the held-out text is empty or cannot be used.
        UsageError: the model predicts no `</s>`, an option out of range, or an output that would replace an input.

    Example:
        >>> from lmgauge import Corpus, evaluate, train
        >>> model = train("laplace", Corpus.from_strings(["the cat sat", "a dog ran"]), order=1)
        >>> adapting = cache(model, weight=0.25)
        >>> text = ["the cat sat", "the cat ran", "the cat sat"]
        >>> [round(evaluate(each, texts=text).perplexity, 2) for each in (model, adapting)]
        [7.23, 6.12]
    """
    chosen: CacheOptions = {"order": 2, **options}
    if chosen.get("decay") is None and chosen.get("window") is None:
        chosen["window"] = DEFAULT_WINDOW
    settings = CacheSettings(**chosen)
    if weight is not None and not 0 <= weight <= 1:
        raise UsageError(f"weight must be a share, from 0 to 1; got {weight:g}")
    corpus = None if held_out is None else corpus_of(held_out)
    if output is not None:
        if os.fspath(output).endswith((*ARPA_ENDINGS, *KENLM_ENDINGS)):
            raise UsageError(f"-o {output}: only n-gram models have an ARPA or KenLM form; a model with a cache is a folder")
        read = [os.fspath(model)] if isinstance(model, PATHS) else []
        refuse_replacing({"-o": output}, [*read, *(source.path for source in (corpus.sources if corpus else ()))])
    whole = loaded(model, scoring)
    base = whole.inner if isinstance(whole, SpelledModel) else whole  # what adapts is which words come, not their spelling
    pair = [base, CacheModel.beside(base, settings)]
    shares = None if weight is None else (1 - weight, weight)
    if corpus is None:
        mixture = MixtureModel(pair, shares or (1 - DEFAULT_WEIGHT, DEFAULT_WEIGHT))
    else:
        if shares is None:
            fit = estimate_weights(pair, corpus, threads=threads, progress=say_progress)
        else:
            fit = measure_weights(pair, shares, corpus, threads=threads, progress=say_progress)
        mixture = MixtureModel(pair, fit.weights, estimation=fit.to_dict())
    adapting = whole.around(mixture) if isinstance(whole, SpelledModel) else mixture
    if output is not None:
        say_progress(f"saving {output}")
        adapting.save(os.fspath(output))
    return adapting
