"""From counts to probabilities and back-off weights in partitions, order by order, by the kernels of `interpolation`."""

# Input: `counts/{k}/{p}` and the requests, see `counting`.
# Output: `dropped/{k}/{p}`, `probabilities/{k}/{p}`, `weights/{k}/{p}`, and the unigrams.
#
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
from lmgauge.models.ngram.partitioned.counting import dealing_stage
from lmgauge.models.ngram.partitioned.shape import Shape
from lmgauge.models.ngram.partitioned.streams import add_up, answers_to, joined
from lmgauge.models.ngram.settings import CONTINUATION, NgramTrainingSettings
from lmgauge.text.vocabulary import BOS
from lmgauge.work.stage import Array, Engine, Read, Stage

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Estimated:
    """What came of estimating, besides the arrays of the partitions."""

    unigrams: Floats  # float32 [vocabulary, 2], probabilities and back-off weights
    entries: list[int]  # n-grams of order 2, 3, ..., without those that cut-offs drop
    discounts: list[Discounts]  # of each order from 1; none for additive smoothing
    unseen: float = 0.0  # additive smoothing: probability of any word after an unseen context


@dataclass(frozen=True)
class _Adjusting:
    shape: Shape
    continuation: bool
    cutoffs: Sequence[int]


@dataclass(frozen=True)
class _Order:
    """What the tasks of one order know."""

    shape: Shape
    k: int  # the order
    discounts: KernelDiscounts
    kind: str
    events: int  # number of tokens that can be predicted
    amount: float  # additive: what is added to each count

    def needs(self, p: int) -> list[str]:
        names = [f"{column}/{self.k}/{p}" for column in ("parents", "words", "adjusted", "dropped")]
        if self.kind == "additive":
            return names
        return names + (["unigrams"] if self.k == 2 else self.shape.names("lower/{k}/{p}/{c}", k=[self.k], p=[p]))


def estimate(
    engine: Engine, shape: Shape, settings: NgramTrainingSettings, counts: NDArray[np.int64], events: NDArray[np.bool_]
) -> Estimated:
    """Estimate the probabilities of counted partitions."""
    # counts: int64 [vocabulary], occurrences of each word; none for `<s>`; events: bool [vocabulary], the tokens that can
    # be predicted.
    # Bigrams of the text `a b a b` by their shares (ids a = 3, b = 4, </s> = 2, <s> = 1), one partition:
    #     parents       [1, 3, 4, 4]            <s> a, a b, b a, b </s>
    #     words         [3, 4, 3, 2]
    #     probabilities [1.0, 1.0, 0.5, 0.5]    `b` always follows `a`, `a` follows `b` one time of two
    continuation = settings.kind in CONTINUATION and shape.order > 1
    if shape.order > 1:
        engine.run(_adjusting_stage(_Adjusting(shape, continuation, settings.cutoffs)))
    partitions = range(shape.partitions if shape.order > 1 else 0)
    histograms = add_up(engine, "histogram", partitions)
    entries = add_up(engine, "entries", partitions).tolist()
    kind = "additive" if settings.additive else "interpolated" if settings.interpolate else "backed-off"
    order = _Order(shape, 2, NO_DISCOUNTS, kind, int(np.count_nonzero(events)), settings.added if settings.additive else 0.0)
    if settings.additive:
        unigrams, unseen = additive_unigrams(counts, order.amount, events)
        _run_orders(engine, order, unigrams, [])
        return Estimated(unigrams, entries, [], unseen)
    if continuation:
        # Kneser-Ney: a word counts the distinct words before it, that is the bigrams that end in it. What nothing precedes
        # keeps its count, as in `adjusted_counts`.
        preceding = add_up(engine, "preceding", partitions)
        counts = np.where(preceding > 0, preceding, counts)
        counts[BOS] = 0
    # counts [5, 1, 1, 20] -> histogram [0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 1]: two words seen once, and 10 stands for all above.
    first = np.bincount(np.minimum(counts, HISTOGRAM), minlength=HISTOGRAM + 1)
    discounts = [estimate_discounts(settings, k, n) for k, n in enumerate([first, *histograms], 1)]
    unigrams = np.ones((shape.vocabulary, 2), np.float32)
    unigrams[:, 0] = unigram_probabilities(counts, discounts[0], events, settings.interpolate)
    _run_orders(engine, order, unigrams, discounts)
    return Estimated(unigrams, entries, discounts)


