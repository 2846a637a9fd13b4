"""`lmgauge.dynamic_evaluation`: a network that learns from the text it scores."""

from __future__ import annotations

from typing import Any

from lmgauge.api.inputs import Model, loaded
from lmgauge.declaration import verb
from lmgauge.errors import UsageError
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.protocol import LanguageModel
from lmgauge.models.spelling.model import parted

DEFAULT_RATE = 0.1


@verb
def dynamic_evaluation(
    model: Model, rate: float = DEFAULT_RATE, *, scoring: ScoringOptions = ScoringOptions(), **fields: Any
) -> LanguageModel:
    """Make a network learn from each segment after it was scored, by a step of gradient descent.

    Each pass over a text begins with a copy of the network, which itself stays as it is: the same text gets the same
    numbers. The model lives in memory; it has no folder form. Source: Krause et al. (2018), "Dynamic evaluation of neural
    sequence models".

    Args:
        model: a network of the `transformers` library whose segments are contexts of their own and end with `</s>`, or its
            path.
        rate: step size, against the gradient of a segment's mean nats an event. Choose it on held-out text.
        scoring: how a network named by its path scores.
        fields: those of `scoring`, by name.

    Returns:
        A model like any other; its context is the text so far.

    Raises:
        UsageError: the model is not such a network, or the rate is not a positive number.

    Example:
        >>> from lmgauge import Corpus, train
        >>> dynamic_evaluation(train("laplace", Corpus.from_strings(["a b"])))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        lmgauge.errors.UsageError: laplace3: dynamic evaluation needs a network that torch computes; ...
    """
    whole = loaded(model, scoring)
    base, around = parted(whole)
    if not hasattr(base, "network"):
        raise UsageError(
            f"{whole.label}: dynamic evaluation needs a network that torch computes; lmgauge.cache adapts others"
        )
    from lmgauge.models.network.torch.dynamic import DynamicModel

    return around(DynamicModel(base, rate))  # type: ignore[arg-type]  # what has a network is a NeuralModel
