"""Entropy pruning in partitions: what `models.ngram.pruning` does, by the same formulas, and to the bit.

Input: what `estimating` makes. Output: the same arrays of the pruned model: `dropped/{k}/{p}` marks the n-grams that go and
those that a cut-off drops, and a blank has a negative probability. `parents` and `words` stay as they are.

    lose      partition   upward: the loss of each n-gram; p(w|h') of its suffix comes as the answer to a request
    choose    partition   downward: what stays, and the blanks that it needs. What begins with an n-gram lies in the same
                          partition; what ends with it sends word back along the way on which its request came
    reweigh   partition   upward: back-off weights and the probabilities of blanks; p(w|h') comes as for the losses

Sums over contexts are exact (see `levels.add_to_contexts`), so the program adds up what partitions have of single words.
No task makes an array that it reads, so `choose` passes on what `reweigh` replaces.

large/{k}/{p}        uint8 [rows], 1 where the loss of the n-gram itself reaches the threshold
chances/{k}/{p}      float64 [rows], the probability of the whole n-gram
in_chunks/{k}/{p}    int64 [chunks], how many of the rows are new in each chunk
chosen/{k}/{p}       float32 [rows], p(w|h) of what stays, -1 for blanks, -2 for what goes
old_weights/{k}/{p}  float32 [rows]

What a task holds at most, in bytes, besides 3 MB and 40 for each word; it is less than estimating takes:

    lose      22 for each n-gram of its order, 24 for each of the order below (the contexts)
    choose    10 for each n-gram of its order, 8 for each of the order above
    reweigh   21 for each n-gram of its order, 20 for each of the order below
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.ngram.levels import Floats, add_to_contexts, backed_off, weights_for
from lmgauge.models.ngram.partitioned.counting import dealing_stage
from lmgauge.models.ngram.partitioned.shape import Shape
from lmgauge.models.ngram.partitioned.streams import add_up, answers_to, joined
from lmgauge.models.ngram.pruning import first_histories, losses_of, pruning_note
from lmgauge.work.stage import Array, Engine, Read, Stage

_BLANK, _GONE = -1.0, -2.0
_AT_ONCE = 1 << 15  # n-grams whose numbers are widened at a time


@dataclass(frozen=True)
class Pruned:
    """What came of pruning, besides the arrays of the partitions."""

    unigrams: NDArray[np.float32]  # float32 [vocabulary, 2], probabilities and back-off weights
    entries: list[int]  # n-grams of order 2, 3, ... that are held, blanks among them.
    note: str  # for the record of the model


@dataclass(frozen=True)
class _Order:
    """What the tasks of one order know."""

    shape: Shape
    k: int  # the order
    threshold: float  # n-grams with a smaller loss go
    way: str  # `before` pruning or `after`, on the ways upward

    @property
    def is_last(self) -> bool:
        return self.k == self.shape.order

    def needs(self, p: int) -> list[str]:
        names = ["parents", "probabilities", "dropped"] if self.way == "before" else ["parents", "chosen"]
        columns = [f"{name}/{self.k}/{p}" for name in names]
        return columns + (["unigrams", f"words/2/{p}"] if self.k == 2 else self.in_chunks(f"lower_{self.way}", p))

    def in_chunks(self, name: str, p: int) -> list[str]:
        return self.shape.names(f"{name}/{{k}}/{{p}}/{{c}}", k=[self.k], p=[p])


@dataclass(frozen=True)
class _Rows:
    """The n-grams of one order in a partition."""

    parents: NDArray[np.uint32]  # uint32 [rows], the context of each
    probabilities: NDArray[np.float32]  # float32 [rows], p(w|h); or `chosen`
    lower: NDArray[np.float32]  # float32 [rows], p(w|h')
    listed: NDArray[np.bool_]  # bool [rows], True for n-grams of the model

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.uint32], Floats, Floats]]:
        # Some rows at a time: which they are, their contexts, p(w|h) and p(w|h').
        for part in _blocks(len(self.parents)):
            probabilities, lower = self.probabilities[part].astype(np.float64), self.lower[part].astype(np.float64)
            yield part, self.parents[part], probabilities, lower

    def sums(self, contexts: int) -> Floats:
        # What p(w|h), and p(w|h'), of the words listed after each context sum to, float64 [2, contexts].
        sums = np.zeros((2, contexts))
        for part, parents, probabilities, lower in self.blocks():
            listed = self.listed[part]
            add_to_contexts(sums[0], parents[listed], probabilities[listed])
            add_to_contexts(sums[1], parents[listed], lower[listed])
        return sums


def _blocks(size: int) -> Iterator[slice]:
    # Sums are computed in float64: a block at a time, or they would double the memory of columns that are float32.
    return (slice(start, start + _AT_ONCE) for start in range(0, size, _AT_ONCE))


def prune_partitions(engine: Engine, shape: Shape, unigrams: NDArray[np.float32], threshold: float) -> Pruned:
    """Prune an estimated model that backs off or interpolates, as `prune_model` does."""
    # unigrams: float32 [vocabulary, 2], probabilities and back-off weights.
    # Words a, b, c with p = 0.5, 0.3, 0.2; bigrams a b 0.5, a c 0.2, b b 0.9; old weights 0.6, 0.1, 1; threshold 0.01:
    # `a c` goes, and the weights become 0.714 = (1 - 0.5) / (1 - 0.3), 0.143 = (1 - 0.9) / (1 - 0.3), and 1.
    if shape.order == 1:
        return Pruned(unigrams, [], pruning_note(threshold, 0))
    before, after = ([_Order(shape, k, threshold, way) for k in shape.orders] for way in ("before", "after"))
    engine.write("unigrams", np.ascontiguousarray(unigrams[:, 0]))
    engine.write("left_of_words", 1.0 - _sums_of_words(engine, before[0]))
    for order in before:
        _deal_lower(engine, order)
        engine.run(_losing(order))
    counts = []
    for order in reversed(after):
        engine.run(_choosing(order))
        if order.k > 2:
            engine.run(dealing_stage(shape, order.k - 1, "needed", "needs", back=True))
        counts.append(add_up(engine, f"pruned/{order.k}", range(shape.partitions)).tolist())
    sums = _sums_of_words(engine, after[0])
    total = float(np.sum(unigrams[:, 0].astype(np.float64)))
    weights = weights_for(1.0 - sums[0], total - sums[1], unigrams[:, 1].astype(np.float64))
    engine.write("weights_of_words", weights)
    for order in after:
        _deal_lower(engine, order)
        engine.run(_reweighing(order))
    unigrams = np.stack((unigrams[:, 0], weights.astype(np.float32)), axis=1)
    entries = [held for held, _ in reversed(counts)]
    return Pruned(unigrams, entries, pruning_note(threshold, sum(dropped for _, dropped in counts)))


def _sums_of_words(engine: Engine, order: _Order) -> Floats:
    # `_Rows.sums` of single words, which partitions share, float64 [2, vocabulary].
    part = f"sums_{order.way}"
    partitions = range(order.shape.partitions)
    engine.run(
        Stage(part, len(partitions), _sum_words, order, order.needs, lambda p: [f"{part}/{p}"], title="pruning: contexts")
    )
    sums: Floats = add_up(engine, part, partitions)
    return sums


def _sum_words(read: Read, p: int, order: _Order) -> Iterator[Array]:
    yield _rows(read, p, order).sums(order.shape.vocabulary)


def _deal_lower(engine: Engine, order: _Order) -> None:
    # Bring p(w|h') to the n-grams of an order.
    if order.k > 2:
        engine.run(dealing_stage(order.shape, order.k - 1, f"answers_{order.way}", f"lower_{order.way}"))


def _rows(read: Read, p: int, order: _Order) -> _Rows:
    k = order.k
    parents = read(f"parents/{k}/{p}")
    if k == 2:
        lower = read("unigrams")[read(f"words/2/{p}")]
    else:
        lower = joined(read, order.in_chunks(f"lower_{order.way}", p), len(parents), np.uint32).view(np.float32)
    if order.way == "after":
        chosen = read(f"chosen/{k}/{p}")
        return _Rows(parents, chosen, lower, chosen >= 0)
    dropped = read(f"dropped/{k}/{p}")
    listed = dropped == 0 if len(dropped) else np.ones(len(parents), bool)
    return _Rows(parents, read(f"probabilities/{k}/{p}"), lower, listed)


def _losing(order: _Order) -> Stage:
    shape, k = order.shape, order.k

    def _needs(p: int) -> list[str]:
        contexts = ["left_of_words"] if k == 2 else [f"chances/{k - 1}/{p}"]
        return order.needs(p) + contexts + (order.in_chunks("requests", p) if not order.is_last else [])

    def _makes(p: int) -> list[str]:
        names = [f"large/{k}/{p}"] + ([f"in_chunks/{k}/{p}"] if k > 2 else [])
        return names if order.is_last else [*names, f"chances/{k}/{p}", *order.in_chunks("answers_before", p)]

    drops = [f"lower_before/{k}", f"chances/{k - 1}"]
    return Stage(f"lose-{k}", shape.partitions, _lose, order, _needs, _makes, drops, f"pruning: losses of order {k}")


def _lose(read: Read, p: int, order: _Order) -> Iterator[Array]:
    # Find the n-grams whose own losses reach the threshold; yield the chances of all for the order above.
    rows, k = _rows(read, p, order), order.k
    size = len(rows.parents)
    if k == 2:
        history = first_histories(read("unigrams").astype(np.float64))
        left, lower_left = read("left_of_words")
    else:
        history = read(f"chances/{k - 1}/{p}")
        sums = rows.sums(len(history))
        left, lower_left = np.subtract(1.0, sums, out=sums)
    large, chances = np.empty(size, np.uint8), np.empty(0 if order.is_last else size)
    for part, parents, own, lower in rows.blocks():
        of_context = history[parents]
        losses = losses_of(own, lower, of_context, left[parents], lower_left[parents])
        large[part] = rows.listed[part] & (losses >= order.threshold)
        if not order.is_last:
            chances[part] = of_context * own
    yield large
    if k > 2:
        yield np.array([len(read(name)) for name in order.in_chunks("lower_before", p)], np.int64)
    if not order.is_last:
        yield chances
        yield from answers_to(read, p, order.shape, k, rows.probabilities.view(np.uint32))


def _choosing(order: _Order) -> Stage:
    shape, k = order.shape, order.k

    def _needs(p: int) -> list[str]:
        names = [f"{column}/{k}/{p}" for column in ("probabilities", "dropped", "large")]
        if not order.is_last:
            names += [f"weights/{k}/{p}", f"chosen/{k + 1}/{p}", f"parents/{k + 1}/{p}"]
            names += order.in_chunks("requests", p) + order.in_chunks("needs", p)
        return names + ([f"in_chunks/{k}/{p}"] if k > 2 else [])

    def _makes(p: int) -> list[str]:
        names = [f"chosen/{k}/{p}", f"pruned/{k}/{p}"] + ([] if order.is_last else [f"old_weights/{k}/{p}"])
        return names + (order.in_chunks("needed", p) if k > 2 else [])

    drops = [f"{name}/{k}" for name in ("probabilities", "dropped", "large", "weights", "in_chunks", "needs")]
    return Stage(f"choose-{k}", shape.partitions, _choose, order, _needs, _makes, drops, f"pruning: choosing of order {k}")


def _choose(read: Read, p: int, order: _Order) -> Iterator[Array]:
    # Choose the n-grams that stay, and blanks; yield how many are held and how many go.
    k = order.k
    probabilities = read(f"probabilities/{k}/{p}")
    chosen = np.where(read(f"large/{k}/{p}"), probabilities, np.float32(_GONE))
    if not order.is_last:
        longer, parents = read(f"chosen/{k + 1}/{p}"), read(f"parents/{k + 1}/{p}")
        for part in _blocks(len(longer)):
            begins = parents[part][longer[part] >= 0]
            # What a longer n-gram that stays begins with stays an n-gram, whatever its own loss: the model walks from
            # beginnings.
            chosen[begins] = probabilities[begins]
        del longer, parents
        # A blank `b c` ends some `a b c` that is held; so is then `a b`, and sends word to the beginning of the blank, `b`.
        for requests, needs in zip(order.in_chunks("requests", p), order.in_chunks("needs", p), strict=True):
            ends = read(requests)[read(needs) != 0]
            chosen[ends] = np.maximum(chosen[ends], np.float32(_BLANK))
    del probabilities
    yield chosen
    held = (chosen >= _BLANK).view(np.uint8)
    listed = len(chosen) - int(np.count_nonzero(read(f"dropped/{k}/{p}")))
    yield np.array([np.count_nonzero(held), listed - np.count_nonzero(chosen >= 0)], np.int64)
    if not order.is_last:
        yield read(f"weights/{k}/{p}")
    if k > 2:
        # held [1, 0, 1], two rows new in chunk 0 and one in chunk 1 -> [1, 0] and [1]: the way back goes by chunks, too.
        yield from np.split(held, np.cumsum(read(f"in_chunks/{k}/{p}"))[:-1])


def _reweighing(order: _Order) -> Stage:
    shape, k = order.shape, order.k

    def _needs(p: int) -> list[str]:
        names = order.needs(p) + (["weights_of_words"] if k == 2 else [f"old_weights/{k - 1}/{p}"])
        return names + ([] if order.is_last else order.in_chunks("requests", p))

    def _makes(p: int) -> list[str]:
        names = [f"probabilities/{k}/{p}", f"dropped/{k}/{p}"] + ([f"weights/{k - 1}/{p}"] if k > 2 else [])
        return names + ([] if order.is_last else order.in_chunks("answers_after", p))

    drops = [f"chosen/{k}", f"lower_after/{k}", f"old_weights/{k - 1}"]
    return Stage(f"reweigh-{k}", shape.partitions, _reweigh, order, _needs, _makes, drops, f"pruning: weights of order {k}")


def _reweigh(read: Read, p: int, order: _Order) -> Iterator[Array]:
    # Probabilities of what is held, what is not, and the weights of the contexts, of the order below.
    rows, k = _rows(read, p, order), order.k
    weights = read("weights_of_words") if k == 2 else _new_weights(rows, read(f"old_weights/{k - 1}/{p}"))
    probabilities = rows.probabilities.copy()
    for part, parents, own, lower in rows.blocks():
        blanks = np.flatnonzero(own == _BLANK)
        probabilities[part][blanks] = -backed_off(weights[parents[blanks]], lower[blanks])
    yield probabilities
    yield (rows.probabilities == _GONE).view(np.uint8)
    if k > 2:
        yield weights.astype(np.float32)
    if not order.is_last:
        yield from answers_to(read, p, order.shape, k, np.abs(probabilities).view(np.uint32))


def _new_weights(rows: _Rows, old: NDArray[np.float32]) -> Floats:
    # Weights of contexts of two words and more, float64 [contexts].
    sums = rows.sums(len(old))
    weights: Floats = sums[0]
    for part in _blocks(len(old)):
        weights[part] = weights_for(1.0 - sums[0, part], 1.0 - sums[1, part], old[part].astype(np.float64))
    return weights
