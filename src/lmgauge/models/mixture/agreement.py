"""What models must have in common to be mixed, and the views through which they speak one order of ids.

Models that know different words are mixed over the union of their words, by the rule of SRILM: a model gives probability
zero to a word that it does not know and another model does; its `<unk>` stands for words that no model knows, and keeps all
of its mass. So the distribution of each model sums to one over the union and `<unk>`, and that of the mixture, too. In a
context, a word that a model does not know is its `<unk>`.

    words a b c    p_1(a) = 0.5  p_1(b) = 0.4                p_1(<unk>) = 0.1      0.7 p_1 + 0.3 p_2: a 0.41  b 0.28
                   p_2(a) = 0.2                p_2(c) = 0.5  p_2(<unk>) = 0.3                         c 0.15  <unk> 0.16
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import InputError, UsageError
from lmgauge.models.mixture.vocabulary_alignment import Reordered, aligned, strings_of
from lmgauge.models.network.tokens import NO_ID
from lmgauge.models.protocol import LanguageModel, check_context
from lmgauge.scores import ScoreBatch
from lmgauge.scoring import different_events, with_same_events
from lmgauge.text.segments import Segments
from lmgauge.text.vocabulary import SPECIAL_TOKENS, UNK, Vocabulary

Beside = Callable[[Segments, list[ScoreBatch]], tuple[Segments, list[ScoreBatch]]]


def agreeing(models: Sequence[LanguageModel], names: Sequence[str] | None = None) -> tuple[LanguageModel, ...]:
    """Return the models, all with the ids of the first, or if they know different words, with those of the union."""
    if len(models) < 2:
        raise UsageError("a mixture needs at least two models")
    names = [model.label for model in models] if names is None else names
    for name, model in zip(names, models, strict=True):
        if model.is_spelled:
            raise UsageError(
                f"{name}: a spelled model cannot be a component of a mixture over tokens; lmgauge.mix puts one speller "
                "around the mixture, or reads the models as bytes"
            )
    choices = [(name, model.reserved) for name, model in zip(names, models, strict=True) if model.reserved is not None]
    for name, policy in choices[1:]:
        if policy != choices[0][1]:
            raise InputError(
                f"a <unk>, <s> or </s> in the text means {choices[0][1]!r} to {choices[0][0]} and {policy!r} to {name}; "
                "choose one for all with --reserved (with_reserved in Python)"
            )
    unscored = [not model.context_policy.counts_line_ends for model in models]
    for name, other in zip(names, unscored, strict=True):
        if other != unscored[0]:
            without, scoring = (name, names[0]) if other else (names[0], name)
            raise InputError(
                f"{without} leaves out </s>, the end of a line, and {scoring} scores it; use models trained alike (--no-eos)"
            )
    if needs_union(models):
        return over_union(models)
    return tuple(
        models[0] if i == 0 else aligned(model, models[0], names=(names[i], names[0])) for i, model in enumerate(models)
    )


# -- the union of their words -------------------------------------------------------------------------------------------
def needs_union(models: Sequence[LanguageModel]) -> bool:
    """Return True if models cut text into words alike, but do not all know the same ones.

    >>> import lmgauge
    >>> one, other = (lmgauge.train("laplace", lmgauge.Corpus.from_strings([text])) for text in ("a b", "b c"))
    >>> needs_union([one, other]), needs_union([one, one])
    (True, False)
    """
    # Networks are never asked: what they know decides how they cut text.
    first = models[0]
    if any(model.tokens is not None for model in models):
        return False
    if any(model.tokenizer.fingerprint != first.tokenizer.fingerprint for model in models):
        return False
    return any(model.vocabulary.fingerprint != first.vocabulary.fingerprint for model in models)


def over_union(models: Sequence[LanguageModel]) -> tuple[LanguageModel, ...]:
    """Return views of models over the union of their words: those of the first in its order, then the others' new ones.

    >>> import lmgauge
    >>> models = [lmgauge.train("laplace", lmgauge.Corpus.from_strings([text]), order=1) for text in ("a b", "b c")]
    >>> [view.vocabulary.tokens[3:] for view in over_union(models)]
    [['a', 'b', 'c'], ['a', 'b', 'c']]
    """
    union = dict.fromkeys(token for model in models for token in strings_of(model.vocabulary))
    words = [token.decode() for token in union][len(SPECIAL_TOKENS) :]
    vocabulary = Vocabulary.from_tokens(words, closed=all(model.vocabulary.closed for model in models))
    views = []
    for model in models:
        own = {token: i for i, token in enumerate(strings_of(model.vocabulary))}
        own_ids = np.array([own.get(token, NO_ID) for token in union], np.int64)
        views.append(_OverUnion(model, vocabulary, own_ids))
    return tuple(views)


class _OverUnion(Reordered):
    """A model seen through the union of its words and those of others."""

    @property
    def knows(self) -> NDArray[np.bool_]:
        # Bool [union], True for what is a token of the model.
        known: NDArray[np.bool_] = self._own_ids != NO_ID
        return known

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        # context_ids: uint32 [n], ids of the union.
        ids = check_context(context_ids, len(self.vocabulary))
        return super().log_distribution(np.where(self.knows[ids], ids, UNK).astype(np.uint32))


def known_to_some(models: Sequence[LanguageModel]) -> int:
    """Return how many words some but not all of the models know, as `over_union` shows them; 0 for others."""
    views = [model for model in models if isinstance(model, _OverUnion)]
    return int(np.count_nonzero(~np.all([view.knows for view in views], axis=0))) if views else 0


def beside(models: Sequence[LanguageModel]) -> Beside:
    """Return what lays the batches of models side by side: `with_same_events`, or `over_the_union` for views of one."""
    return over_the_union if isinstance(models[0], _OverUnion) else with_same_events


def over_the_union(block: Segments, batches: list[ScoreBatch]) -> tuple[Segments, list[ScoreBatch]]:
    """Return a block and its batches over the union: the word where any model knows it, and -inf from those that do not."""
    first = batches[0]
    if any(not np.array_equal(batch.segment_events, first.segment_events) for batch in batches):
        raise different_events()
    ids, kind = (np.maximum.reduce([b.token_ids for b in batches]), np.minimum.reduce([b.kind for b in batches]))
    before = first.before
    if before is not None:
        shown = [batch.before.ids for batch in batches if batch.before is not None]
        before = replace(before, ids=np.maximum.reduce(shown))
    merged = []
    for batch in batches:
        unknown = batch.token_ids != ids
        if (batch.token_ids[unknown] != UNK).any():
            raise different_events()
        logprob = np.where(unknown, -np.inf, batch.logprob)
        merged.append(replace(batch, token_ids=ids, kind=kind, logprob=logprob, before=before))
    return block, merged
