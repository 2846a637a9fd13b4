"""What the explorer is asked, as one declaration of fields, and its answers: segments that are chosen and put in an
order, and the numbers of those chosen, exact and with intervals.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.decoding import Meta, Whole
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.escaping import first_few, visible_on_page
from lmgauge.explore.index import NO_DOCUMENT, Index
from lmgauge.explore.passages import LONGEST_TEXT, item_at
from lmgauge.numerics.exact import ExactSums, exact_to_nats
from lmgauge.numerics.intervals import ratio_interval, spread
from lmgauge.numerics.units import nats_to_bits, perplexity_from_nats

if TYPE_CHECKING:
    from collections.abc import Callable

    from lmgauge.explore.explorer import Explorer
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


_FIRST_WAIT = 10.0  # seconds


@dataclass(frozen=True)
class Asked(Choice):
    """What a body says, whatever address it is posted to."""

    sort: str = "segment"
    falling: bool = False
    page: Whole = 0
    size: Annotated[int, Meta(ge=1, le=100)] = 20
    at: Whole | None = None  # number of a segment
    begin: Whole = 0  # byte of it
    id: Annotated[str, Meta(max_length=1000)] = ""
    text: Annotated[str, Meta(max_length=LONGEST_TEXT)] = ""

    def choice(self) -> Choice:
        """Return which segments are asked for."""
        return Choice(*(getattr(self, field.name) for field in fields(Choice)))


def segments(explorer: Explorer, asked: Asked) -> dict[str, Any]:
    """Return a page of the segments that are chosen, in the order asked for."""
    index, selections = _runs(explorer)
    in_order = asked.sort == "segment" and not asked.falling
    wanted = (asked.page + 1) * asked.size if asked.at is None else asked.at + 1
    index.wait(wanted if in_order else None, 1.0 if index.size else _FIRST_WAIT)
    if index.problem:
        raise InputError(index.problem)
    selection = selections.of(asked.choice(), asked.sort, asked.falling)
    places = selection.places
    page = asked.page if asked.at is None else _position(index, places, asked.at) // asked.size
    shown = places[page * asked.size : (page + 1) * asked.size].tolist()
    items = {place: item_at(index, place) for place in sorted(shown)}  # neighbors share a group of rows
    return {
        "total": len(places),
        "page": page,
        "pages": max(1, math.ceil(len(places) / asked.size)),
        "seen": selection.size,
        "is_complete": selection.is_complete,
        "share": 1.0 if selection.is_complete else index.share,
        "items": [items[place] for place in shown],
    }


def numbers(explorer: Explorer, asked: Asked) -> dict[str, Any]:
    """Return the numbers of all segments that are chosen, with intervals."""
    index, selections = _runs(explorer)
    return selections.numbers(asked.choice()) if index.is_complete else {"complete": False, "share": index.share}


def segment(explorer: Explorer, asked: Asked) -> dict[str, Any]:
    """Return the number of the segment that is called so, or a segment from a byte on."""
    index, _ = _runs(explorer)
    if asked.id:
        return {"segment": _segment_called(index, asked.id)}
    if asked.at is None:
        raise UsageError("a segment is asked for by at=NUMBER or id=NAME")
    index.wait(asked.at + 1, 1.0)
    return item_at(index, _position(index, None, asked.at), asked.begin)


def score(explorer: Explorer, asked: Asked) -> dict[str, Any]:
    """Return a text that was typed, scored."""
    if explorer.playground is None:
        raise UsageError("there is no model that scores what is typed: start with -m MODEL")
    return explorer.playground.score(asked.text)


def _runs(explorer: Explorer) -> tuple[Index, Selections]:
    if explorer.index is None:
        raise InputError("there is no run to look at")
    explorer.index.check_unchanged()
    return explorer.index, explorer.selections


def _segment_called(index: Index, name: str) -> int:
    size = index.size
    if len(index.ids):
        import pyarrow as pa
        import pyarrow.compute as pc

        bounds = np.concatenate(([0], index.segments.view("id_end", size)))
        ids = pa.LargeStringArray.from_buffers(size, pa.py_buffer(bounds), pa.py_buffer(index.ids.view(int(bounds[-1]))))
        at = pc.index(ids, pa.scalar(name, pa.large_string())).as_py()
        if at >= 0:
            return index.number("segment", at)
    source, _, line = name.rpartition(":")
    files = [number for file, number in index.sources.items() if f"/{file}".endswith(f"/{source}")]
    if line.isdecimal() and len(line) < 19 and source and files:
        is_it = (index.segments.view("line", size) == int(line)) & np.isin(index.segments.view("source", size), files)
        if is_it.any():
            return index.number("segment", int(np.argmax(is_it)))
    raise InputError(f"no segment that was read is called {name[:100]!r}")


def _position(index: Index, places: Places | None, number: int) -> int:
    # Where a segment of this number stands among those at some places; without any, its own place.
    segments = index.segments.view("segment", index.size)
    among = np.flatnonzero((segments if places is None else segments[places]) == number)
    if not len(among):
        raise InputError(f"segment {number:,} is not among those {'that were read' if places is None else 'shown here'}")
    return int(among[0])
