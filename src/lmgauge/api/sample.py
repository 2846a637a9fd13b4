"""`lmgauge.sample`: text drawn from a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lmgauge.api.inputs import Model, loaded
from lmgauge.base.choices import DEFAULT_SEED
from lmgauge.base.declaration import verb
from lmgauge.base.option_numbers import Count, Natural, NotNegative
from lmgauge.settings import ScoringOptions


@verb
def sample(
    model: Model,
    count: Natural = 1,
    *,
    seed: Natural = DEFAULT_SEED,
    temperature: NotNegative = 1.0,
    top_k: Count | None = None,
    max_tokens: Count = 200,
    prompt: str = "",
    scoring: ScoringOptions | None = None,
    **fields: Any,
) -> Iterator[str]:
    """Draw text from a model: `lmgauge sample`.

    A model with a spelled vocabulary draws the letters of new words and the white space before each word, too.

    Args:
        model: a model folder, an ARPA or KenLM file; from Python also a model.
        count: how many segments.
        seed: same seed, same text.
        temperature: below 1 safer, above 1 wilder, of tokens and letters; 0 always takes the most probable one.
        top_k: draw from this many most probable tokens only; letters are not limited.
        max_tokens: longer segments are cut.
        prompt: text that each segment begins with.
        scoring: how a model named by a path computes.
        fields: those of `scoring`, by name.

    Returns:
        An iterator over the segments, each to `</s>` or `max_tokens`.

    Raises:
        ModelFileError: the model cannot be loaded.
        UsageError: a number out of range.

    Shell:
        lmgauge sample -m kn5/ -n 5 --seed 1
        lmgauge sample -m lstm/ --prompt "the old" --top-k 10

    Example:
        >>> from lmgauge import Corpus, train
        >>> model = train("witten-bell", Corpus.from_strings(["the cat sat", "the dog ran"]), order=2)
        >>> list(sample(model, 2, seed=1))
        ['the ran', 'dog sat']
    """
    from lmgauge.models.sampling import sample as draw

    return draw(
        loaded(model, scoring), count, seed=seed, temperature=temperature, top_k=top_k, max_tokens=max_tokens, prompt=prompt
    )
