"""`lmgauge.cache`: a model that adapts to the text it scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmgauge.api.types import Model, PathLike, Text
from lmgauge.declaration import verb
from lmgauge.models.cache.settings import CacheSettings
from lmgauge.models.network.options import ScoringOptions
from lmgauge.option_numbers import Count, Share
from lmgauge.text.reading_options import ReadingOptions

if TYPE_CHECKING:
    from lmgauge.models.mixture.model import MixtureModel
    from lmgauge.models.spelling.model import SpelledModel

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

    Each event is scored before it is counted, and the cache is empty at the beginning of each text. Its context runs on over
    the ends of segments. Source: Kuhn & De Mori (1990), "A cache-based natural language model for speech recognition".

    Args:
        model: any model that predicts the end of a line as `</s>`, or its path.
        held_out: text that the model was not trained on, in the order in which it was written: the weight is the one that
            makes it most probable. A path, several, or from Python a `Corpus`.
        weight: share of the cache, 0 to 1, instead of estimating it; 0.1 without held-out text either.
        memory: what the cache remembers.
        threads: how many; all cores if not given. No number depends on it.
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
    from lmgauge.api.inputs import corpus_of, loaded, refuse_output, saved
    from lmgauge.models.cache.model import CacheModel
    from lmgauge.models.mixture.together import Together
    from lmgauge.models.spelling.model import parted

    corpus = None if held_out is None else corpus_of(held_out, reading)
    refuse_output(output, [model], corpus, folder="a model with a cache")
    base, around = parted(loaded(model, scoring))  # what adapts is which words come, not their spelling
    pair = Together((base, CacheModel.beside(base, memory)), "tokens")
    shares = _WEIGHT if weight is None and corpus is None else weight
    mixture = pair.fitted(None if shares is None else (1 - shares, shares), corpus, threads=threads)
    return saved(around(mixture), output)  # type: ignore[no-any-return]
