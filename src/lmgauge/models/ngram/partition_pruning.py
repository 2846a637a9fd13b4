"""Entropy pruning in partitions: what `models.ngram.pruning` does, by the same formulas, and to the bit.

What `estimating` makes comes in; the same of the pruned model goes out: `dropped` marks the n-grams that go and those that a
cut-off drops, and a blank has a negative probability. Parents and words stay as they are.

    lose      partition   upward: the loss of each n-gram; p(w|h') of its suffix comes as the answer to a request
    choose    partition   downward: what stays, and the blanks that it needs. What begins with an n-gram lies in the same
                          partition; what ends with it sends word back along the way on which its request came
    reweigh   partition   upward: back-off weights and the probabilities of blanks; p(w|h') comes as for the losses

Sums over contexts are exact (see `levels.add_to_contexts`), so the program adds up what partitions have of single words.

What a task holds at most, in bytes, besides 3 MB and 40 for each word; it is less than estimating takes:

    lose      22 for each n-gram of its order, 24 for each of the order below (the contexts)
    choose    10 for each n-gram of its order, 8 for each of the order above
    reweigh   21 for each n-gram of its order, 20 for each of the order below
"""

# Two ways to walk, one way to decide: a finished model has no text along which partitions could ask for suffixes, and all of
# its tables are there, so `pruning` looks them up, and can meet a size. Losses and weights are of the same functions.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.ngram.links import Grams, Links, Parts, add_up, answers_to, joined
from lmgauge.models.ngram.ngram_arrays import Floats, add_to_contexts, backed_off, weights_for
from lmgauge.models.ngram.pruning import first_histories, losses_of, pruning_note
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored

_BLANK, _GONE = -1.0, -2.0
_AT_ONCE = 1 << 15  # n-grams whose numbers are widened at a time


@dataclass(frozen=True)
class Pruned:
    """What came of pruning."""

    unigrams: NDArray[np.float32]  # float32 [vocabulary, 2], probabilities and back-off weights
    grams: list[list[Grams]]  # of order 2, 3, ...: of each partition
    entries: list[int]  # n-grams of order 2, 3, ... that are held, blanks among them.
    note: str  # for the record of the model


@dataclass(frozen=True)
class _Own:
    """The n-grams of one order in a partition, on one of the ways upward."""

    parents: Stored
    probabilities: Stored  # or what was chosen of them
    dropped: Stored | None  # None where they were chosen
    lower: list[Stored]  # the bits of p(w|h'), in the order of the rows; for bigrams the probabilities of all words
    words: Stored | None  # of bigrams, the last words


@dataclass(frozen=True)
class _Lost:
    """The losses of the n-grams of one order in a partition."""

    large: Stored  # uint8 [rows], 1 where the loss of the n-gram itself reaches the threshold
    in_chunks: Stored  # int64 [chunks], how many of the rows are new in each chunk, from order 3
    chances: Stored  # float64 [rows], the probability of the whole n-gram; empty at the highest order
    answers: list[Stored]


@dataclass(frozen=True)
class _Chosen:
    """Which n-grams of one order in a partition stay."""

    chosen: Stored  # float32 [rows], p(w|h) of what stays, -1 for blanks, -2 for what goes
    counts: Stored  # how many are held, and how many go
    needed: list[Stored]  # of each chunk, which are held


@dataclass(frozen=True)
class _Weighed:
    """The n-grams of one order in a partition, pruned."""

    probabilities: Stored
    dropped: Stored
    weights: Stored | None  # of their contexts, of two words and more
    answers: list[Stored]


_Longer = tuple[Stored, Stored, list[Stored], list[Stored]]
"""Of the order above: what was chosen, parents, the requests for shorter ones, and which of those that asked are held."""


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


def prune_partitions(
    engine: Engine, links: Links, grams: list[list[Grams]], unigrams: NDArray[np.float32], threshold: float
) -> Pruned:
    """Prune an estimated model that backs off or interpolates, as `prune_model` does."""
    # grams: of order 2, 3, ...; unigrams: float32 [vocabulary, 2], probabilities and back-off weights.
    # Words a, b, c with p = 0.5, 0.3, 0.2; bigrams a b 0.5, a c 0.2, b b 0.9; old weights 0.6, 0.1, 1; threshold 0.01:
    # `a c` goes, and the weights become 0.714 = (1 - 0.5) / (1 - 0.3), 0.143 = (1 - 0.9) / (1 - 0.3), and 1.
    if not grams:
        return Pruned(unigrams, [], [], pruning_note(threshold, 0))
    lower: Parts = [[engine.write("words", np.ascontiguousarray(unigrams[:, 0]))]] * len(grams[0])
    lost = _find_losses(engine, links, grams, lower, threshold)
    chosen = _choose_all(engine, links, grams, lost)
    counts = [add_up(engine, (own.counts for own in of_order)).tolist() for of_order in chosen]
    pruned, weights = _reweigh_all(engine, links, grams, chosen, lower, unigrams)
    unigrams = np.stack((unigrams[:, 0], weights), axis=1)
    note = pruning_note(threshold, sum(dropped for _, dropped in counts))
    return Pruned(unigrams, pruned, [held for held, _ in counts], note)


