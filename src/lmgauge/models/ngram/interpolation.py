"""Stage 4: from adjusted counts and discounts to probabilities and back-off weights, order by order from the unigrams.

Input: `AdjustedCounts`, and the discounts of each order.
Output: `Estimated`, the n-grams of each partition with probabilities and back-off weights. What a cut-off dropped is still
there, marked: its counts go to the back-off weights.

With h' the context h without its first word, c the adjusted counts, D(c) the discounts, and c(h) = sum_w c(h, w):

    interpolated   p(w|h) = max(c(h,w) - D(c(h,w)), 0) / c(h) + gamma(h) p(w|h')      Chen & Goodman 1998, eq. 18, for D(c)
                   gamma(h) = sum_w D(c(h,w)) / c(h)                                  the same, page 20
    backing off    p(w|h) = (c(h,w) - D(c(h,w))) / c(h)  if (h, w) was seen           Katz 1987
                   p(w|h) = alpha(h) p(w|h')             otherwise, alpha(h) making the sum one
    additive       p(w|h) = (c(h,w) + k) / (c(h) + k V)                               Lidstone 1920; k = 1: Laplace

The recursion ends with 1 / V, V being the number of tokens that can be predicted. Witten-Bell (Witten & Bell 1991) is the
first with D = 0, where each distinct word after h adds one to c(h), and gives this one away.

An example: after `the` came `cat` three times and `dog` once, D = 0.75, and p(cat) = p(dog) = 0.1, p(sat) = 0.2.

    c(the) = 4, gamma(the) = (0.75 + 0.75) / 4 = 0.375
    p(cat|the) = 2.25 / 4 + 0.375 * 0.1 = 0.6
    p(dog|the) = 0.25 / 4 + 0.375 * 0.1 = 0.1
    p(sat|the) = 0        + 0.375 * 0.2 = 0.075    (not stored: gamma(the) p(sat))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.models.ngram.adjusted_counts import Adjusted, AdjustedCounts
from lmgauge.models.ngram.counting import Counted
from lmgauge.models.ngram.discounts import MASS_BITS, NO_DISCOUNTS, Discounts, KernelDiscounts
from lmgauge.models.ngram.links import Grams, Links, Parts, add_up, answers_to, joined, transposed
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored

_LOWER_UNIT = 2.0**-60  # the kernels sum probabilities as integers in this unit
Floats = NDArray[np.float32]
_Rows = tuple[Array, Array, Array]  # of n-grams: parents, counts, and which are dropped
_Lower = tuple[Array, Floats]  # p(w|h') of each row, or by the suffixes of the rows

# A context of two words or more has all its followers in its own partition. The contexts of one word do not: what partitions
# have of them is added up by the program. The probability of a suffix comes as the answer to a request.


@dataclass(frozen=True)
class Estimated:
    """What came of estimating."""

    unigrams: Floats  # float32 [vocabulary, 2], probabilities and back-off weights
    grams: list[list[Grams]]  # of order 2, 3, ...: of each partition
    entries: list[int]  # n-grams of order 2, 3, ..., without those that cut-offs drop
    unseen: float = 0.0  # additive smoothing: probability of any word after an unseen context


@dataclass(frozen=True)
class _Order:
    """What the tasks of one order know."""

    k: int  # the order
    vocabulary: int
    discounts: KernelDiscounts
    is_additive: bool
    backs_off: bool
    events: int  # number of tokens that can be predicted
    amount: float  # additive: what is added to each count


@dataclass(frozen=True)
class _Counts:
    """The n-grams of one order in a partition, and what the smoothing knows of them."""

    parents: Stored
    words: Stored
    adjusted: Stored  # uint32, the counts that it works with
    dropped: Stored  # uint8, 1 where a cut-off drops the n-gram; empty if the order has no cut-off
    lower: list[Stored]  # the bits of p(w|h'), in the order of the rows; for bigrams the probabilities of all words


@dataclass(frozen=True)
class _Contexts:
    """What is known of the contexts of the n-grams of one order in a partition."""

    known: Stored  # as many values as there are contexts: their parents; of single words, what all partitions sum to
    totals: list[Stored]  # backing off: what the distributions after the shorter contexts h' sum to
    words: Stored | None = None  # of contexts of two words, of which h' is the last: `totals` is then of all words


@dataclass(frozen=True)
class _Made:
    """What comes of estimating one order in a partition."""

    probabilities: Stored
    contexts: Stored  # weights of contexts; of single words, what was seen of them in backing off
    answers: list[Stored]  # to requests, chunk by chunk: probabilities
    totals: list[Stored]  # and what the distributions after contexts sum to


def estimate(
    engine: Engine,
    links: Links,
    counted: list[Counted],
    adjusted: AdjustedCounts,
    discounts: list[Discounts],
    settings: NgramTrainingSettings,
    events: NDArray[np.bool_],
) -> Estimated:
    """Estimate the probabilities of counted partitions."""
    # discounts: of each order from 1; none for additive smoothing; events: bool [vocabulary], the tokens that can be
    # predicted.
    # Bigrams of the text `a b a b` by their shares (ids a = 3, b = 4, </s> = 2, <s> = 1), one partition:
    #     parents       [1, 3, 4, 4]            <s> a, a b, b a, b </s>
    #     words         [3, 4, 3, 2]
    #     probabilities [1.0, 1.0, 0.5, 0.5]    `b` always follows `a`, `a` follows `b` one time of two
    shape, unseen = links.shape, 0.0
    amount, backs_off = settings.added if settings.additive else 0.0, not (settings.additive or settings.interpolate)
    order = _Order(1, shape.vocabulary, NO_DISCOUNTS, settings.additive, backs_off, int(np.count_nonzero(events)), amount)
    if settings.additive:
        unigrams, unseen = additive_unigrams(adjusted.unigrams, amount, events)
    else:
        unigrams = np.ones((shape.vocabulary, 2), np.float32)
        unigrams[:, 0] = unigram_probabilities(adjusted.unigrams, discounts[0], events, settings.interpolate)
    orders = [
        replace(order, k=k, discounts=discounts[k - 1].for_kernels() if discounts else NO_DISCOUNTS) for k in shape.orders
    ]
    grams = _estimate_orders(engine, links, orders, counted, adjusted.partitions, unigrams)
    return Estimated(unigrams, grams, adjusted.entries, unseen)


def _estimate_orders(
    engine: Engine,
    links: Links,
    orders: Sequence[_Order],
    counted: list[Counted],
    adjusted: list[Adjusted],
    unigrams: Floats,
) -> list[list[Grams]]:
    # Estimate order 2, 3, ..., and fill the back-off weights of the unigrams.
    if not orders:
        return []
    of_words = [] if orders[0].is_additive else [engine.write("unigrams", np.ascontiguousarray(unigrams[:, 0]))]
    grams, made, lower, totals_of_words = list[list[Grams]](), list[_Made](), [of_words] * len(counted), list[Stored]()
    for order in orders:
        k, totals = order.k, Parts()
        if k > 2:
            lower = links.deal(engine, "lower", k - 1, [own.answers for own in made])
        rows = [
            _Counts(own.orders[k].parents, own.orders[k].words, *counts.orders[k], answers)
            for own, counts, answers in zip(counted, adjusted, lower, strict=True)
        ]
        if k == 2:
            sums, lower_sums = _sum_single_words(engine, order, rows)
            # From here on every partition sees the sums of all: it estimates its own bigrams as if it had the others.
            contexts = [_Contexts(engine.write("contexts", sums), [])] * len(rows)
        elif k == 3 and order.backs_off:
            contexts = [_Contexts(below.parents, totals_of_words, below.words) for below in grams[-1]]
        else:
            # The contexts h, of order k - 1, ask what the distributions after their h' sum to, which are of order k - 2.
            if order.backs_off:
                totals = links.deal(engine, "totals", k - 2, [own.totals for own in made])
            contexts = [_Contexts(below.parents, totals[p] if totals else []) for p, below in enumerate(grams[-1])]
        asked = len(links.of(k, 0))
        takes = [
            (order, row, contexts[p], links.of(k, p), links.of(k - 1, p) if asked else []) for p, row in enumerate(rows)
        ]
        makes = _Made(NEW, NEW, [NEW] * asked, [NEW] * (asked if order.backs_off and k > 2 else 0))
        made = engine.run(f"estimate-{k}", _estimate, takes, makes, f"estimating {k}-grams")
        engine.drop([row.adjusted for row in rows], lower if k > 2 else (), totals)
        if k > 2:
            grams[-1] = [replace(below, weights=own.contexts) for below, own in zip(grams[-1], made, strict=True)]
        elif order.backs_off:
            below = np.full(len(unigrams), np.sum(unigrams[:, 0], dtype=np.float64))
            seen, ones = add_up(engine, (own.contexts for own in made)), np.ones(len(unigrams))
            used, unigrams[used, 1], ones[used] = share_left(sums, lower_sums, seen, below)
            totals_of_words = [engine.write("unigram_totals", ones)]
        else:
            _fill_weights(order, sums, unigrams[:, 1])
        pairs = zip(rows, made, strict=True)
        grams.append([Grams(row.parents, row.words, own.probabilities, row.dropped, None) for row, own in pairs])
    return grams


def _sum_single_words(engine: Engine, order: _Order, rows: list[_Counts]) -> tuple[Array, Array]:
    # What the bigrams of all partitions have of each context of one word; and backing off, of the distributions below.
    makes = [NEW] * (3 if order.backs_off else 1)
    made = engine.run("sum-2", _sum_partition, [(order, row) for row in rows], makes, "summing contexts")
    sums, *lower = (add_up(engine, parts) for parts in transposed(made))
    if not lower:
        return sums, np.zeros(0, np.uint64)
    lower_sums, types = lower
    _native.balance_mass(sums, types, order.events)
    return sums, lower_sums


def _sum_partition(taken: tuple[_Order, _Counts], read: Read) -> Iterator[Array]:
    order, own = taken
    rows, sums = _rows(own, read), np.zeros((order.vocabulary, 2), np.uint64)
    _native.sum_contexts(rows, order.discounts, sums)
    yield sums
    if order.backs_off:
        yield from _sum_lower(order.vocabulary, rows, _lower(order, own, read))


def _sum_lower(contexts: int, rows: _Rows, lower: _Lower) -> tuple[Array, Array]:
    # What p(w|h') of the words after each context sum to, and how many these are.
    sums, types = np.zeros(contexts, np.uint64), np.zeros(contexts, np.uint32)
    _native.sum_lower(rows, lower, sums, types)
    return sums, types


_Estimating = tuple[_Order, _Counts, _Contexts, list[Stored], list[Stored]]
"""The n-grams of one order in a partition, their contexts, and the requests for the ones and the others, by chunks."""


def _estimate(taken: _Estimating, read: Read) -> Iterator[Array]:
    # Estimate the n-grams of one order, and the weights of their contexts, which are of the order below.
    order, own, context, requests, of_contexts = taken
    k = order.k
    rows, contexts, lower_sums = _rows(own, read), len(read(context.known)), np.zeros(0, np.uint64)
    lower = None if order.is_additive else _lower(order, own, read)
    if k == 2:
        sums = read(context.known)
    else:
        sums = np.zeros((contexts, 2), np.uint64)
        _native.sum_contexts(rows, order.discounts, sums)
        if order.backs_off and lower is not None:
            lower_sums, types = _sum_lower(contexts, rows, lower)
            _native.balance_mass(sums, types, order.events)
            del types
    seen, probabilities = np.zeros(contexts if order.backs_off else 0, np.uint64), np.empty(len(rows[0]), np.float32)
    if lower is None:
        _native.estimate_additive(rows, sums, order.amount, float(order.events), probabilities)
    elif order.backs_off:
        _native.estimate_discounted(rows, sums, order.discounts, probabilities, seen)
    else:
        _native.estimate_interpolated(rows, sums, order.discounts, lower, probabilities)
    # Memory is what a task is planned by: arrays go as soon as their last reader is done.
    del rows, lower
    yield probabilities
    if k == 2:
        yield seen
    else:
        weights = np.full(contexts, _unused_weight(order), np.float32)
        if order.backs_off:
            totals = np.ones(contexts)
            used, weights[used], totals[used] = share_left(sums, lower_sums, seen, _lower_totals(context, contexts, read))
        else:
            _fill_weights(order, sums, weights)
        yield weights
    yield from answers_to(read, requests, probabilities.view(np.uint32))
    if order.backs_off and k > 2:
        yield from answers_to(read, of_contexts, totals.view(np.uint64))


def _rows(own: _Counts, read: Read) -> _Rows:
    return read(own.parents), read(own.adjusted), read(own.dropped)


def _lower(order: _Order, own: _Counts, read: Read) -> _Lower:
    # The suffix of a bigram is its last word: all partitions read the unigrams. Of longer n-grams the suffix lies in some
    # other partition: its probability came as an answer, in the order of the rows.
    if order.k == 2:
        return read(own.words), read(own.lower[0])
    words = np.zeros(0, np.uint32)
    return words, joined(read, own.lower, len(read(own.parents)), np.uint32).view(np.float32)


def _unused_weight(order: _Order) -> float:
    if not order.is_additive:
        return 1.0
    return 1.0 / order.events if order.amount > 0 else 0.0


def _fill_weights(order: _Order, sums: Array, weights: Floats) -> None:
    # gamma(h) of the contexts that are followed by anything; or what additive smoothing holds instead.
    used = sums[:, 0] > 0
    if order.is_additive:
        totals = sums[:, 0] / 2.0**MASS_BITS
        totals += order.amount * order.events
        np.divide(order.amount, totals, out=weights, where=used)
    else:
        np.divide(sums[:, 1], sums[:, 0], out=weights, where=used)


def _lower_totals(own: _Contexts, contexts: int, read: Read) -> NDArray[np.float64]:
    # What the distribution after h' sums to, for each context h, float64 [contexts].
    if own.words is None:
        return joined(read, own.totals, contexts, np.uint64).view(np.float64)
    return np.asarray(read(own.totals[0])[read(own.words)], np.float64)


# -- single words, and what is left for shorter contexts ------------------------------------------------------------------
def additive_unigrams(counts: NDArray[np.int64], k: float, events: NDArray[np.bool_]) -> tuple[NDArray[np.float32], float]:
    """Return the unigrams of additive smoothing, and the probability of any word after a context without counts, 1 / V.

    >>> unigrams, unseen = additive_unigrams(np.array([3, 1]), 1.0, np.array([True, True]))
    >>> unigrams[:, 0].round(4).tolist(), unseen  # 4 / 6 and 2 / 6
    ([0.666700005531311, 0.33329999446868896], 0.5)
    """
    # counts: int64 [vocabulary], occurrences of each word; events: bool [vocabulary], the V tokens that can be predicted.
    # -> float32 [vocabulary, 2], (c + k) / (sum of c + k V) and, in place of back-off weights, k / (k V); and 1 / V.
    size = float(np.count_nonzero(events))
    occurrences = np.where(events, counts, 0)
    unigrams = np.empty((len(events), 2), np.float32)
    unigrams[:, 0] = np.where(events, (occurrences + k) / (occurrences.sum() + k * size), 0.0)
    unigrams[:, 1] = k / (k * size) if k else 0.0
    return unigrams, 1.0 / int(size) if k > 0 else 0.0


def unigram_probabilities(
    counts: NDArray[np.int64], discounts: Discounts, events: NDArray[np.bool_], interpolate: bool
) -> NDArray[np.float64]:
    """Return p(w), float64 [vocabulary]: the end of the recursion, where h' gives each of the V events 1 / V."""
    discount, mass, extra = discounts.for_kernels()
    counts = np.where(events, counts, 0)
    seen, size = counts > 0, int(np.count_nonzero(events))
    # counts [0, 1, 2, 9] with D of 0, 1, 2, 3+ -> buckets [0, 1, 2, 3]
    bucket = np.minimum(counts, len(discount) - 1)
    total = float(counts.sum() + extra * np.count_nonzero(seen))
    discounted = np.where(seen, np.maximum(counts - discount[bucket], 0), 0.0)
    left = float(np.sum(mass[bucket][seen].astype(np.float64))) / 2.0**MASS_BITS
    # A word of a word list that the text does not have, or `<unk>` where every word is known.
    unseen = events & ~seen
    if interpolate or not unseen.any():
        return np.where(events, (discounted + left / size) / total, 0.0)
    if left == 0:
        # As for longer contexts, see balance_mass in the kernels: one count more, or unseen words would be impossible.
        total, left = total + 1, 1.0
    return np.where(unseen, left / np.count_nonzero(unseen), discounted) / total


