"""The n-grams of a model as plain arrays, order by order: what pruning and static mixtures compute with."""

# A level holds the n-grams of one order from 2, sorted by the row of their beginning and then by their last word. The row
# is the n-gram's number: `the cat` has the row that `the cat sat` names as its parent, and `cat sat` the row that it names
# as its suffix. Rows of order 1 are the ids of the words. `levels_of` takes them from tables, `tables_of` makes tables of
# them.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.ngram.packing import TableBuilder
from lmgauge.models.ngram.tables import NgramTables

SMALLEST_SHARE = 1e-9
"""Of a distribution: where less is left, rounding decides what it is."""

_UNIT = 2.0**-52
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """The n-grams of one order, from 2."""

    # uint32 [n], the row, in the order below, of the n-gram without its last word; for bigrams the first word
    parents: NDArray[np.uint32]
    words: NDArray[np.uint32]  # uint32 [n], the last word
    suffixes: NDArray[np.uint32]  # uint32 [n], the row of the n-gram without its first word; for bigrams the last word
    probabilities: Floats  # float64 [n]; of a blank what backing off gives it
    weights: Floats  # float64 [n], back-off weights
    listed: NDArray[np.bool_]  # bool [n]; False for a blank, held only because longer n-grams begin or end with it

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def keys(self) -> NDArray[np.uint64]:
        """Return parent and word in one number, uint64 [n], rising."""
        return make_keys(self.parents, self.words)