def _adjusting_stage(work: _Adjusting) -> Stage:
    shape = work.shape
    return Stage(
        "adjust",
        shape.partitions,
        _adjust,
        work,
        needs=lambda p: [
            f"words/2/{p}",
            *shape.names("counts/{k}/{p}", k=shape.orders, p=[p]),
            *shape.names("requests/{k}/{p}/{c}", k=shape.inner, p=[p]),
        ],
        makes=lambda p: [
            *(f"{column}/{k}/{p}" for k in shape.orders for column in ("adjusted", "dropped")),
            *(f"{column}/{p}" for column in ("histogram", "entries", "preceding")),
        ],
        drops=["counts"],
        title="adjusting counts",
    )


def _adjust(read: Read, p: int, work: _Adjusting) -> Iterator[Array]:
    # Make the counts that the smoothing works with: a cut-off looks at occurrences, whatever these are.
    shape, cutoffs = work.shape, work.cutoffs
    histogram = np.zeros((shape.order - 1, HISTOGRAM + 1), np.int64)
    entries = np.zeros(shape.order - 1, np.int64)
    for k in shape.orders:
        counts = read(f"counts/{k}/{p}")
        cutoff = cutoff_of(cutoffs, k)
        dropped = (counts <= cutoff).astype(np.uint8) if cutoff else np.zeros(0, np.uint8)
        if work.continuation and k in shape.inner:
            preceding = np.zeros(len(counts), np.uint32)
            for name in shape.names("requests/{k}/{p}/{c}", k=[k], p=[p]):
                # Each request for a row is another token that precedes it: requests [1, 2, 1] -> preceding [0, 2, 1].
                _native.count_rows(read(name), preceding)
            counts = np.where(preceding > 0, preceding, counts)
        histogram[k - 2] = np.bincount(np.minimum(counts, HISTOGRAM), minlength=HISTOGRAM + 1)
        entries[k - 2] = len(counts) - np.count_nonzero(dropped)
        yield counts
        yield dropped
    yield histogram
    yield entries
    # A partition has its bigrams once each, so counting their last words counts what precedes each word.
    yield np.bincount(read(f"words/2/{p}"), minlength=shape.vocabulary)


def _run_orders(engine: Engine, first: _Order, unigrams: Floats, discounts: Sequence[Discounts]) -> None:
    # Estimate order 2, 3, ..., and fill the back-off weights of the unigrams.
    shape = first.shape
    if shape.order == 1:
        return
    engine.write("unigrams", np.ascontiguousarray(unigrams[:, 0]))
    orders = [
        replace(first, k=k, discounts=discounts[k - 1].for_kernels() if discounts else NO_DISCOUNTS) for k in shape.orders
    ]
    totals = _estimate_bigrams(engine, orders[0], unigrams)
    engine.write("unigram_totals", totals)
    for order in orders[1:]:
        below = order.k - 1
        if shape.linked:
            engine.run(dealing_stage(shape, below, "answers", "lower"))
        # The contexts h, of order k - 1, ask what the distributions after their h' sum to, which are of order k - 2.
        if shape.linked and order.kind == "backed-off" and order.k > 3:
            engine.run(dealing_stage(shape, below - 1, "totals", "lower_totals"))
        engine.run(_estimating_stage(order))