def share_left(
    sums: NDArray[np.uint64],
    lower_sums: NDArray[np.uint64],
    seen_sums: NDArray[np.uint64],
    lower_totals: NDArray[np.float64],
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Return which contexts are followed by anything, int [used], and for these alpha(h) and what p(w|h) sums to."""
    # sums: [contexts, 2], c(h) and the mass to give away, in units of 2^-28; lower_sums: [contexts], sum of p(w|h') over
    # the words seen, in units of 2^-60; seen_sums: [contexts], sum of p(w|h) over these, likewise; lower_totals:
    # [contexts], what the distribution after h' sums to as stored.
    used = np.flatnonzero(sums[:, 0])
    left = sums[used, 1] / sums[used, 0].astype(np.float64)
    # h = `the`, followed by `cat` alone: p(cat|the) = 0.6, p(cat) = 0.1, totals of 1 -> left 0.4, unseen 0.9, alpha =
    # 0.444...
    unseen = lower_totals[used] - lower_sums[used] * _LOWER_UNIT
    # alpha(h); where every word was seen nothing is left, and rounding alone decides what the rest would be.
    weights = np.where((left > 0) & (unseen > 1e-12), left / np.maximum(unseen, 1e-12), 0)
    return used, weights, seen_sums[used] * _LOWER_UNIT + left
