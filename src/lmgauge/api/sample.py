"""`lmgauge.sample`: text drawn from a model."""

from __future__ import annotations

from collections.abc import Iterator

from lmgauge.api.inputs import Model, loaded
from lmgauge.choices import DEFAULT_SEED
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.sampling import sample as _sample


def sample(
    model: Model,
    count: int = 1,
    *,
    seed: int = DEFAULT_SEED,
    temperature: float = 1.0,
    top_k: int | None = None,
    max_tokens: int = 200,
    prompt: str = "",
    scoring: ScoringOptions | None = None,
) -> Iterator[str]:
    """Draw text from a model: `lmgauge sample`.

    A model with a spelled vocabulary draws the letters of new words and the white space before each word, too.

    Args:
        model: a model, or the path of one.
        count: how many segments.
        seed: the same seed gives the same text.
        temperature: below 1 safer, above 1 wilder, of tokens and letters; 0 always takes the most probable one.
        top_k: draw from this many most probable tokens only; None for all. Letters are not limited.
        max_tokens: a segment that has not ended by then is cut.
        prompt: text that each segment begins with.
        scoring: how a model named by a path computes.

    Returns:
        An iterator over the segments, each to `</s>` or `max_tokens`.

    Raises:
        ModelFileError: the model cannot be loaded.
        UsageError: a number out of range.

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("witten-bell", Corpus.from_strings(["the cat sat", "the dog ran"]), order=2)
        >>> list(sample(model, 2, seed=1))
        ['the ran', 'dog sat']
    """
    return _sample(
        loaded(model, scoring),
        count,
        seed=seed,
        temperature=temperature,
        top_k=top_k,
        max_tokens=max_tokens,
        prompt=prompt,
    )
