"""How models are mixed: token by token, with one speller around the mixture, or byte by byte."""

# Models that cut text alike are mixed over their tokens. Where all of them are spelled by the same speller, what is mixed
# are the models inside, over the union of their words, and the speller is put around the mixture: letters and white space
# cost the same whatever the weights. The known words are then those of the union, and a component's `<unk>` is for words
# that no component knows; so the weights are estimated on rows of the models inside, not on those of the spelled ones,
# which spell words that another component knows. All other models that give every text a probability are mixed as models of
# bytes.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmgauge.models.mixture.model import MixtureModel, ReadAs
from lmgauge.models.mixture.weights import find_weights
from lmgauge.models.protocol import LanguageModel
from lmgauge.models.spelling.byte_view import byte_views, is_readable
from lmgauge.models.spelling.model import SpelledModel
from lmgauge.progress import say_progress
from lmgauge.text.documents import Corpus

Mixture = MixtureModel | SpelledModel
"""What comes of it: a mixture, or one with a speller around it."""


@dataclass(frozen=True)
class Together:
    """Models as they are to be mixed."""

    components: tuple[LanguageModel, ...]  # what the mixture is made of
    read_as: ReadAs
    names: tuple[str, ...] | None = None  # what to call them in messages; their labels if None
    spelled: SpelledModel | None = None  # a model whose speller is put around the mixture; None for none

    @property
    def views(self) -> Sequence[LanguageModel]:
        """Return what weights are estimated on: models whose rows lie side by side."""
        if self.read_as == "tokens":
            return self.components
        return byte_views(self.components, self.names)

    def mixed(self, weights: Sequence[float], estimation: Mapping[str, Any] | None = None) -> Mixture:
        """Return the mixture.

        >>> import lmgauge
        >>> text = lmgauge.Corpus.from_strings(["a b", "ab c"])
        >>> models = [lmgauge.train("witten-bell", text, order=n, vocabulary="spelled") for n in (1, 2)]
        >>> together(models).mixed([0.25, 0.75]).inner.weights
        (0.25, 0.75)
        """
        # weights: one a component, [components].
        mixture = MixtureModel(self.components, weights, estimation=estimation, names=self.names, read_as=self.read_as)
        one = self.spelled
        return mixture if one is None else SpelledModel(mixture, one.speller, one.separators)

    def fitted(self, weights: Sequence[float] | None, held_out: Corpus | None, *, threads: int | None = None) -> Mixture:
        """Return the mixture with given weights, or the best ones for a held-out text, and what they are worth on it."""
        # weights: one a component, or None where there is a text.
        if held_out is None:
            return self.mixed(weights or ())
        fit = find_weights(self.views, weights, held_out, threads=threads, progress=say_progress, names=self.names)
        return self.mixed(fit.weights, fit.to_dict())


def together(models: Sequence[LanguageModel], names: Sequence[str] | None = None) -> Together:
    """Return how models are best mixed."""
    shown = None if names is None else tuple(names)
    spelled = [model for model in models if isinstance(model, SpelledModel)]
    if spelled and len(spelled) == len(models) and all(_alike(spelled[0], other) for other in spelled[1:]):
        return Together(tuple(model.inner for model in spelled), "tokens", shown, spelled[0])
    by_byte = any(isinstance(model, MixtureModel) and model.read_as == "bytes" for model in models)
    alike = len({model.tokenizer.fingerprint for model in models}) == 1
    if not spelled and not by_byte and (alike or not all(map(is_readable, models))):
        return Together(tuple(models), "tokens", shown)
    return Together(tuple(models), "bytes", shown)


def _alike(one: SpelledModel, other: SpelledModel) -> bool:
    return (
        one.tokenizer.fingerprint == other.tokenizer.fingerprint
        and (one.speller and one.speller.fingerprint) == (other.speller and other.speller.fingerprint)
        and (one.separators and one.separators.to_dict()) == (other.separators and other.separators.to_dict())
    )