def _estimate_bigrams(engine: Engine, order: _Order, unigrams: Floats) -> NDArray[np.float64]:
    # Estimate order 2 and the back-off weights of single words; return what the distributions after these sum to.
    shape, partitions = order.shape, range(order.shape.partitions)
    backed_off = order.kind == "backed-off"
    parts = ["sums", "lower_sums", "types"] if backed_off else ["sums"]
    engine.run(
        Stage(
            "sum-2",
            shape.partitions,
            _sum_single_words,
            order,
            needs=order.needs,
            makes=lambda p: [f"{part}/{p}" for part in parts],
            title="summing contexts",
        )
    )
    of_all = {part: add_up(engine, part, partitions) for part in parts}
    sums = of_all["sums"]
    if backed_off:
        _native.balance_mass(sums, of_all["types"], order.events)
    # From here on every partition sees the sums of all: it estimates its own bigrams as if it had the others.
    engine.write("contexts", sums)
    engine.run(_estimating_stage(order))
    totals = np.ones(len(unigrams))
    if backed_off:
        seen = add_up(engine, "seen", partitions)
        below = np.full(len(unigrams), np.sum(unigrams[:, 0], dtype=np.float64))
        used, unigrams[used, 1], totals[used] = share_left(sums, of_all["lower_sums"], seen, below)
    else:
        used, weights = _weights(order, sums)
        unigrams[used, 1] = weights
    return totals


def _estimating_stage(order: _Order) -> Stage:
    shape, k, answering = order.shape, order.k, order.k in order.shape.inner
    backed_off = order.kind == "backed-off"

    def _makes(p: int) -> list[str]:
        names = [f"probabilities/{k}/{p}"]
        names += [f"seen/{p}"] if k == 2 and backed_off else [f"weights/{k - 1}/{p}"] if k > 2 else []
        if answering:
            names += shape.names("answers/{k}/{p}/{c}", k=[k], p=[p])
        if backed_off and k > 2 and k in shape.inner:
            names += shape.names("totals/{k}/{p}/{c}", k=[k - 1], p=[p])
        return names

    def _needs(p: int) -> list[str]:
        names = order.needs(p)
        names += ["contexts"] if k == 2 else [f"parents/{k - 1}/{p}"]
        if answering:
            names += shape.names("requests/{k}/{p}/{c}", k=[k], p=[p])
        if backed_off and k == 3:
            names += ["unigram_totals", f"words/2/{p}"]
        if backed_off and k > 3:
            names += shape.names("lower_totals/{k}/{p}/{c}", k=[k - 1], p=[p])
        if backed_off and k > 2 and answering:
            names += shape.names("requests/{k}/{p}/{c}", k=[k - 1], p=[p])
        return names

    drops = [f"adjusted/{k}", f"lower/{k}", f"lower_totals/{k - 1}"]
    title = f"estimating {k}-grams"
    return Stage(f"estimate-{k}", shape.partitions, _estimate, order, needs=_needs, makes=_makes, drops=drops, title=title)


