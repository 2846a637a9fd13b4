"""Static mixtures: one n-gram model in place of several (Stolcke 2002, "SRILM - an extensible language modeling toolkit").

The n-grams are those of all components together. Each has exactly the probability that the mixture gives it, every
component by its own back-off; only the back-off weights are new, such that every distribution sums to one. So the model
differs from the mixture where an n-gram is in none of the components: the mixture mixes what each of them backs off to, the
static model backs off once. The n-grams are laid over each other level by level, in arrays (`models.ngram.ngram_arrays`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.display import Displayable
from lmgauge.base.errors import UsageError
from lmgauge.models.combined.mixture.compatibility import strings_of
from lmgauge.models.combined.mixture.mixing import Mixture
from lmgauge.models.combined.mixture.model import MixtureModel
from lmgauge.models.combined.spelling.model import SpelledModel, parted
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.ngram_arrays import Floats, Level, find_rows, levels_of, make_keys, reweighted, tables_of
from lmgauge.models.ngram.settings import TrainingRecord
from lmgauge.text.vocabulary import UNK, Vocabulary

_NONE = -1


@dataclass(frozen=True, repr=False)
class StaticMixture(Displayable):
    """An n-gram model in place of a mixture, and what it loses.

    Attributes:
        model: the n-gram model, one like any other.
        mixture: the mixture that it stands for.
        perplexity_of_mixture: of the mixture, on the text; None without a text.
        perplexity: of the n-gram model, on the same text.
        events: of the text.

    Example:
        >>> import lmgauge
        >>> texts = ["the cat sat", "the cat ran"], ["the dog sat", "a dog ran"]
        >>> parts = [lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(text), order=2) for text in texts]
        >>> held_out = lmgauge.Corpus.from_strings(["a cat sat", "the dog ran"])
        >>> lmgauge.mix(parts, held_out, weights=[0.5, 0.5], static=True)
        <StaticMixture: mix(wb2+wb2,union): 19 n-grams, perplexity 3.541, of the mixture 3.431>
    """

    model: NgramModel | SpelledModel = field(repr=False)
    mixture: Mixture = field(repr=False)
    perplexity_of_mixture: float | None = None
    perplexity: float | None = None
    events: int = 0

    @property
    def ngrams(self) -> tuple[int, ...]:
        """N-grams of order 1, 2, ..."""
        return tuple(self.model.types)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as `lmgauge mix --static --json` prints them, without the models."""
        own = {name: value for name, value in vars(self).items() if name not in ("model", "mixture")}
        return {
            **self.mixture.to_dict(),
            "model_type": self.model.to_dict()["model_type"],
            "static": True,
            "label": self.model.label,
            "fingerprint": self.model.fingerprint,
            "ngrams": list(self.ngrams),
            **own,
        }

    def _in_brief(self) -> str:
        brief = f"{self.mixture.label}: {sum(self.ngrams):,} n-grams"
        if self.perplexity is None:
            return brief
        return f"{brief}, perplexity {self.perplexity:.4g}, of the mixture {self.perplexity_of_mixture:.4g}"


def static_mixture(whole: Mixture) -> NgramModel | SpelledModel:
    """Return an n-gram model with the n-grams of all components, each as probable as in the mixture."""
    # whole: of n-gram models that back off, each sentence on its own; or of mixtures of such; a speller around it stays.
    mixture, around = parted(whole)
    if not isinstance(mixture, MixtureModel):
        raise UsageError("a static mixture needs at least two models, or one mixture; name each (-m)")
    weighted = [(model, weight) for model, weight in _components(mixture) if weight > 0]
    vocabulary = mixture.vocabulary
    parts = [_Part(model, weight, vocabulary) for model, weight in weighted]
    unigrams = np.stack((_mean(parts, "probabilities"), _mean(parts, "weights")), axis=1).astype(np.float32)
    levels = [_merged(parts) for _ in range(2, max(model.order for model, _ in weighted) + 1)]
    unigrams, levels = reweighted(unigrams, levels)
    first = weighted[0][0]
    labels = " + ".join(f"{weight:.4f} {model.label}" for model, weight in weighted)
    settings = replace(first.settings, kind="arpa", interpolate=False, discount=None, k=None, prune=None)
    record = TrainingRecord(notes=(f"static mixture of {labels}",))
    static = NgramModel(tables_of(unigrams, levels), vocabulary, mixture.tokenizer, settings, record)
    return around(static)  # type: ignore[return-value]


