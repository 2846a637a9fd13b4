"""From counts to probabilities and back-off weights in partitions, order by order, by the kernels of `interpolation`."""

# A context of two words or more has all its followers in its own partition. The contexts of one word do not: what partitions
# have of them is added up by the program. The probability of a suffix comes as the answer to a request.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.models.ngram.adjusted_counts import HISTOGRAM, cutoff_of
from lmgauge.models.ngram.discounts import MASS_BITS, NO_DISCOUNTS, Discounts, KernelDiscounts, estimate_discounts
from lmgauge.models.ngram.hash_table import Table
from lmgauge.models.ngram.interpolation import additive_unigrams, share_left, unigram_probabilities
from lmgauge.models.ngram.partitioned.counting import Counted, Counts
from lmgauge.models.ngram.partitioned.links import Grams, Links, Parts, add_up, answers_to, joined, transposed
from lmgauge.models.ngram.settings import CONTINUATION, NgramTrainingSettings
from lmgauge.text.vocabulary import BOS
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Estimated:
    """What came of estimating."""

    unigrams: Floats  # float32 [vocabulary, 2], probabilities and back-off weights
    grams: list[list[Grams]]  # of order 2, 3, ...: of each partition
    entries: list[int]  # n-grams of order 2, 3, ..., without those that cut-offs drop
    discounts: list[Discounts]  # of each order from 1; none for additive smoothing
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


@dataclass(frozen=True)
class _Adjusted:
    """What comes of adjusting the counts of a partition."""

    orders: dict[int, tuple[Stored, Stored]]  # the counts, and which n-grams are dropped
    histogram: Stored
    entries: Stored
    preceding: Stored


def estimate(
    engine: Engine,
    links: Links,
    counted: list[Counted],
    settings: NgramTrainingSettings,
    counts: NDArray[np.int64],
    events: NDArray[np.bool_],
) -> Estimated:
    """Estimate the probabilities of counted partitions."""
    # counts: int64 [vocabulary], occurrences of each word; none for `<s>`; events: bool [vocabulary], the tokens that can
    # be predicted.
    # Bigrams of the text `a b a b` by their shares (ids a = 3, b = 4, </s> = 2, <s> = 1), one partition:
    #     parents       [1, 3, 4, 4]            <s> a, a b, b a, b </s>
    #     words         [3, 4, 3, 2]
    #     probabilities [1.0, 1.0, 0.5, 0.5]    `b` always follows `a`, `a` follows `b` one time of two
    shape = links.shape
    continuation = settings.kind in CONTINUATION and shape.order > 1
    takes = [
        (shape.vocabulary, continuation, settings.cutoffs, own.orders, {k: links.of(k, p) for k in shape.orders})
        for p, own in enumerate(counted)
    ]
    makes = _Adjusted(dict.fromkeys(shape.orders, (NEW, NEW)), NEW, NEW, NEW)
    adjusted = engine.run("adjust", _adjust, takes, makes, "adjusting counts")
    engine.drop([of_order.counts for own in counted for of_order in own.orders.values()])
    histograms = add_up(engine, (own.histogram for own in adjusted))
    entries = add_up(engine, (own.entries for own in adjusted)).tolist()
    amount, backs_off = settings.added if settings.additive else 0.0, not (settings.additive or settings.interpolate)
    predicted = int(np.count_nonzero(events))
    order = _Order(1, shape.vocabulary, NO_DISCOUNTS, settings.additive, backs_off, predicted, amount)
    discounts, unseen = list[Discounts](), 0.0
    if settings.additive:
        unigrams, unseen = additive_unigrams(counts, order.amount, events)
    else:
        if continuation:
            # Kneser-Ney: a word counts the distinct words before it, that is the bigrams that end in it. What nothing
            # precedes keeps its count, as in `adjusted_counts`.
            preceding = add_up(engine, (own.preceding for own in adjusted))
            counts = np.where(preceding > 0, preceding, counts)
            counts[BOS] = 0
        # counts [5, 1, 1, 20] -> histogram [0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 1]: two words seen once, and 10 stands for all
        # above.
        first = np.bincount(np.minimum(counts, HISTOGRAM), minlength=HISTOGRAM + 1)
        discounts = [estimate_discounts(settings, k, n) for k, n in enumerate([first, *histograms], 1)]
        unigrams = np.ones((shape.vocabulary, 2), np.float32)
        unigrams[:, 0] = unigram_probabilities(counts, discounts[0], events, settings.interpolate)
    orders = [
        replace(order, k=k, discounts=discounts[k - 1].for_kernels() if discounts else NO_DISCOUNTS) for k in shape.orders
    ]
    grams = _estimate_orders(engine, links, orders, counted, adjusted, unigrams)
    return Estimated(unigrams, grams, entries, discounts, unseen)


