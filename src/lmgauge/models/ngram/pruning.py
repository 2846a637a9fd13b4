"""Entropy pruning: n-grams are dropped whose loss changes the model least (Stolcke 1998, "Entropy-based pruning of
backoff language models").

For an n-gram (h, w), dropping it changes p(w|h) to the backed-off estimate and the back-off weight of h. With p(h) the
probability the model gives the history, the relative entropy between the two models is

    D = -p(h) { p(w|h) [log p'(w|h) - log p(w|h)] + (1 - sum of p over what is listed after h) [log a'(h) - log a(h)] }

(eq. 11), where a, a' are the back-off weights with and without it. N-grams with exp(D) - 1 below the threshold go, unless
longer ones begin with them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.ngram.packed_tables import NO_SLOT, PackedTable, TableBuilder
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.text.vocabulary import BOS


class _Level:
    """The occupied slots of one order as columns [n]; parent and suffix are slots of the order below."""

    def __init__(self, table: PackedTable, below: PackedTable | None, lower_suffixes: NDArray[np.uint32]) -> None:
        entries = table.entries()
        self.slots, self.used = table.slots, entries.slots
        self.parent, self.word = entries.parents, entries.words
        self.suffix = self.word if below is None else below.find(lower_suffixes[self.parent], self.word)
        self.suffix_of_slot = np.full(self.slots, NO_SLOT, np.uint32)
        self.suffix_of_slot[self.used] = self.suffix
        self.blank = np.signbit(entries.probabilities)
        self.probability = np.abs(entries.probabilities).astype(np.float64)
        self.backoff = entries.weights.astype(np.float64)
        self.index = np.full(self.slots, -1, np.int64)
        self.index[self.used] = np.arange(len(self.used))


def prune_model(model: NgramModel, threshold: float) -> NgramModel:
    """Return the model without the n-grams whose loss raises its perplexity by less than `threshold` (relative).

    Unigrams stay. A dropped n-gram that begins or ends a longer one that stays becomes a blank: it is held, but it is not an
    n-gram of the model any more, and has the probability that backing off gives it.

    Args:
        model: a model that backs off or interpolates.
        threshold: ratio of perplexities less one, such as 1e-8.

    Example:
        >>> import lmgauge
        >>> model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["a b c", "a b", "b a c"]), order=2)
        >>> model.types, prune_model(model, 0.05).types
        ([5, 8], [5, 4])
    """
    tables = model.tables
    unigrams = tables.unigrams.astype(np.float64)
    levels: list[_Level] = []
    for i, table in enumerate(tables.tables):
        below = tables.tables[i - 1] if i else None
        suffixes = levels[-1].suffix_of_slot if levels else np.zeros(0, np.uint32)
        levels.append(_Level(table, below, suffixes))
    histories = _history_probabilities(unigrams, levels)
    needed: NDArray[np.bool_] | None = None  # entries that are the beginning of a longer one that stays
    keeps: list[NDArray[np.bool_]] = []
    for i in range(len(levels) - 1, -1, -1):
        suffix = levels[i].suffix
        lower = levels[i - 1].probability[levels[i - 1].index[suffix]] if i else unigrams[suffix, 0]
        keep = _prune_level(levels[i], lower, histories[i], threshold, needed)
        keeps.insert(0, keep)
        if i:
            needed = np.zeros(len(levels[i - 1].used), bool)
            needed[levels[i - 1].index[levels[i].parent[keep]]] = True
    return _rebuild(model, levels, keeps, threshold)


def _history_probabilities(unigrams: NDArray[np.float64], levels: list[_Level]) -> list[NDArray[np.float64]]:
    """Return p(h) for each context slot, by the chain rule over its own words; `<s>` is certain."""
    chain = unigrams[:, 0].copy()
    chain[BOS] = 1.0
    histories = [chain]
    for level in levels[:-1]:
        by_slot = np.zeros(level.slots)
        by_slot[level.used] = histories[-1][level.parent] * level.probability
        histories.append(by_slot)
    return histories


def _prune_level(
    level: _Level,
    lower: NDArray[np.float64],
    history: NDArray[np.float64],
    threshold: float,
    needed: NDArray[np.bool_] | None,
) -> NDArray[np.bool_]:
    """Return bool [n]: the entries of a level that stay n-grams of the model; `lower` is p(w|h') of each, float64 [n]."""
    contexts = len(history)
    listed = ~level.blank
    left = 1 - np.bincount(level.parent[listed], level.probability[listed], contexts)
    lower_left = 1 - np.bincount(level.parent[listed], lower[listed], contexts)
    # Where every word is listed there is no mass to share, and rounding decides: such contexts stay as they are.
    p, q, a, b = level.probability, lower, left[level.parent], lower_left[level.parent]
    open_ended = listed & (a > 1e-9) & (b > 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        old_log_weight = np.log(a) - np.log(b)
        new_log_weight = np.log(a + p) - np.log(b + q)
        change = history[level.parent] * (
            p * (np.log(q) + new_log_weight - np.log(p)) + a * (new_log_weight - old_log_weight)
        )
        loss = np.expm1(-change)
    drop = open_ended & (q > 0) & (loss < threshold)
    if needed is not None:
        drop &= ~needed
    keep: NDArray[np.bool_] = listed & ~drop
    return keep


def _rebuild(model: NgramModel, levels: list[_Level], keeps: list[NDArray[np.bool_]], threshold: float) -> NgramModel:
    """Return a model of what stays and the blanks it needs; its back-off weights are those of the pruned lower orders."""
    held = [keep.copy() for keep in keeps]
    for i in range(len(levels) - 1, 0, -1):
        for links in (levels[i].parent, levels[i].suffix):
            held[i - 1][levels[i - 1].index[links[held[i]]]] = True
    unigrams = model.tables.unigrams.copy()
    resolved = unigrams[:, 0].astype(np.float64)  # by old slot of the order below: what scoring gives the entry
    total = float(np.sum(unigrams[:, 0], dtype=np.float64))
    weights = [unigrams[:, 1].astype(np.float64)]  # by old slot, of the entries of each order
    values: list[NDArray[np.float32]] = []
    for level, keep in zip(levels, keeps, strict=True):
        lower = resolved[level.suffix]
        weights[-1] = _renewed(weights[-1], level, keep, lower, 1.0 if values else total)
        value = np.where(keep, level.probability, weights[-1][level.parent] * lower)
        values.append(np.where(keep, value, -value).astype(np.float32))
        resolved, backoff = np.zeros(level.slots), np.ones(level.slots)
        resolved[level.used], backoff[level.used] = np.abs(values[-1]), level.backoff
        weights.append(backoff)
    unigrams[:, 1] = weights[0]
    builder = TableBuilder(len(unigrams), len(levels) + 1)
    new_slot = np.arange(len(unigrams), dtype=np.uint32)
    for level, stays, signed, weight in zip(levels, held, values, weights[1:], strict=True):
        used = level.used[stays]
        slots = builder.add(new_slot[level.parent[stays]], level.word[stays], signed[stays], weight[used])
        new_slot = np.full(level.slots, NO_SLOT, np.uint32)
        new_slot[used] = slots
    dropped = sum(int(np.count_nonzero(~level.blank & ~keep)) for level, keep in zip(levels, keeps, strict=True))
    note = f"entropy pruning at {threshold:g} dropped {dropped:,} n-grams"
    return NgramModel(
        NgramTables(unigrams, builder.tables),
        model.vocabulary,
        model.tokenizer,
        replace(model.settings, prune=threshold),
        replace(model.record, notes=(*model.record.notes, note)),
    )


def _renewed(
    backoff: NDArray[np.float64],
    level: _Level,
    keep: NDArray[np.bool_],
    lower: NDArray[np.float64],
    lower_total: float,
) -> NDArray[np.float64]:
    """Return back-off weights, by slot, of the contexts of a level, from what stays after them and pruned lower orders."""
    contexts = len(backoff)
    parent = level.parent[keep]
    left = 1 - np.bincount(parent, level.probability[keep], contexts)
    lower_left = lower_total - np.bincount(parent, lower[keep], contexts)
    used = np.zeros(contexts, bool)
    used[level.parent] = True
    # Where all that can follow is listed, rounding alone decides: the old weight, which nothing uses, stays.
    open_ended = used & (left > 1e-9) & (lower_left > 1e-9)
    return np.where(open_ended, left / np.where(open_ended, lower_left, 1.0), backoff)