def _components(mixture: MixtureModel) -> list[tuple[NgramModel, float]]:
    parts: list[tuple[NgramModel, float]] = []
    for model, weight in zip(mixture.components, mixture.weights, strict=True):
        if isinstance(model, MixtureModel):
            parts += [(part, weight * share) for part, share in _components(model)]
            continue
        if not isinstance(model, NgramModel):
            raise UsageError(f"{model.label}: a static mixture is made of n-gram models alone")
        model = model.listed()
        if model.tables.full_context and model.order > 1:
            raise UsageError(f"{model.label} does not back off to shorter n-grams, as the n-grams of a static mixture do")
        if model.settings.context == "stream":
            raise UsageError(f"{model.label}: its contexts run on across lines; a static mixture needs --context sentence")
        parts.append((model, weight))
    return parts


class _Part:
    """A component, laid over the n-grams of all, one order after another."""

    def __init__(self, model: NgramModel, weight: float, vocabulary: Vocabulary) -> None:
        self.weight = weight
        self.levels = levels_of(model.tables)
        own = {token: i for i, token in enumerate(strings_of(model.vocabulary))}
        self.rows = np.array([own.get(token, _NONE) for token in strings_of(vocabulary)], np.int64)
        self.foreign = self.rows == _NONE
        self._knows = ~self.foreign
        self.rows[self.foreign] = UNK
        self._word_of = self.rows
        self._union_words = self.union_rows = np.zeros(len(model.vocabulary), np.int64)
        self.union_rows[self.rows[self._knows]] = np.flatnonzero(self._knows)
        unigrams = model.tables.unigrams.astype(np.float64)
        self.probabilities = np.where(self._knows, unigrams[self.rows, 0], 0.0)
        self.weights = unigrams[self.rows, 1] if self.levels else np.ones(len(self.rows))

    @property
    def own(self) -> Level:
        # Its n-grams of the next order.
        return self.levels[0] if self.levels else _EMPTY

    def keys(self) -> NDArray[np.uint64]:
        # Parent and last word, in the union, of its own n-grams of the next order, uint64 [own n].
        return make_keys(self.union_rows[self.own.parents], self._union_words[self.own.words])

    def step(self, union: Level, union_rows: NDArray[np.int64]) -> None:
        # Go to the next order.
        # union_rows: int64 [own n], where in it those of the component are.
        own, self.levels = self.own, self.levels[1:]
        rows = np.full(len(union), _NONE)
        rows[union_rows] = np.arange(len(own))
        self.foreign = self.foreign[union.parents] | ~self._knows[union.words]
        look = np.flatnonzero(self.foreign & (self.rows[union.parents] != _NONE))
        rows[look] = find_rows(own.keys, self.rows[union.parents[look]], self._word_of[union.words[look]])
        has = np.flatnonzero(rows != _NONE)
        self.probabilities = self.weights[union.parents] * self.probabilities[union.suffixes]
        sure = has[self._knows[union.words[has]]]
        self.probabilities[sure] = own.probabilities[rows[sure]]
        self.weights = np.ones(len(union))
        if self.levels:
            self.weights[has] = own.weights[rows[has]]
        self.rows, self.union_rows = rows, union_rows


_NO_ROWS, _NO_VALUES = np.zeros(0, np.uint32), np.zeros(0)
_EMPTY = Level(_NO_ROWS, _NO_ROWS, _NO_ROWS, _NO_VALUES, _NO_VALUES, np.zeros(0, bool))


def _merged(parts: Sequence[_Part]) -> Level:
    # N-grams of the next order of all components, as probable as in the mixture; all go to that order.
    each = [part.keys() for part in parts]
    keys = np.sort(np.concatenate(each))  # np.unique makes a hash table, and takes ten times as long
    keys = keys[np.diff(keys, prepend=~keys[:1]) != 0]
    union_rows = [np.searchsorted(keys, own) for own in each]
    suffixes, listed = np.zeros(len(keys), np.uint32), np.zeros(len(keys), bool)
    for part, rows in zip(parts, union_rows, strict=True):
        suffixes[rows] = part.union_rows[part.own.suffixes]
        listed[rows] |= part.own.listed
    nothing = np.zeros(len(keys))
    parents, words = (keys >> np.uint64(32)).astype(np.uint32), (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    union = Level(parents, words, suffixes, nothing, nothing, listed)
    for part, rows in zip(parts, union_rows, strict=True):
        part.step(union, rows)
    return replace(union, probabilities=_mean(parts, "probabilities"), weights=_mean(parts, "weights"))


def _mean(parts: Sequence[_Part], name: str) -> Floats:
    # Weighted mean of an attribute of all components.
    total: Floats = sum((part.weight * getattr(part, name) for part in parts), np.zeros(1))
    return np.minimum(total, 1.0) if name == "probabilities" else total