def _adjust(
    taken: tuple[int, bool, Sequence[int], dict[int, Counts], dict[int, list[Stored]]], read: Read
) -> Iterator[Array]:
    # Make the counts that the smoothing works with: a cut-off looks at occurrences, whatever these are.
    vocabulary, continuation, cutoffs, orders, requests = taken
    histogram = np.zeros((len(requests), HISTOGRAM + 1), np.int64)
    entries = np.zeros(len(requests), np.int64)
    for k, asked in requests.items():
        counts = read(orders[k].counts)
        cutoff = cutoff_of(cutoffs, k)
        dropped = (counts <= cutoff).astype(np.uint8) if cutoff else np.zeros(0, np.uint8)
        if continuation and asked:
            preceding = np.zeros(len(counts), np.uint32)
            for stored in asked:
                # Each request for a row is another token that precedes it: requests [1, 2, 1] -> preceding [0, 2, 1].
                _native.count_rows(read(stored), preceding)
            counts = np.where(preceding > 0, preceding, counts)
        histogram[k - 2] = np.bincount(np.minimum(counts, HISTOGRAM), minlength=HISTOGRAM + 1)
        entries[k - 2] = len(counts) - np.count_nonzero(dropped)
        yield counts
        yield dropped
    yield histogram
    yield entries
    # A partition has its bigrams once each, so counting their last words counts what precedes each word.
    yield np.bincount(read(orders[2].words), minlength=vocabulary)