def _find_losses(
    engine: Engine, links: Links, grams: list[list[Grams]], lower: Parts, threshold: float
) -> list[list[_Lost]]:
    every = list[list[_Lost]]()
    for k, rows in enumerate(grams, 2):
        if k > 2:
            lower = links.deal(engine, "before", k - 1, [lost.answers for lost in every[-1]])
        own = [
            _Own(row.parents, row.probabilities, row.dropped, of_row, row.words if k == 2 else None)
            for row, of_row in zip(rows, lower, strict=True)
        ]
        if k == 2:
            sums = _sums_of_words(engine, "sums_before", own, links.shape.vocabulary)
            contexts = [engine.write("left_of_words", 1.0 - sums)] * len(own)
        else:
            contexts = [lost.chances for lost in every[-1]]
        takes = [(row, contexts[p], links.of(k, p), threshold) for p, row in enumerate(own)]
        makes = _Lost(NEW, NEW, NEW, [NEW] * len(links.of(k, 0)))
        every.append(engine.run(f"lose-{k}", _lose, takes, makes, f"pruning: losses of order {k}"))
        engine.drop((lower, contexts) if k > 2 else ())
    return every


def _lose(taken: tuple[_Own, Stored, list[Stored], float], read: Read) -> Iterator[Array]:
    # Find the n-grams whose own losses reach the threshold; yield the chances of all for the order above.
    own, contexts, requests, threshold = taken
    rows = _rows(own, read)
    size = len(rows.parents)
    if own.words is not None:
        history = first_histories(read(own.lower[0]).astype(np.float64))
        left, lower_left = read(contexts)
    else:
        history = read(contexts)
        sums = rows.sums(len(history))
        left, lower_left = np.subtract(1.0, sums, out=sums)
    large, chances = np.empty(size, np.uint8), np.empty(size if requests else 0)
    for part, parents, probabilities, lower in rows.blocks():
        of_context = history[parents]
        losses = losses_of(probabilities, lower, of_context, left[parents], lower_left[parents])
        large[part] = rows.listed[part] & (losses >= threshold)
        if requests:
            chances[part] = of_context * probabilities
    yield large
    yield np.array([len(read(stored)) for stored in own.lower], np.int64)
    yield chances
    yield from answers_to(read, requests, rows.probabilities.view(np.uint32))


def _sums_of_words(engine: Engine, name: str, own: list[_Own], vocabulary: int) -> Floats:
    # `_Rows.sums` of single words, which partitions share, float64 [2, vocabulary].
    made = engine.run(name, _sum_words, [(row, vocabulary) for row in own], NEW, "pruning: contexts")
    sums: Floats = add_up(engine, made)
    return sums


def _sum_words(taken: tuple[_Own, int], read: Read) -> Iterator[Array]:
    own, vocabulary = taken
    yield _rows(own, read).sums(vocabulary)


def _rows(own: _Own, read: Read) -> _Rows:
    parents, probabilities = read(own.parents), read(own.probabilities)
    if own.words is not None:
        lower = read(own.lower[0])[read(own.words)]
    else:
        lower = joined(read, own.lower, len(parents), np.uint32).view(np.float32)
    if own.dropped is None:
        return _Rows(parents, probabilities, lower, probabilities >= 0)
    dropped = read(own.dropped)
    return _Rows(parents, probabilities, lower, dropped == 0 if len(dropped) else np.ones(len(parents), bool))


def _choose_all(engine: Engine, links: Links, grams: list[list[Grams]], lost: list[list[_Lost]]) -> list[list[_Chosen]]:
    # Choose what stays, downward from the highest order; what is returned begins with the lowest.
    every, needs = list[list[_Chosen]](), Parts()
    longer: list[_Longer | None] = [None] * len(grams[0])
    for k in range(links.shape.order, 1, -1):
        rows = grams[k - 2]
        columns = zip(rows, lost[k - 2], longer, strict=True)
        takes = [(row, own.large, own.in_chunks if k > 2 else None, above) for row, own, above in columns]
        makes = _Chosen(NEW, NEW, [NEW] * (links.shape.chunks if k > 2 else 0))
        every.insert(0, engine.run(f"choose-{k}", _choose, takes, makes, f"pruning: choosing of order {k}"))
        engine.drop([(row.probabilities, row.dropped) for row in rows], lost[k - 2], needs)
        if k > 2:
            needs = links.deal(engine, "needs", k - 1, [own.needed for own in every[0]], back=True)
            longer = [
                (own.chosen, row.parents, links.of(k - 1, p), of_row)
                for p, (own, row, of_row) in enumerate(zip(every[0], rows, needs, strict=True))
            ]
    return every


