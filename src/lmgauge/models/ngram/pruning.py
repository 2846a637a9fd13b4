"""Entropy pruning: n-grams are dropped whose loss changes the model least (Stolcke 1998, "Entropy-based pruning of
backoff language models").

For an n-gram (h, w), dropping it changes p(w|h) to the backed-off estimate and the back-off weight of h. With p(h) the
probability the model gives the history, the relative entropy between the two models is

    D = -p(h) { p(w|h) [log p'(w|h) - log p(w|h)] + (1 - sum of p over what is listed after h) [log a'(h) - log a(h)] }

(eq. 11), where a, a' are the back-off weights with and without it. The loss of an n-gram is exp(D) - 1, the relative rise of
the perplexity. An n-gram stays as long as a longer one that begins with it, so what counts for it is the largest loss among
its own and theirs. A threshold keeps what has at least that loss, so a lower threshold never drops more, and a size is met
exactly: the n-grams with the largest losses stay.

Or what goes are the n-grams of words outside a vocabulary. Those that stay keep their probabilities and back-off weights
a(h): the mass of the words that go is that of `<unk>`, which stands for them from now on. With U the words that go and
`<unk>` itself, and h of words that stay,

    p'(<unk>|h) = sum of p(w|h) over U
                = sum of p(w|h) over those of U listed after h + a(h) (p'(<unk>|h') - sum of p(w|h') over the same)

KenLM's `filter` gives texts of words that stay the same numbers, but no distribution. Say p(cat) = 0.5, p(dog) = 0.3,
p(<unk>) = 0.2, p(cat|the) = 0.6, p(dog|the) = 0.3, a(the) = 0.5. Without `dog`, p'(<unk>) = 0.5, and p'(<unk>|the) = 0.3 +
0.5 (0.5 - 0.3) = 0.4. Renormalized, as by SRILM's `-limit-vocab -renorm`, the words that stay share the mass: back-off
weights are renewed; single words, and contexts that list every word, are divided by their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.display import Displayable
from lmgauge.base.errors import UsageError
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.ngram_arrays import (
    SMALLEST_SHARE,
    Floats,
    Level,
    chosen,
    levels_of,
    reweighted,
    sums_of_contexts,
    tables_of,
)
from lmgauge.text.vocabulary import BOS, EOS, SPECIAL_TOKENS, UNK, restrict

if TYPE_CHECKING:
    from lmgauge.models.combined.spelling.model import SpelledModel

_Rows = NDArray[np.integer[Any]]


@dataclass(frozen=True, repr=False)
class PrunedModel(Displayable):
    """A pruned model, and what is lost.

    Attributes:
        model: the smaller model, one like any other; spelled if the one before was.
        threshold: n-grams with a smaller loss went, as a relative rise of the perplexity; None where those of other words
            did.
        ngrams_before: n-grams of order 1, 2, ... before.
        ngrams: n-grams of order 1, 2, ... after.
        perplexity_before: of the model before, on the text; None without a text.
        perplexity: of the smaller model, on the same text.
        events: of the text.
        note: what went, in words.

    Example:
        >>> import lmgauge
        >>> text = ["the cat sat", "the dog sat", "the cat ran"]
        >>> model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(text), order=2)
        >>> lmgauge.prune(model, to_size=12, text=lmgauge.Corpus.from_strings(text))
        <PrunedModel: 12 of 15 n-grams, perplexity 1.88 to 2.383>
    """

    model: NgramModel | SpelledModel = field(repr=False)
    threshold: float | None
    ngrams_before: tuple[int, ...]
    ngrams: tuple[int, ...]
    perplexity_before: float | None = None
    perplexity: float | None = None
    events: int = 0
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as `lmgauge prune --json` prints them, without the model."""
        own = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        del own["model"]
        return {"label": self.model.label, "fingerprint": self.model.fingerprint, **own}

    def _in_brief(self) -> str:
        brief = f"{sum(self.ngrams):,} of {sum(self.ngrams_before):,} n-grams"
        if self.perplexity is None:
            return brief
        return f"{brief}, perplexity {self.perplexity_before:.4g} to {self.perplexity:.4g}"


