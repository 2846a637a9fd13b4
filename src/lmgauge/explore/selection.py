"""Segments chosen and put in an order by what a request asks for, and the numbers of those chosen: exact, with intervals."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.decoding import Meta
from lmgauge.base.errors import UsageError
from lmgauge.base.escaping import first_few, visible_on_page
from lmgauge.explore.index import NO_DOCUMENT, Index
from lmgauge.numerics.exact import ExactSums, exact_to_nats
from lmgauge.numerics.intervals import ratio_interval, spread
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats

if TYPE_CHECKING:
    from collections.abc import Callable

    from lmgauge.explore.index import Index
    from lmgauge.numerics.intervals import Interval


# -----------------------------------------------------------------------------------------------------------------------
# Search of all segments, by text or regular expression, a piece at a time: what was searched is not searched again.
# Expressions are those of RE2, whose time grows with the text and not with what the expression is: nobody can write one that
# takes for ever.


_PIECE = 1 << 22  # bytes of text between two looks at the clock


class Search:
    """Which segments have a text in them, or match a regular expression (RE2), as far as they were looked at."""

    def __init__(self, index: Index, text: str, is_regex: bool, match_case: bool) -> None:
        if index.corpus is None:
            raise UsageError("the text is not available, so it cannot be searched: name it with --text")
        self._index, self._text, self._is_regex, self._match_case = index, text, is_regex, match_case
        self._lock = threading.Lock()
        self._matches, self.size = np.zeros(0, bool), 0
        self._look(np.zeros(1, np.int64), np.zeros(0, np.uint8))  # refuses what is not an expression

    def advance(self, seconds: float) -> int:
        """Look at more segments for about this many seconds; return how many were looked at until now."""
        until = time.monotonic() + seconds
        with self._lock:
            size = self._index.size
            self._matches = np.concatenate((self._matches, np.zeros(size - len(self._matches), bool)))
            starts, ends = (self._index.segments.view(name, size) for name in ("start", "end"))
            while (begin := self.size) < size:
                end = max(int(np.searchsorted(ends, starts[begin] + _PIECE, side="right")), begin + 1)
                # Texts and what stands between them by turns: starts [0, 4], ends [3, 6] -> 0 to 3, 3 to 4, 4 to 6.
                bounds = np.stack((starts[begin:end], ends[begin:end]), axis=1).ravel()
                self._matches[begin:end] = self._look(bounds, self._index.text.view(int(ends[end - 1])))[::2]
                self.size = end
                if time.monotonic() > until:
                    break
            return self.size

    def matches(self, size: int) -> NDArray[np.bool_]:
        """Return which of the first segments match, bool [size]."""
        return self._matches[:size]

    def _look(self, bounds: NDArray[np.int64], data: NDArray[np.uint8]) -> NDArray[np.bool_]:
        # Which texts match: `bounds`, int64 [n + 1], part the UTF-8 bytes `data`.
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = pa.LargeStringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(data))
        find = pc.match_substring_regex if self._is_regex else pc.match_substring
        try:
            matching = find(texts, self._text, ignore_case=not self._match_case)
        except pa.ArrowInvalid as error:
            reason = str(error).partition(": ")[2].splitlines()[0] or str(error)
            raise UsageError(f"the regular expression cannot be used: {reason}") from error
        matches: NDArray[np.bool_] = matching.to_numpy(zero_copy_only=False)
        return matches


Floats = NDArray[np.float64]
Places = NDArray[np.signedinteger[Any]]

SEARCH_SECONDS = 1.5
"""For how long a request searches before it answers with what there is."""
OF_RUN = ("bits", "bits_per_byte", "bits_per_event", "events", "unseen", "zeros")
_DIVISORS = {"bits_per_byte": "bytes", "bits_per_event": "events", "difference_per_byte": "bytes"}


@dataclass(frozen=True)
class Choice:
    """Which segments; all of them if nothing is said."""

    q: Annotated[str, Meta(max_length=1000)] = ""  # is in their text
    regex: bool = False  # it is a regular expression
    case: bool = False  # and must have the same case
    group: str = ""
    column: str = ""  # whose values are at least `min` and at most `max`
    min: Annotated[float, Meta(ge=-1e300)] = -math.inf
    max: Annotated[float, Meta(ge=-1e300)] = math.inf


def column_names(runs: int) -> tuple[str, ...]:
    """Return the names of the columns that segments can be sorted and filtered by."""
    second = (*(f"{name}_b" for name in OF_RUN), "difference", "difference_per_byte") if runs == 2 else ()
    return ("segment", "bytes", *OF_RUN, *second)


def column(index: Index, name: str, size: int) -> NDArray[Any]:
    """Return a column of the first segments, [size]; NaN where there is nothing to divide by."""
    if name not in column_names(len(index.runs)):
        raise UsageError(f"there is no column {name[:50]!r}; columns are {', '.join(column_names(len(index.runs)))}")
    if name in ("segment", "bytes"):
        return index.segments.view(name, size)
    k, plain = int(name.endswith("_b")), name.removesuffix("_b")
    if plain in ("events", "unseen", "zeros"):
        return index.scores[k].view("oov" if plain == "unseen" else plain, size)
    with np.errstate(invalid="ignore"):
        values = index.bits(1, size) - index.bits(0, size) if plain.startswith("difference") else index.bits(k, size)
    if plain in _DIVISORS:
        divisor = (index.scores[k] if plain == "bits_per_event" else index.segments).view(_DIVISORS[plain], size)
        values = np.divide(values, divisor, out=np.full(size, np.nan), where=divisor > 0)
    return values


@dataclass(frozen=True, eq=False)
class Selection:
    """What was chosen, as far as is known."""

    places: Places  # integers [n], of the segments, in the order asked for
    size: int
    is_complete: bool


class Selections:
    """Answers which segments are chosen; remembers the last few answers, each for as many segments as were known."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._search: Callable[[str, bool, bool], Search] = lru_cache(8)(partial(Search, index))
        self._order = lru_cache(3)(lambda by, falls, size: sorted_places(column(index, by, size), falls))
        self._places = lru_cache(3)(self._find)
        self._numbers = lru_cache(64)(self._add_up)

    def of(self, choice: Choice, by: str = "segment", is_falling: bool = False) -> Selection:
        """Return the segments that are chosen, sorted by a column; NaN last, equal values in reading order."""
        # A search goes on for `SEARCH_SECONDS`; where it has not come to its end, or not all is indexed, those known so far.
        is_complete, whole = self._index.is_complete, self._index.size
        size = min(whole, self._search(choice.q, choice.regex, choice.case).advance(SEARCH_SECONDS)) if choice.q else whole
        return Selection(self._places(choice, by, is_falling, size), size, is_complete and size == whole)

    def numbers(self, choice: Choice) -> dict[str, Any]:
        """Return the numbers of all chosen segments together, with their intervals."""
        selection = self.of(choice)
        return self._numbers(choice, selection.size) | {"complete": selection.is_complete}

    def _find(self, choice: Choice, by: str, is_falling: bool, size: int) -> Places:
        ordered = self._order(by, is_falling, size)
        if choice == Choice():
            return ordered
        mask = self._search(choice.q, choice.regex, choice.case).matches(size).copy() if choice.q else np.ones(size, bool)
        if choice.group:
            names = [visible_on_page(group) for group in self._index.groups]
            if choice.group not in names:
                raise UsageError(f"there is no group {choice.group!r}; groups are {first_few(names)}")
            mask &= self._index.segments.view("group", size) == names.index(choice.group)
        if choice.column:
            values = column(self._index, choice.column, size)
            mask &= (values >= choice.min) & (values <= choice.max)
        places: Places = ordered[mask[ordered]]
        return places

    def _add_up(self, choice: Choice, size: int) -> dict[str, Any]:
        # For two runs the difference is the second less the first, in bits per byte; `unit` is what the intervals take as
        # independent.
        index, places = self._index, self._places(choice, "segment", False, size)
        sizes = index.segments.view("bytes", size)[places].astype(np.float64)
        documents = index.segments.view("document", size)[places]
        known = None if not len(documents) or (documents == NO_DOCUMENT).any() else documents
        sums = [index.sums(k, size, places) for k in range(len(index.runs))]
        events = [scores.view("events", size)[places].astype(np.float64) for scores in index.scores]
        runs = [_figures(own, count, sizes, known) for own, count in zip(sums, events, strict=True)]
        difference = _difference(sums, sizes, known) if len(sums) == 2 else None
        numbers = {"segments": len(places), "bytes": int(sizes.sum()), "runs": runs, "difference": difference}
        return numbers | {"unit": runs[-1].pop("unit")}


