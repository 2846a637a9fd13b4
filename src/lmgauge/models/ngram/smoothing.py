"""Smoothing: from counts to probabilities and back-off weights.

Two families share one set of kernels. With D(c) what is taken from an n-gram counted c times, and M(c) what its context may
give away for it,

* interpolated: p(w|h) = (c - D(c)) / total(h) + gamma(h) p(w|h'), gamma(h) = sum M / total(h);
* backing off: p(w|h) = (c - D(c)) / total(h) if seen, else bow(h) p(w|h'), bow(h) making the sum one;

so that a smoothing is hardly more than a table of discounts. References: Chen & Goodman 1999, "An empirical study of
smoothing techniques for language modeling"; Ney, Essen & Kneser 1994; Kneser & Ney 1995; Witten & Bell 1991; Katz 1987.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.choices import SMOOTHING_KINDS, SmoothingKind
from lmgauge.errors import UsageError
from lmgauge.models.ngram.counting import NgramCounts, Table, adjust, drop
from lmgauge.models.ngram.lookup import columns
from lmgauge.text.vocabulary import BOS, UNK
from lmgauge.threads import run_ranges

ADDITIVE = frozenset({"mle", "laplace", "lidstone"})
_MASS_BITS = 28
_LOWER_UNIT = 2.0**-60
_Taken = tuple[NDArray[np.float64], NDArray[np.uint64], int]  # see Discounts.arrays
_WINDOW = 1 << 24
_FALLBACK = (0.5, 1.0, 1.5)
_KATZ_LIMIT = 7  # counts up to it are discounted (SRILM's default; Katz's k = 5)


@dataclass(frozen=True)
class Smoothing:
    """What a smoothing is, apart from the counts.

    Attributes:
        kind: one of `SMOOTHING_KINDS`.
        interpolate: whether lower orders are mixed in everywhere or only backed off to.
        discount: absolute discounting: the discount, for all orders or each; estimated if None.
        k: Lidstone: what is added to each count.
        cutoffs: n-grams of order i that occur at most cutoffs[i - 1] times are dropped; the last value holds for the rest.

    Raises:
        UsageError: options that do not belong to the kind, or out of range.
    """

    kind: SmoothingKind
    interpolate: bool = True
    discount: float | tuple[float, ...] | None = None
    k: float | None = None
    cutoffs: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in SMOOTHING_KINDS:
            raise UsageError(f"smoothing {self.kind!r} is not known; choose one of {', '.join(SMOOTHING_KINDS)}")
        if self.discount is not None and self.kind != "absolute-discounting":
            raise UsageError(f"--discount belongs to absolute-discounting; {self.kind} has its own")
        if self.discount == ():
            raise UsageError("discount: name one for all orders, or one for each")
        for value in np.atleast_1d(np.array([] if self.discount is None else self.discount, np.float64)):
            if not 0 <= value <= 1:
                raise UsageError(f"discount {value:g} is out of range: between 0 and 1 for probabilities not to be negative")
            if value == 1 and not self.interpolate:
                raise UsageError("discount 1 would leave nothing to n-grams seen once; give less, or interpolate")
        if (self.k is not None) != (self.kind == "lidstone"):
            raise UsageError(
                "lidstone needs --k, the amount added to each count"
                if self.kind == "lidstone"
                else f"--k belongs to lidstone, not to {self.kind}"
            )
        if self.k is not None and not (1e-12 <= self.k <= 1e12):
            raise UsageError(
                f"k {self.k:g} is out of range: lidstone adds between 1e-12 and 1e12 to each count (mle adds nothing)"
            )
        if any(not 0 <= c < 2**32 for c in self.cutoffs) or list(self.cutoffs) != sorted(self.cutoffs):
            raise UsageError(
                f"cutoffs {self.cutoffs}: counts from 0, not falling from order to order, as an n-gram needs its parts"
            )
        if self.cutoffs and self.cutoffs[0] != 0:
            raise UsageError("the first cut-off (order 1) must be 0; --min-count leaves out rare words")
        if any(self.cutoffs) and self.kind in ADDITIVE:
            raise UsageError(
                f"{self.kind} gives dropped n-grams no probability to fall back on; cut-offs need another smoothing"
            )
        if self.kind == "good-turing" and self.interpolate:
            object.__setattr__(self, "interpolate", False)

    @property
    def added(self) -> float:
        """What additive smoothing adds to each count."""
        return {"mle": 0.0, "laplace": 1.0}.get(self.kind, self.k or 0.0)


@dataclass(frozen=True)
class Discounts:
    """Discounts of one order: D(c) for c = 0, 1, ..., the last for all higher counts."""

    values: tuple[float, ...]
    note: str = ""  # why a fallback was taken

    def arrays(self, *, witten_bell: bool) -> tuple[NDArray[np.float64], NDArray[np.uint64], int]:
        """D(c) as the kernels subtract it, M(c) in fixed point, and what each type adds to the denominator."""
        mass = np.round(np.array(self.values) * 2.0**_MASS_BITS).astype(np.uint64)
        discount = mass.astype(np.float64) / 2.0**_MASS_BITS  # the same rounding in both, so that they sum to one
        if witten_bell:
            return np.zeros(1), np.full(1, 1 << _MASS_BITS, np.uint64), 1
        return discount, mass, 0


@dataclass
class Estimates:
    """An estimated model: `unigrams` float32 [vocabulary, 2] (probability, back-off weight), tables likewise, in place."""

    unigrams: NDArray[np.float32]
    discounts: list[Discounts]
    notes: list[str]


def estimate(counts: NgramCounts, smoothing: Smoothing, *, closed: bool, threads: int) -> Estimates:
    """Turns counts into a model, in the same memory: afterwards the tables hold probabilities and back-off weights.

    Args:
        counts: consumed.
        smoothing: which.
        closed: whether `<unk>` is excluded from the events.
        threads: how many threads share the work.
    """
    events = np.ones(len(counts.unigrams), bool)
    events[BOS] = False
    events[UNK] = not closed
    if smoothing.kind in ADDITIVE:
        return Estimates(_additive(counts, smoothing.added, events, threads), [], [])
    continuation = smoothing.kind in ("kneser-ney", "modified-kneser-ney")
    histograms = adjust(counts, continuation=continuation, cutoffs=smoothing.cutoffs, threads=threads)
    discounts = [_discounts(smoothing, order + 1, histogram) for order, histogram in enumerate(histograms)]
    unigrams = np.ones((len(counts.unigrams), 2), np.float32)
    unigrams[:, 0] = _unigram_probabilities(counts.unigrams, smoothing, discounts[0], events)
    totals = np.array([np.sum(unigrams[:, 0], dtype=np.float64)])
    for k in range(2, counts.order + 1):
        taken = discounts[k - 1].arrays(witten_bell=smoothing.kind == "witten-bell")
        if smoothing.interpolate:
            _interpolate_level(counts, k, unigrams, taken, threads)
        else:
            totals = _back_off_level(counts, k, unigrams, int(np.count_nonzero(events)), taken, totals, threads)
    if any(len(dropped) for dropped in counts.dropped):
        drop(counts)
    return Estimates(unigrams, discounts, [d.note for d in discounts if d.note])


def _discounts(smoothing: Smoothing, order: int, histogram: NDArray[np.int64]) -> Discounts:
    n = [int(v) for v in histogram]
    match smoothing.kind:
        case "witten-bell":
            return Discounts((0.0,))
        case "absolute-discounting" if smoothing.discount is not None:
            given = smoothing.discount if isinstance(smoothing.discount, tuple) else (smoothing.discount,)
            return Discounts((0.0, given[min(order, len(given)) - 1]))
        case "absolute-discounting" | "kneser-ney":
            return _one_discount(order, n)
        case "modified-kneser-ney":
            return _three_discounts(order, n, smoothing.interpolate)
        case _:
            return _katz_discounts(order, n)


def _one_discount(order: int, n: list[int]) -> Discounts:
    """D = n1 / (n1 + 2 n2): Ney, Essen & Kneser 1994, eq. 22."""
    if n[1] == 0 or n[2] == 0:
        once_or_twice = "once" if n[1] == 0 else "twice"
        note = (
            f"order {order}: no n-gram has been seen {once_or_twice} (adjusted count), so the discount cannot be estimated; "
            f"{_FALLBACK[0]} is used (small or artificial text?)"
        )
        return Discounts((0.0, _FALLBACK[0]), note)
    return Discounts((0.0, n[1] / (n[1] + 2 * n[2])))


def _three_discounts(order: int, n: list[int], interpolate: bool) -> Discounts:
    """D_i = i - (i + 1) Y n_{i+1} / n_i with Y = n1 / (n1 + 2 n2): Chen & Goodman 1999, eq. 26."""
    missing = [i for i in range(1, 4) if n[i] == 0]
    if missing:
        why = f"no n-gram has an adjusted count of {missing[0]}"
    else:
        y = n[1] / (n[1] + 2 * n[2])
        values = [i - (i + 1) * y * n[i + 1] / n[i] for i in range(1, 4)]
        # A discount that takes the whole count leaves nothing to an n-gram that was seen, unless lower orders are mixed in.
        if all(0 <= value < i or (interpolate and value == i) for i, value in enumerate(values, 1)):
            return Discounts((0.0, *values))
        why = f"they come out as {', '.join(f'{v:.3g}' for v in values)}, out of range"
    fallback = ", ".join(f"{v:g}" for v in _FALLBACK)
    return Discounts(
        (0.0, *_FALLBACK),
        f"order {order}: the discounts cannot be estimated, as {why}; {fallback} are used (small or artificial text?)",
    )


def _katz_discounts(order: int, n: list[int]) -> Discounts:
    """D(c) = c (1 - d_c), d_c from the Good-Turing estimate: Katz 1987, eq. 15; limits and exceptions as SRILM has them."""
    limit = 1 if order == 1 else _KATZ_LIMIT
    while limit > 0 and n[limit + 1] == 0:
        limit -= 1
    if n[1] == 0 or limit == 0:
        return Discounts((0.0,), f"order {order}: counts of counts do not allow Good-Turing discounts; none are taken")
    common = (limit + 1) * n[limit + 1] / n[1]
    values = [0.0] * (limit + 2)
    for c in range(1, limit + 1):
        ratio = (c + 1) * n[c + 1] / (c * n[c]) if n[c] else 2.0
        coefficient = (ratio - common) / (1 - common) if common != 1 else 0.0
        if ratio <= 1 and 3e-6 < coefficient <= 1:
            values[c] = c * (1 - coefficient)
    return Discounts(tuple(values))


def _unigram_probabilities(
    counts: NDArray[np.int64], smoothing: Smoothing, discounts: Discounts, events: NDArray[np.bool_]
) -> NDArray[np.float64]:
    discount, mass, extra = discounts.arrays(witten_bell=smoothing.kind == "witten-bell")
    counts = np.where(events, counts, 0)
    bucket = np.minimum(counts, len(discount) - 1)
    seen = counts > 0
    total = float(counts.sum() + extra * np.count_nonzero(seen))
    kept = np.where(seen, np.maximum(counts - discount[bucket], 0), 0.0)
    left = float(np.sum(mass[bucket][seen].astype(np.float64))) / 2.0**_MASS_BITS
    size = int(np.count_nonzero(events))
    unseen = events & ~seen
    if smoothing.interpolate or not unseen.any():
        return np.where(events, (kept + left / size) / total, 0.0)
    if left == 0:
        # The same way out as for longer contexts: see balance_mass in the kernels.
        total, left = total + 1, 1.0
    return np.where(unseen, left / np.count_nonzero(unseen), kept) / total


def _interpolate_level(counts: NgramCounts, k: int, unigrams: NDArray[np.float32], taken: _Taken, threads: int) -> None:
    table, dropped = counts.tables[k - 2], counts.dropped[k - 2]
    lower = counts.tables[k - 3] if k > 2 else None
    unigram = np.ascontiguousarray(unigrams[:, 0])
    below = [] if lower is None else [lower]
    for first, sums in _windows(len(unigrams) if lower is None else len(lower)):
        _over(table, threads, _native.sum_contexts, dropped, taken, first, sums)
        _over(table, threads, _native.estimate_interpolated, first, sums, taken, unigram, below)
        if lower is None:
            used = sums[:, 0] > 0
            unigrams[first : first + len(sums)][used, 1] = sums[used, 1] / sums[used, 0].astype(np.float64)
        else:
            _native.store_backoffs(lower, first, sums)


def _back_off_level(
    counts: NgramCounts,
    k: int,
    unigrams: NDArray[np.float32],
    vocabulary_size: int,
    taken: _Taken,
    lower_totals: NDArray[np.float64],
    threads: int,
) -> NDArray[np.float64]:
    """Estimates an order and the weights of its contexts: what they leave, over what the lower order gives to the unseen.

    Probabilities are stored in single precision, so a distribution sums to one but for some 1e-7. Where hardly anything of
    the lower order is unseen, that matters: the share of the unseen is taken from what the lower order really sums to.

    Args:
        lower_totals: float64, by context of the order below, what its distribution sums to as stored.

    Returns:
        The same for this order, by context.
    """
    table, dropped = counts.tables[k - 2], counts.dropped[k - 2]
    lower = counts.tables[k - 3] if k > 2 else None
    unigram = np.ascontiguousarray(unigrams[:, 0])
    below = [] if lower is None else [lower]
    weights = unigrams[:, 1] if lower is None else columns(lower)[2]
    totals = np.ones(len(weights))
    for first, sums in _windows(len(weights)):
        size = len(sums)
        lower_sums, kept_sums = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
        types, lower_contexts = np.zeros(size, np.uint32), np.zeros(size, np.uint32)
        _over(table, threads, _native.sum_contexts, dropped, taken, first, sums)
        _over(table, threads, _native.sum_lower, dropped, unigram, below, first, lower_sums, types, lower_contexts)
        _native.balance_mass(sums, types, vocabulary_size)
        _over(table, threads, _native.estimate_discounted, dropped, first, sums, taken, kept_sums)
        used = np.flatnonzero(sums[:, 0])
        left = sums[used, 1] / sums[used, 0].astype(np.float64)
        unseen = lower_totals[lower_contexts[used]] - lower_sums[used] * _LOWER_UNIT
        # Where every word was seen nothing is left, and rounding alone decides what the rest would be.
        weights[first + used] = np.where((left > 0) & (unseen > 1e-12), left / np.maximum(unseen, 1e-12), 0)
        totals[first + used] = kept_sums[used] * _LOWER_UNIT + left
    return totals


def _over(table: Table, threads: int, kernel: Callable[..., None], *arguments: object) -> None:
    """Runs a kernel over all slots of a table, cut among threads."""
    run_ranges(lambda begin, end: kernel(table, begin, end, *arguments), len(table), threads)


def _windows(contexts: int) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """Contexts a window at a time: first slot, and fresh sums. Bounds the memory, and keeps it near the processor."""
    for first in range(0, contexts, _WINDOW):
        yield first, np.zeros((min(_WINDOW, contexts - first), 2), np.uint64)


def _additive(counts: NgramCounts, added: float, events: NDArray[np.bool_], threads: int) -> NDArray[np.float32]:
    """p(w|h) = (c(h,w) + k) / (c(h) + k V) after every context, seen or not; each context holds its unseen words' share."""
    size = float(np.count_nonzero(events))
    occurrences = np.where(events, counts.unigrams, 0)
    unseen = added / (added * size) if added else 0.0
    unigrams = np.empty((len(events), 2), np.float32)
    unigrams[:, 0] = np.where(events, (occurrences + added) / (occurrences.sum() + added * size), 0.0)
    unigrams[:, 1] = unseen
    nothing = (np.zeros(1), np.zeros(1, np.uint64), 0)
    none_dropped = np.zeros(0, np.uint8)
    for k in range(2, counts.order + 1):
        table = counts.tables[k - 2]
        lower = counts.tables[k - 3] if k > 2 else None
        for first, sums in _windows(len(events) if lower is None else len(lower)):
            _over(table, threads, _native.sum_contexts, none_dropped, nothing, first, sums)
            _over(table, threads, _native.estimate_additive, first, sums, added, size)
            if lower is None:
                used = sums[:, 0] > 0
                total = sums[used, 0] / 2.0**_MASS_BITS
                unigrams[first : first + len(sums)][used, 1] = added / (total + added * size)
            else:
                _native.store_unseen(lower, first, sums, added, size)
    return unigrams