def prune_model(model: NgramModel, threshold: float | None = None, *, size: int | None = None) -> NgramModel:
    """Return the model without the n-grams whose loss raises its perplexity least (relative)."""
    # A dropped n-gram that begins or ends a longer one that stays becomes a blank: it is held, but it is not an n-gram of
    # the model any more, and has the probability that backing off gives it.
    # size: how many n-grams stay, unigrams included, instead: exactly this many, or all if there are no more. Of those with
    # the same loss, shorter ones stay, then those whose words come first in the vocabulary.
    model = _backing_off(model)
    levels = levels_of(model.tables)
    losses = _losses(model.tables.unigrams.astype(np.float64), levels)
    if threshold is None:
        listed, threshold = _largest(levels, losses, (size or 0) - model.types[0], model)
    else:
        listed = [level.listed & (loss >= threshold) for level, loss in zip(levels, losses, strict=True)]
    dropped = sum(int(np.count_nonzero(level.listed & ~stays)) for level, stays in zip(levels, listed, strict=True))
    unigrams, fresh = reweighted(model.tables.unigrams, chosen(levels, listed))
    return NgramModel(
        tables_of(unigrams, fresh),
        model.vocabulary,
        model.tokenizer,
        replace(model.settings, prune=threshold),
        replace(model.record, notes=(*model.record.notes, pruning_note(threshold, dropped))),
    )


def _backing_off(model: NgramModel) -> NgramModel:
    model = model.listed()
    if model.tables.full_context:
        raise UsageError(f"{model.label} does not back off to shorter n-grams, so none can be dropped")
    return model


def limit_vocabulary(model: NgramModel, words: Sequence[str], *, renormalize: bool = False) -> NgramModel:
    """Return the model with these of its words alone: `<unk>` takes what the others had, or those that stay share it."""
    model, old = _backing_off(model), model.vocabulary
    stays = np.isin(np.arange(len(old)), [UNK, BOS, EOS, *old.ids(words)])
    known = np.count_nonzero(stays) - len(SPECIAL_TOKENS)
    if not known:
        raise UsageError(f"none of the {len(words):,} words of the list is a word of {model.label}")
    if old.closed and not renormalize:
        raise UsageError(f"{model.label} has no <unk>, which would take the mass of the words that go: renormalize")
    unigrams, levels = model.tables.unigrams.astype(np.float64), levels_of(model.tables)
    gone = unigrams[~stays, 0].sum()
    levels = _of_words(levels, stays, None if renormalize else unigrams)
    if renormalize:
        unigrams[:, 0] /= unigrams[stays, 0].sum()
    else:
        unigrams[UNK, 0] += gone
    vocabulary, new_ids = restrict(old, stays.astype(np.int64))
    levels = [replace(level, words=new_ids[level.words]) for level in levels]
    if levels:
        levels[0] = replace(levels[0], parents=new_ids[levels[0].parents], suffixes=levels[0].words)
    rest = unigrams[stays].astype(np.float32)
    if renormalize:
        rest, levels = reweighted(rest, levels, fill=True)
    note = f"{known:,} of {len(words):,} words of a list stay, {np.sum(~stays):,} of probability {gone:.4g} went: "
    note += "those that stay share it" if renormalize else "they are <unk> now"
    record = replace(model.record, notes=(*model.record.notes, note))
    return NgramModel(tables_of(rest, levels), vocabulary, model.tokenizer, model.settings, record)


def _of_words(levels: Sequence[Level], stays: NDArray[np.bool_], unigrams: Floats | None) -> list[Level]:
    # The n-grams of words that stay, and given the unigrams one of `<unk>` after each context that lists some of U.
    fresh, listed, contexts = list[Level](), list[NDArray[np.bool_]](), stays
    if unigrams is not None:
        lower, weights = unigrams[:, 0], unigrams[:, 1]
        shorter: _Rows = np.full(len(stays), UNK)  # of each context h the row of (h', <unk>), and p'(<unk>|h')
        mass = np.full(len(stays), lower[~stays].sum() + lower[UNK])
    for level in levels:
        known = contexts[level.parents] & stays[level.words]
        keeps = known & level.listed
        if unigrams is not None:
            rows = np.flatnonzero(contexts[level.parents] & (~stays[level.words] | (level.words == UNK)))
            parents, values = level.parents, (level.probabilities, lower[level.suffixes], level.listed)
            own, below, is_listed = (np.bincount(parents[rows], column[rows], len(contexts)) for column in values)
            mass = np.maximum(own + weights * (mass - below), 0.0)
            # One of them stands for all: that of `<unk>` where it is there, as longer n-grams may begin with it.
            one: _Rows = np.full(len(contexts), -1)
            for these in (rows, rows[level.words[rows] == UNK]):
                one[parents[these]] = these
            is_one = np.isin(np.arange(len(level)), one)
            keeps = np.where(is_one, is_listed[parents] > 0, keeps & (level.words != UNK))
            lower, weights, mass_of, suffixes = level.probabilities, level.weights, mass[parents], shorter[parents]
            mass, shorter = mass[level.suffixes], one[level.suffixes]
            level = replace(
                level,
                words=np.where(is_one, UNK, level.words),
                suffixes=np.where(is_one, suffixes, level.suffixes),
                probabilities=np.where(is_one, mass_of, level.probabilities),
                weights=np.where(known, level.weights, 1.0),
            )
        fresh.append(level)
        listed.append(keeps)
        contexts = known  # the n-grams of this level are the contexts of the next
    return chosen(fresh, listed)