def _estimate_orders(
    engine: Engine,
    links: Links,
    orders: Sequence[_Order],
    counted: list[Counted],
    adjusted: list[_Adjusted],
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
            used, weights = _weights(order, sums)
            unigrams[used, 1] = weights
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
    table, lower, dropped, rows = _table(order, own, read)
    sums = np.zeros((order.vocabulary, 2), np.uint64)
    _native.sum_contexts(table, 0, rows, dropped, order.discounts, 0, sums)
    yield sums
    if order.backs_off:
        yield from _sum_lower(order.vocabulary, table, rows, dropped, lower)


def _sum_lower(contexts: int, table: Table, rows: int, dropped: Array, lower: Floats) -> tuple[Array, Array]:
    # What p(w|h') of the words after each context sum to, and how many these are.
    sums, types = np.zeros(contexts, np.uint64), np.zeros(contexts, np.uint32)
    _native.sum_lower(table, 0, rows, dropped, lower, [], 0, sums, types, np.zeros(contexts, np.uint32))
    return sums, types


_Estimating = tuple[_Order, _Counts, _Contexts, list[Stored], list[Stored]]
"""The n-grams of one order in a partition, their contexts, and the requests for the ones and the others, by chunks."""


def _estimate(taken: _Estimating, read: Read) -> Iterator[Array]:
    # Estimate the n-grams of one order, and the weights of their contexts, which are of the order below.
    order, own, context, requests, of_contexts = taken
    k = order.k
    table, lower, dropped, rows = _table(order, own, read)
    contexts, lower_sums = len(read(context.known)), np.zeros(0, np.uint64)
    if k == 2:
        sums = read(context.known).copy()
    else:
        sums = np.zeros((contexts, 2), np.uint64)
        _native.sum_contexts(table, 0, rows, dropped, order.discounts, 0, sums)
        if order.backs_off:
            lower_sums, types = _sum_lower(contexts, table, rows, dropped, lower)
            _native.balance_mass(sums, types, order.events)
            del types
    seen = np.zeros(contexts, np.uint64)
    if order.is_additive:
        _native.estimate_additive(table, 0, rows, 0, sums, order.amount, float(order.events))
    elif order.backs_off:
        _native.estimate_discounted(table, 0, rows, dropped, 0, sums, order.discounts, seen)
    else:
        _native.estimate_interpolated(table, 0, rows, 0, sums, order.discounts, lower, [])
    # Memory is what a task is planned by: arrays go as soon as their last reader is done.
    del lower
    bits = np.ascontiguousarray(table.view(np.uint32)[:rows, 2])
    del table
    yield bits.view(np.float32)
    totals = np.ones(contexts)
    if k > 2:
        weights = np.full(contexts, _unused_weight(order), np.float32)
        if order.backs_off:
            used, weights[used], totals[used] = share_left(sums, lower_sums, seen, _lower_totals(context, contexts, read))
        else:
            used, some = _weights(order, sums)
            weights[used] = some
        yield weights
    else:
        yield seen
    yield from answers_to(read, requests, bits)
    if order.backs_off and k > 2:
        yield from answers_to(read, of_contexts, totals.view(np.uint64))


def _table(order: _Order, own: _Counts, read: Read) -> tuple[Table, NDArray[np.float32], NDArray[np.uint8], int]:
    # N-grams of a partition as the kernels take them, the rows being the slots; the probabilities of suffixes by what the
    # table calls them; what is dropped; and the number of rows.
    words = read(own.words)
    rows = len(words)
    if rows and int(words.max()) >= order.vocabulary:  # of a file that was damaged since it was written
        raise ValueError(f"{own.words.name} names words that the vocabulary does not have")
    # The kernels expect whole cache lines of four entries; keys of 0, which are empty slots, fill the last one. Nothing is
    # looked up in this table, so that it needs no free slots.
    table = np.zeros((4 * max(1, -(-rows // 4)), 2), np.uint64)
    fields = table.view(np.uint32)[:rows]
    fields[:, 0] = words
    fields[:, 0] += 1  # a key is parent << 32 | word, and one
    fields[:, 1] = read(own.parents)
    fields[:, 2] = read(own.adjusted)
    lower: NDArray[np.float32] = read(own.lower[0]) if order.k == 2 and own.lower else np.zeros(0, np.float32)
    if order.k == 2:
        # The suffix of a bigram is its last word, an id: all partitions read the unigrams.
        fields[:, 3] = words
    elif not order.is_additive:
        # Of longer n-grams the suffix lies in some other partition. Its probability came as an answer, in the order of the
        # rows, so that the row is where it stands.
        fields[:, 3] = np.arange(rows, dtype=np.uint32)
        lower = joined(read, own.lower, rows, np.uint32).view(np.float32)
    return table, lower, read(own.dropped), rows


def _unused_weight(order: _Order) -> float:
    if not order.is_additive:
        return 1.0
    return 1.0 / order.events if order.amount > 0 else 0.0


def _weights(order: _Order, sums: Array) -> tuple[Array, Array]:
    # Which contexts are followed by anything, and their gamma(h); or what additive smoothing holds instead.
    used = np.flatnonzero(sums[:, 0])
    if order.is_additive:
        return used, order.amount / (sums[used, 0] / 2.0**MASS_BITS + order.amount * order.events)
    return used, sums[used, 1] / sums[used, 0].astype(np.float64)


def _lower_totals(own: _Contexts, contexts: int, read: Read) -> NDArray[np.float64]:
    # What the distribution after h' sums to, for each context h, float64 [contexts].
    if own.words is None:
        return joined(read, own.totals, contexts, np.uint64).view(np.float64)
    return np.asarray(read(own.totals[0])[read(own.words)], np.float64)