def _table(read: Read, p: int, order: _Order) -> tuple[Table, NDArray[np.float32], NDArray[np.uint8], int]:
    # N-grams of a partition as the kernels take them, the rows being the slots; the probabilities of suffixes by what the
    # table calls them; what is dropped; and the number of rows.
    k, shape = order.k, order.shape
    words = read(f"words/{k}/{p}")
    rows = len(words)
    if rows and int(words.max()) >= shape.vocabulary:  # of a file that was damaged since it was written
        raise ValueError(f"words/{k}/{p} names words that the vocabulary does not have")
    # The kernels expect whole cache lines of four entries; keys of 0, which are empty slots, fill the last one. Nothing is
    # looked up in this table, so that it needs no free slots.
    table = np.zeros((4 * max(1, -(-rows // 4)), 2), np.uint64)
    fields = table.view(np.uint32)[:rows]
    fields[:, 0] = words
    fields[:, 0] += 1  # a key is parent << 32 | word, and one
    fields[:, 1] = read(f"parents/{k}/{p}")
    fields[:, 2] = read(f"adjusted/{k}/{p}")
    lower: NDArray[np.float32] = np.zeros(0, np.float32)
    if k == 2:
        # The suffix of a bigram is its last word, an id: all partitions read the unigrams.
        fields[:, 3] = words
        lower = read("unigrams") if order.kind != "additive" else lower
    elif order.kind != "additive":
        # Of longer n-grams the suffix lies in some other partition. Its probability came as an answer, in the order of the
        # rows, so that the row is where it stands.
        fields[:, 3] = np.arange(rows, dtype=np.uint32)
        lower = joined(read, shape.names("lower/{k}/{p}/{c}", k=[k], p=[p]), rows, np.uint32).view(np.float32)
    return table, lower, read(f"dropped/{k}/{p}"), rows


def _sum_single_words(read: Read, p: int, order: _Order) -> Iterator[Array]:
    # Sum what the bigrams of a partition have of each context of one word.
    table, lower, dropped, rows = _table(read, p, order)
    size = order.shape.vocabulary
    sums = np.zeros((size, 2), np.uint64)
    _native.sum_contexts(table, 0, rows, dropped, order.discounts, 0, sums)
    yield sums
    if order.kind == "backed-off":
        lower_sums, types = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
        _native.sum_lower(table, 0, rows, dropped, lower, [], 0, lower_sums, types, np.zeros(size, np.uint32))
        yield lower_sums
        yield types


def _estimate(read: Read, p: int, order: _Order) -> Iterator[Array]:
    # Estimate the n-grams of one order, and the weights of their contexts, which are of the order below.
    shape, k = order.shape, order.k
    table, lower, dropped, rows = _table(read, p, order)
    contexts = shape.vocabulary if k == 2 else len(read(f"parents/{k - 1}/{p}"))
    lower_sums, types = np.zeros(contexts, np.uint64), np.zeros(contexts, np.uint32)
    if k == 2:
        sums = read("contexts").copy()
    else:
        sums = np.zeros((contexts, 2), np.uint64)
        _native.sum_contexts(table, 0, rows, dropped, order.discounts, 0, sums)
        if order.kind == "backed-off":
            _native.sum_lower(table, 0, rows, dropped, lower, [], 0, lower_sums, types, np.zeros(contexts, np.uint32))
            _native.balance_mass(sums, types, order.events)
    seen = np.zeros(contexts, np.uint64)
    if order.kind == "additive":
        _native.estimate_additive(table, 0, rows, 0, sums, order.amount, float(order.events))
    elif order.kind == "interpolated":
        _native.estimate_interpolated(table, 0, rows, 0, sums, order.discounts, lower, [])
    else:
        _native.estimate_discounted(table, 0, rows, dropped, 0, sums, order.discounts, seen)
    # Memory is what a task is planned by: arrays go as soon as their last reader is done.
    del lower
    bits = np.ascontiguousarray(table.view(np.uint32)[:rows, 2])
    del table
    yield bits.view(np.float32)
    totals = np.ones(contexts)
    if k > 2:
        weights = np.full(contexts, _unused_weight(order), np.float32)
        if order.kind == "backed-off":
            used, weights[used], totals[used] = share_left(sums, lower_sums, seen, _lower_totals(read, p, order, contexts))
        else:
            used, some = _weights(order, sums)
            weights[used] = some
        yield weights
    elif order.kind == "backed-off":
        yield seen
    if k in shape.inner:
        yield from answers_to(read, p, shape, k, bits)
        if order.kind == "backed-off" and k > 2:
            yield from answers_to(read, p, shape, k - 1, totals.view(np.uint64))


def _unused_weight(order: _Order) -> float:
    if order.kind != "additive":
        return 1.0
    return 1.0 / order.events if order.amount > 0 else 0.0


def _weights(order: _Order, sums: Array) -> tuple[Array, Array]:
    # Which contexts are followed by anything, and their gamma(h); or what additive smoothing holds instead.
    used = np.flatnonzero(sums[:, 0])
    if order.kind == "additive":
        return used, order.amount / (sums[used, 0] / 2.0**MASS_BITS + order.amount * order.events)
    return used, sums[used, 1] / sums[used, 0].astype(np.float64)


def _lower_totals(read: Read, p: int, order: _Order, contexts: int) -> NDArray[np.float64]:
    # What the distribution after h' sums to, for each context h, float64 [contexts].
    if order.k == 3:
        totals: NDArray[np.float64] = read("unigram_totals")[read(f"words/2/{p}")]
        return totals
    names = order.shape.names("lower_totals/{k}/{p}/{c}", k=[order.k - 1], p=[p])
    return joined(read, names, contexts, np.uint64).view(np.float64)