def make_keys(parents: NDArray[np.integer[Any]], words: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Return parent and word in one number each, uint64 [n], which sort as pairs do."""
    # [hex(key) for key in make_keys([5], [7])] -> ['0x500000007']
    return (parents.astype(np.uint64) << np.uint64(32)) | words.astype(np.uint64)


def find_rows(
    keys: NDArray[np.uint64], parents: NDArray[np.integer[Any]], words: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    """Return the rows of n-grams among those with rising keys, int64 [n]; -1 for those that are not there."""
    # find_rows(make_keys([1, 5], [2, 7]), [5, 6], [7, 7]) -> [1, -1]
    wanted = make_keys(parents, words)
    rows = np.searchsorted(keys, wanted)
    return np.where(np.append(keys, ~np.uint64(0))[rows] == wanted, rows, -1)


def levels_of(tables: NgramTables) -> list[Level]:
    """Return the n-grams of tables, a level for each order from 2."""
    levels: list[Level] = []
    rows = np.arange(len(tables.unigrams), dtype=np.uint32)  # of each slot of the order below
    slots = [rows]  # of each row, order by order
    for i, table in enumerate(tables.tables):
        entries = table.entries()
        parents = rows[entries.parents]
        order = np.argsort(make_keys(parents, entries.words))
        used, parents, words = entries.slots[order], parents[order], entries.words[order]
        suffixes = words
        if i:
            # `a b c` has the suffix `b c`: `b`, the suffix of its parent `a b`, and the same last word. So one look-up
            # suffices.
            shorter = slots[i - 1][levels[-1].suffixes[parents]]  # of the parent's own suffix
            suffixes = rows[tables.tables[i - 1].find(shorter, words)]
        signed, weights = entries.probabilities[order].astype(np.float64), entries.weights[order].astype(np.float64)
        levels.append(Level(parents, words, suffixes, np.abs(signed), weights, ~np.signbit(signed)))
        slots.append(used)
        rows = np.zeros(table.slots, np.uint32)
        # slots [5, 2, 9] in the order of the rows -> rows[5] = 0, rows[2] = 1, rows[9] = 2
        rows[used] = np.arange(len(used), dtype=np.uint32)
    return levels


def tables_of(unigrams: NDArray[np.float32], levels: Sequence[Level]) -> NgramTables:
    """Return the tables of n-grams; all that an n-gram begins or ends with must be in the order below."""
    # unigrams: float32 [vocabulary, 2], probabilities and back-off weights.
    builder = TableBuilder(len(unigrams), len(levels) + 1)
    slots = np.arange(len(unigrams), dtype=np.uint32)
    for level in levels:
        probabilities = np.where(level.listed, level.probabilities, -level.probabilities)
        parents = slots[level.parents]
        builder.add(parents, level.words, probabilities, level.weights)
        if len(builder.tables) < len(levels):
            slots = builder.tables[-1].find(parents, level.words)
    return NgramTables(unigrams, builder.tables)


def reweighted(
    unigrams: NDArray[np.float32], levels: Sequence[Level], *, fill: bool = False
) -> tuple[NDArray[np.float32], list[Level]]:
    """Return the same n-grams with the back-off weights that make every distribution sum to one."""
    #     weight(h) = (1 - sum of p(w|h) over the words listed after h) / (1 - sum of p(w|h') over the same words)
    # and with the probability of each blank that follows from them. Where hardly anything can follow but what is listed, or
    # hardly anything is left for it, rounding alone would decide: there the weight stays.
    # unigrams: float32 [vocabulary, 2]; their probabilities stay. fill: n-grams went whose mass is in no shorter one any
    # more; where a context lists all that there is, what it lists is then divided by its sum.
    probabilities, weights = unigrams[:, 0].astype(np.float64), unigrams[:, 1].astype(np.float64)
    total = float(np.sum(probabilities))
    renewed: list[Level] = []
    first_weights = weights
    for level in levels:
        # Weights must fit what tables hold, which is single precision.
        own = level.probabilities.astype(np.float32).astype(np.float64)
        lower = probabilities[level.suffixes]
        sums, lower_sums = (sums_of_contexts(level, values, len(weights)) for values in (own, lower))
        if fill:
            full = (total - lower_sums <= SMALLEST_SHARE) & (sums > 0)
            own = own / np.where(full, sums, 1.0)[level.parents]
            weights = np.where(full, weights, 0.0)
        weights = weights_for(1.0 - sums, total - lower_sums, weights)
        probabilities = np.where(level.listed, own, backed_off(weights[level.parents], lower))
        if renewed:
            renewed[-1] = replace(renewed[-1], weights=weights)
        else:
            first_weights = weights
        renewed.append(replace(level, probabilities=probabilities))
        weights, total = level.weights, 1.0
    return np.stack((unigrams[:, 0], first_weights.astype(np.float32)), axis=1), renewed


def sums_of_contexts(level: Level, values: Floats, contexts: int) -> Floats:
    """Return what the probabilities of the n-grams that are listed after each context sum to, float64 [contexts]."""
    # values: float64 [n], probabilities.
    sums = np.zeros(contexts)
    add_to_contexts(sums, level.parents[level.listed], values[level.listed])
    return sums


def add_to_contexts(sums: Floats, contexts: NDArray[np.uint32], probabilities: Floats) -> None:
    """Add each probability to the sum of its context, as a multiple of 2^-52: sums up to 2 are the same in any order."""
    # sums: float64 [contexts]; contexts: uint32 [n]; probabilities: float64 [n].
    # Numbers of 53 bits whose last bit is 2^-52 or more add without rounding up to 2: contexts [1, 1, 1] with 0.5, 0.25,
    # 2^-60 -> sums [0, 0.75].
    np.add.at(sums, contexts, np.rint(probabilities / _UNIT) * _UNIT)


def weights_for(left: Floats, lower_left: Floats, weights: Floats) -> Floats:
    """Return back-off weights of contexts, float64 [contexts]."""
    # left: float64 [contexts], what is left of the distribution after h beside the words listed there.
    open_ended = (left > SMALLEST_SHARE) & (lower_left > SMALLEST_SHARE)
    return np.where(open_ended, left / np.where(open_ended, lower_left, 1.0), weights)


def backed_off(weights: Floats, lower: Floats) -> NDArray[np.float32]:
    """Return weight(h) p(w|h'), rounded as tables hold it: the probabilities of blanks."""
    # weights: float64 [n]; lower: float64 [n].
    return (weights * lower).astype(np.float32)


def chosen(levels: Sequence[Level], listed: Sequence[NDArray[np.bool_]]) -> list[Level]:
    """Return levels of some of the n-grams, and of the blanks they need: what they begin and end with."""
    # listed: for each level bool [n], True for what stays an n-gram.
    held = [keep.copy() for keep in listed]
    for i in range(len(levels) - 1, 0, -1):
        for links in (levels[i].parents, levels[i].suffixes):
            held[i - 1][links[held[i]]] = True
    fresh: list[Level] = []
    rows: NDArray[np.uint32] | None = None  # new row of each old one of the order below
    for level, keep, stays in zip(levels, listed, held, strict=True):
        parents, suffixes = level.parents[stays], level.suffixes[stays]
        if rows is not None:
            parents, suffixes = rows[parents], rows[suffixes]
        values = (level.probabilities[stays], level.weights[stays], keep[stays])
        fresh.append(Level(parents, level.words[stays], suffixes, *values))
        # stays [1, 0, 1] -> rows [0, 0, 1]; that of what goes is asked for by nobody.
        rows = (np.cumsum(stays) - 1).astype(np.uint32)
    return fresh