def _largest(
    levels: Sequence[Level], losses: Sequence[Floats], room: int, model: NgramModel
) -> tuple[list[NDArray[np.bool_]], float]:
    # Which n-grams are the `room` with the largest losses, bool [n] a level, and the smallest loss of them.
    every = np.concatenate([np.zeros(0), *(loss[level.listed] for level, loss in zip(levels, losses, strict=True))])
    fixed = int(np.count_nonzero(every == np.inf))
    if room < fixed:
        raise UsageError(
            f"{model.label} cannot be pruned to {room + model.types[0]:,} n-grams: its {model.types[0]:,} unigrams stay"
            + (f", and {fixed:,} longer ones that no mass is left to back off from" if fixed else "")
        )
    if room >= len(every):
        return [level.listed for level in levels], 0.0
    if not room:
        return [np.zeros(len(level), bool) for level in levels], float(every.max(initial=0.0))
    # losses [3, 1, 2, 2], room 2 -> the second largest, 2: above it is 3, and one of the two ties stays, the first.
    smallest = float(np.partition(every, len(every) - room)[len(every) - room])
    ties = np.flatnonzero(every == smallest)
    stays = every > smallest
    stays[ties[: room - int(np.count_nonzero(stays))]] = True  # shorter ones come first, so that beginnings are there
    masks, start = [], 0
    for level in levels:
        mask = level.listed.copy()
        count = int(np.count_nonzero(mask))
        # `stays` is over listed n-grams only; blanks keep False.
        mask[mask] = stays[start : start + count]
        masks.append(mask)
        start += count
    return masks, max(0.0, smallest)


def _losses(unigrams: Floats, levels: Sequence[Level]) -> list[Floats]:
    # For each n-gram the largest loss of those that begin with it, itself included; inf for what must stay.
    losses: list[Floats] = []
    history, lower = first_histories(unigrams[:, 0]), unigrams[:, 0]
    for level in levels:
        losses.append(_own_losses(level, lower[level.suffixes], history))
        history, lower = history[level.parents] * level.probabilities, level.probabilities
    for i in range(len(levels) - 1, 0, -1):
        # N-grams with one beginning stand one after another.
        parents = levels[i].parents
        if len(parents):
            # parents [4, 4, 7] -> differences [-1, 0, 3] -> firsts [0, 2]; losses [1, 5, 2] -> largest [5, 2]
            firsts = np.flatnonzero(np.diff(parents, prepend=parents[0] + 1))
            largest = np.maximum.reduceat(losses[i], firsts)
            losses[i - 1][parents[firsts]] = np.maximum(losses[i - 1][parents[firsts]], largest)
    return losses


def _own_losses(level: Level, lower: Floats, history: Floats) -> Floats:
    # Loss of each n-gram, float64 [n], -inf for blanks; `lower` is p(w|h') of each.
    left, lower_left = (1.0 - sums_of_contexts(level, p, len(history)) for p in (level.probabilities, lower))
    at = level.parents
    losses = losses_of(level.probabilities, lower, history[at], left[at], lower_left[at])
    return np.where(level.listed, losses, -np.inf)


def pruning_note(threshold: float, dropped: int) -> str:
    """Return what the record of a model says of pruning."""
    return f"entropy pruning at {threshold:g} dropped {dropped:,} n-grams"


def first_histories(probabilities: Floats) -> Floats:
    """Return p(h) of contexts of one word, float64 [vocabulary]; that of longer ones is p(h, w) = p(h) p(w|h)."""
    # probabilities: float64 [vocabulary], of the words.
    history = probabilities.copy()
    history[BOS] = 1.0  # `<s>` is certain
    return history


def losses_of(p: Floats, q: Floats, history: Floats, left: Floats, lower_left: Floats) -> Floats:
    """Return exp(D) - 1 for n-grams of a model, float64 [n]; inf for those that must stay."""
    # p: float64 [n], p(w|h).
    # Where every word is listed there is no mass to share, and rounding decides: such contexts stay as they are.
    a, b = left, lower_left
    open_ended = (a > SMALLEST_SHARE) & (b > SMALLEST_SHARE) & (q > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        old_log_weight = np.log(a) - np.log(b)
        # Without the n-gram, its p joins what is left of h, and its q what is left of h'.
        new_log_weight = np.log(a + p) - np.log(b + q)
        change = history * (p * (np.log(q) + new_log_weight - np.log(p)) + a * (new_log_weight - old_log_weight))
        loss = np.where(p > 0, np.expm1(-change), 0.0)
    return np.where(open_ended, loss, np.inf)
