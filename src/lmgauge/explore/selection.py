"""Segments chosen and put in an order by what a request asks for, and the numbers of those chosen: exact, with intervals."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.explore.index import NO_DOCUMENT, Index
from lmgauge.explore.search import Pattern, Search, Searches
from lmgauge.numerics.exact import ExactSums, exact_to_nats
from lmgauge.numerics.intervals import ratio_interval, spread
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats

if TYPE_CHECKING:
    from lmgauge.numerics.intervals import Interval

Floats = NDArray[np.float64]
Places = NDArray[np.signedinteger[Any]]

SEARCH_SECONDS = 1.5
"""For how long a request searches before it answers with what there is."""
OF_RUN = ("bits", "bits_per_byte", "bits_per_event", "events", "unseen", "zeros")
_REMEMBERED = 3


def column_names(runs: int) -> tuple[str, ...]:
    """Return the names of the columns that segments can be sorted and filtered by."""
    second = tuple(f"{name}_b" for name in OF_RUN) if runs == 2 else ()
    return ("segment", "bytes", *OF_RUN, *second, *(("difference", "difference_per_byte") if runs == 2 else ()))


def column(index: Index, name: str, size: int) -> NDArray[Any]:
    """Return a column of the first segments, [size]; NaN where there is nothing to divide by."""
    if name in ("segment", "bytes"):
        return index.of_text(name, size)
    if name.startswith("difference"):
        difference = _without_warnings(np.subtract, index.bits(1, size), index.bits(0, size))
        per_byte = name.endswith("per_byte")
        return _without_warnings(np.divide, difference, index.of_text("bytes", size)) if per_byte else difference
    k, plain = (1, name.removesuffix("_b")) if name.endswith("_b") else (0, name)
    if plain == "bits":
        return index.bits(k, size)
    if plain in ("bits_per_byte", "bits_per_event"):
        by = index.of_text("bytes", size) if plain == "bits_per_byte" else index.of_run(k, "events", size)
        return _without_warnings(np.divide, index.bits(k, size), by)
    return index.of_run(k, {"unseen": "oov"}.get(plain, plain), size)


def _without_warnings(operation: np.ufunc, first: NDArray[Any], second: NDArray[Any]) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        values: Floats = operation(first, second, dtype=np.float64)
    if operation is np.divide:
        values[second == 0] = np.nan
    return values


@dataclass(frozen=True)
class Chosen:
    """Which segments."""

    group: int | None = None  # number of their group; None for all
    pattern: Pattern | None = None  # that is found in them; None for all
    least: tuple[tuple[str, float], ...] = ()  # least, most: pairs of a column and its lowest or highest value
    most: tuple[tuple[str, float], ...] = ()

    @property
    def is_all(self) -> bool:
        """Return True if no segment is left out."""
        return self == Chosen()


@dataclass(frozen=True)
class Order:
    """By which column segments are sorted; those without a value come last, and equal ones in reading order."""

    by: str = "segment"
    is_falling: bool = False


@dataclass(frozen=True, eq=False)
class Selection:
    """What was chosen, as far as is known."""

    places: Places  # int64 [n], of the segments, in the order asked for
    size: int
    is_complete: bool


class Selections:
    """Answers which segments are chosen; remembers the last few answers."""

    def __init__(self, index: Index, searches: Searches) -> None:
        self._index, self._searches = index, searches
        self._lock = threading.Lock()
        self._orders: dict[Order, Places] = {}
        self._made: OrderedDict[tuple[Chosen, Order], Selection] = OrderedDict()
        self._numbers: OrderedDict[Chosen, dict[str, Any]] = OrderedDict()

    def of(self, chosen: Chosen, order: Order = Order()) -> Selection:
        """Return the segments that are chosen, in this order."""
        # A search goes on for `SEARCH_SECONDS`; where it has not come to its end, or not all is indexed, those known so
        # far.
        search: Search | None = None
        if chosen.pattern is not None:
            search = self._searches.of(chosen.pattern)
            search.advance(SEARCH_SECONDS)
        with self._lock:
            if (chosen, order) in self._made:
                self._made.move_to_end((chosen, order))
                return self._made[chosen, order]
            is_complete = self._index.is_complete
            size = self._index.size if search is None else search.size
            is_complete = is_complete and size == self._index.size
            places = self._places(chosen, order, size, search, is_complete)
            selection = Selection(places, size, is_complete)
            if is_complete:
                self._made[chosen, order] = selection
                while len(self._made) > _REMEMBERED:
                    self._made.popitem(last=False)
            return selection

    def close(self) -> None:
        """Close the files of the searches."""
        self._searches.close()

    def _places(self, chosen: Chosen, order: Order, size: int, search: Search | None, is_complete: bool) -> Places:
        if order.by == "segment":
            ordered = None
        elif is_complete:
            if order not in self._orders:
                while len(self._orders) >= _REMEMBERED:
                    self._orders.pop(next(iter(self._orders)))
                self._orders[order] = sorted_places(column(self._index, order.by, size), order.is_falling)
            ordered = self._orders[order]
        else:
            ordered = sorted_places(column(self._index, order.by, size), order.is_falling)
        if chosen.is_all:
            places = _small(np.arange(size)) if ordered is None else ordered
        else:
            mask = self._mask(chosen, size, search)
            places = _small(np.flatnonzero(mask)) if ordered is None else ordered[mask[ordered]]
        return places[::-1] if ordered is None and order.is_falling else places

    def _mask(self, chosen: Chosen, size: int, search: Search | None) -> NDArray[np.bool_]:
        mask = np.ones(size, bool) if search is None else search.matches(size)
        if chosen.group is not None:
            mask &= self._index.of_text("group", size) == chosen.group
        for name, value in chosen.least:
            mask &= column(self._index, name, size) >= value
        for name, value in chosen.most:
            mask &= column(self._index, name, size) <= value
        return mask

    def numbers(self, chosen: Chosen) -> dict[str, Any]:
        """Return the numbers of all chosen segments together, with their intervals."""
        # `complete` says whether all were seen.
        with self._lock:
            if chosen in self._numbers:
                return self._numbers[chosen]
        selection = self.of(chosen)
        numbers = numbers_of(self._index, selection.places) | {"complete": selection.is_complete}
        if selection.is_complete:
            with self._lock:
                self._numbers[chosen] = numbers
                while len(self._numbers) > 64:
                    self._numbers.popitem(last=False)
        return numbers


def sorted_places(values: NDArray[Any], is_falling: bool) -> Places:
    """Return the places of values in their order; NaN last, equal values in the order they stand in."""
    values = np.asarray(values)
    if is_falling:
        values = -values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    return _small(np.argsort(values, kind="stable"))


def _small(places: NDArray[np.int64]) -> Places:
    # Places in half the memory where there are not too many of them.
    return places.astype(np.int32) if len(places) < 1 << 31 else places


def numbers_of(index: Index, places: Places) -> dict[str, Any]:
    """Return the numbers of some segments together."""
    # places: int64 [n], in reading order.
    # -> how many segments and bytes; for each run its events, exact bits, bits per byte and perplexity with 95 % intervals;
    # for two runs the difference (the second less the first, bits per byte) with its interval and p-value; and `unit`, what
    # the intervals take as independent.
    size = index.size
    sizes = index.of_text("bytes", size)[places].astype(np.float64)
    documents = index.of_text("document", size)[places]
    known = None if not len(documents) or (documents == NO_DOCUMENT).any() else np.asarray(documents)
    runs, sums, interval = [], [], None
    for k in range(len(index.runs)):
        exact = ExactSums(*(np.asarray(index.of_run(k, name, size)[places]) for name in ("high", "low", "zeros")))
        events = index.of_run(k, "events", size)[places].astype(np.float64)
        figures, interval = _figures(exact, events, sizes, known)
        figures["unseen"] = int(index.of_run(k, "oov", size)[places].sum())
        runs.append(figures)
        sums.append(exact)
    numbers: dict[str, Any] = {"segments": len(places), "bytes": int(sizes.sum()), "runs": runs}
    numbers["unit"] = None if interval is None else {"of": interval.unit, "count": interval.units, "method": interval.method}
    if len(sums) == 2:
        numbers["difference"] = _difference(sums, sizes, known)
    return numbers


def _figures(
    sums: ExactSums, events: Floats, sizes: Floats, documents: Places | None
) -> tuple[dict[str, Any], Interval | None]:
    finite = exact_to_nats(-sums.totals(np.zeros(len(sizes), np.int64), 1)[0])
    total = nats_to_bits(finite)
    zeros, count, size = int(sums.zeros.sum()), int(events.sum()), float(sizes.sum())
    bits = math.inf if zeros else total
    nats = -sums.nats()
    per_byte = ratio_interval(nats, sizes, documents, total=finite) if size else None
    per_event = ratio_interval(nats, events, documents, total=finite) if count else None
    return {
        "events": count,
        "zeros": zeros,
        "bits": bits,
        "finite_bits": total,
        "bits_per_byte": bits / size if size else None,
        "bits_per_byte_interval": _ends(per_byte, nats_to_bits),
        "perplexity": None if not count else math.inf if zeros else perplexity_from_nats(finite / count),
        "perplexity_interval": _ends(per_event, perplexity_from_nats),
    }, per_byte or per_event


def _ends(interval: Interval | None, function: Any) -> list[float] | None:
    if interval is None:
        return None
    mapped = interval.mapped(function)
    return [mapped.low, mapped.high]


def _difference(sums: list[ExactSums], sizes: Floats, documents: Places | None) -> dict[str, Any] | None:
    # Bits per byte of the second run less those of the first; None where an event is impossible.
    if any(part.zeros.any() for part in sums) or not sizes.sum():
        return None
    code = np.zeros(len(sizes), np.int64)
    totals = [part.totals(code, 1)[0] for part in sums]
    value = nats_to_bits(exact_to_nats(totals[0] - totals[1])) / float(sizes.sum())
    apart = spread(sums[0].nats() - sums[1].nats(), sizes, documents)
    interval = None if apart is None else apart.interval()
    return {
        "value": value,
        "interval": _ends(interval, nats_to_bits),
        "p": None if apart is None else apart.p_value,
    }