def sorted_places(values: NDArray[Any], is_falling: bool) -> Places:
    """Return the places of values in their order; NaN last, equal values in the order they stand in."""
    if is_falling:
        values = -values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    places: Places = np.argsort(values, kind="stable").astype(np.int32 if len(values) < 1 << 31 else np.int64)
    return places


def _total(sums: ExactSums) -> int:
    return sums.totals(np.zeros(len(sums.zeros), np.int64), 1)[0]


def _figures(sums: ExactSums, events: Floats, sizes: Floats, documents: Places | None) -> dict[str, Any]:
    # Exact bits, bits per byte and perplexity, with 95 % intervals.
    finite = exact_to_nats(-_total(sums))
    total = math.inf if sums.zeros.any() else finite
    count, size = int(events.sum()), float(sizes.sum())
    nats = -sums.nats()
    per_byte = ratio_interval(nats, sizes, documents, total=finite) if size else None
    per_event = ratio_interval(nats, events, documents, total=finite) if count else None
    interval = per_byte or per_event
    return {
        "events": count,
        "bits": nats_to_bits(total),
        "bits_per_byte": nats_to_bits(total) / size if size else None,
        "bits_per_byte_interval": _ends(per_byte, nats_to_bits),
        "perplexity": perplexity_from_nats(total / count) if count else None,
        "perplexity_interval": _ends(per_event, perplexity_from_nats),
        "unit": None if interval is None else {"of": interval.unit, "count": interval.units},
    }


def _ends(interval: Interval | None, function: Callable[[float], float]) -> list[float] | None:
    return None if interval is None else [function(interval.low), function(interval.high)]


def _difference(sums: list[ExactSums], sizes: Floats, documents: Places | None) -> dict[str, Any] | None:
    # Bits per byte of the second run less those of the first; None where an event is impossible.
    if any(part.zeros.any() for part in sums) or not sizes.sum():
        return None
    value = nats_to_bits(exact_to_nats(_total(sums[0]) - _total(sums[1]))) / float(sizes.sum())
    apart = spread(sums[0].nats() - sums[1].nats(), sizes, documents)
    interval, p = (None, None) if apart is None else (_ends(apart.interval(), nats_to_bits), apart.p_value)
    return {"value": value, "interval": interval, "p": p}