def _choose(taken: tuple[Grams, Stored, Stored | None, _Longer | None], read: Read) -> Iterator[Array]:
    # Choose the n-grams that stay, and blanks; yield how many are held and how many go.
    own, large, in_chunks, above = taken
    probabilities = read(own.probabilities)
    chosen = np.where(read(large), probabilities, np.float32(_GONE))
    if above is not None:
        longer, parents = read(above[0]), read(above[1])
        for part in _blocks(len(longer)):
            begins = parents[part][longer[part] >= 0]
            # What a longer n-gram that stays begins with stays an n-gram, whatever its own loss: the model walks from
            # beginnings.
            chosen[begins] = probabilities[begins]
        del longer, parents
        # A blank `b c` ends some `a b c` that is held; so is then `a b`, and sends word to the beginning of the blank, `b`.
        for requests, needs in zip(*above[2:], strict=True):
            ends = read(requests)[read(needs) != 0]
            chosen[ends] = np.maximum(chosen[ends], np.float32(_BLANK))
    del probabilities
    yield chosen
    held = (chosen >= _BLANK).view(np.uint8)
    listed = len(chosen) - int(np.count_nonzero(read(own.dropped)))
    yield np.array([np.count_nonzero(held), listed - np.count_nonzero(chosen >= 0)], np.int64)
    if in_chunks is not None:
        # held [1, 0, 1], two rows new in chunk 0 and one in chunk 1 -> [1, 0] and [1]: the way back goes by chunks, too.
        yield from np.split(held, np.cumsum(read(in_chunks))[:-1])


def _reweigh_all(
    engine: Engine,
    links: Links,
    grams: list[list[Grams]],
    chosen: list[list[_Chosen]],
    lower: Parts,
    unigrams: NDArray[np.float32],
) -> tuple[list[list[Grams]], NDArray[np.float32]]:
    # Return the pruned n-grams, upward, and the weights of single words.
    pruned, answers = list[list[Grams]](), Parts()
    for k, rows in enumerate(grams, 2):
        if k > 2:
            lower = links.deal(engine, "after", k - 1, answers)
        own = [
            _Own(row.parents, stays.chosen, None, of_row, row.words if k == 2 else None)
            for row, stays, of_row in zip(rows, chosen[k - 2], lower, strict=True)
        ]
        if k == 2:
            sums = _sums_of_words(engine, "sums_after", own, links.shape.vocabulary)
            total = float(np.sum(unigrams[:, 0].astype(np.float64)))
            of_words = weights_for(1.0 - sums[0], total - sums[1], unigrams[:, 1].astype(np.float64))
            weights = [engine.write("weights_of_words", of_words)] * len(own)
        else:
            weights = [below.weights for below in grams[k - 3] if below.weights]
        takes = [(row, weights[p], links.of(k, p)) for p, row in enumerate(own)]
        makes = _Weighed(NEW, NEW, NEW if k > 2 else None, [NEW] * len(links.of(k, 0)))
        made = engine.run(f"reweigh-{k}", _reweigh, takes, makes, f"pruning: weights of order {k}")
        engine.drop([stays.chosen for stays in chosen[k - 2]], (lower, weights) if k > 2 else ())
        if k > 2:
            pruned[-1] = [replace(below, weights=new.weights) for below, new in zip(pruned[-1], made, strict=True)]
        pairs = zip(rows, made, strict=True)
        pruned.append([replace(row, probabilities=new.probabilities, dropped=new.dropped) for row, new in pairs])
        answers = [new.answers for new in made]
    return pruned, of_words.astype(np.float32)


def _reweigh(taken: tuple[_Own, Stored, list[Stored]], read: Read) -> Iterator[Array]:
    # Probabilities of what is held, what is not, and the weights of the contexts, of the order below.
    own, of_contexts, requests = taken
    rows = _rows(own, read)
    weights = read(of_contexts) if own.words is not None else _new_weights(rows, read(of_contexts))
    probabilities = rows.probabilities.copy()
    for part, parents, before, lower in rows.blocks():
        blanks = np.flatnonzero(before == _BLANK)
        probabilities[part][blanks] = -backed_off(weights[parents[blanks]], lower[blanks])
    yield probabilities
    yield (rows.probabilities == _GONE).view(np.uint8)
    if own.words is None:
        yield weights.astype(np.float32)
    yield from answers_to(read, requests, np.abs(probabilities).view(np.uint32))


def _new_weights(rows: _Rows, old: NDArray[np.float32]) -> Floats:
    # Weights of contexts of two words and more, float64 [contexts].
    sums = rows.sums(len(old))
    weights: Floats = sums[0]
    for part in _blocks(len(old)):
        weights[part] = weights_for(1.0 - sums[0, part], 1.0 - sums[1, part], old[part].astype(np.float64))
    return weights
