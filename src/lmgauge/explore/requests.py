"""What the addresses of the explorer mean: their parameters as settings, every one checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgauge.errors import InputError, UsageError
from lmgauge.explore.passages import as_item, items
from lmgauge.explore.search import Pattern
from lmgauge.explore.selection import Chosen, Order, column_names
from lmgauge.readable import first_few, visible_on_page

if TYPE_CHECKING:
    from lmgauge.explore.explorer import Explorer
    from lmgauge.explore.index import Index
    from lmgauge.explore.selection import Selections

Parameters = Mapping[str, str]
MOST_SHOWN = 100
_SHOWN = 20
_FIRST_WAIT = 10.0
_SEGMENT_PARAMETERS = {"q", "regex", "case", "group", "sort", "falling", "page", "size", "at"}


def chosen_of(parameters: Parameters, index: Index) -> Chosen:
    """Return which segments an address asks for."""
    group = None
    if name := parameters.get("group"):
        names = [visible_on_page(group) for group in index.groups]
        if name not in names:
            raise UsageError(f"there is no group {name!r}; groups are {first_few(names)}")
        group = names.index(name)
    pattern = None
    if text := parameters.get("q"):
        pattern = Pattern(text, is_regex=_flag(parameters, "regex"), match_case=_flag(parameters, "case"))
    bounds: dict[str, list[tuple[str, float]]] = {"min": [], "max": []}
    for name, value in parameters.items():
        which, dot, of = name.partition(".")
        if dot and which in bounds and value:
            bounds[which].append((_column(of, index), _number(name, value)))
    return Chosen(group, pattern, tuple(sorted(bounds["min"])), tuple(sorted(bounds["max"])))


def segments(explorer: Explorer, parameters: Parameters) -> dict[str, Any]:
    """Return a page of the segments that are chosen, in the order asked for."""
    index, selections = _runs(explorer)
    _refuse_unknown(parameters)
    index.check_unchanged()
    chosen = chosen_of(parameters, index)
    order = Order(_column(parameters.get("sort") or "segment", index), _flag(parameters, "falling"))
    size = min(_whole(parameters, "size", _SHOWN) or _SHOWN, MOST_SHOWN)
    at, page = parameters.get("at"), _whole(parameters, "page", 0)
    wanted = (page + 1) * size if at is None else _whole(parameters, "at", 0) + 1
    index.wait(None if order.by != "segment" or order.is_falling else wanted, _FIRST_WAIT if not index.size else 1.0)
    if index.problem:
        raise InputError(index.problem)
    selection = selections.of(chosen, order)
    if at is not None:
        page = _page_of(index, selection.places, _whole(parameters, "at", 0), size)
    shown = selection.places[page * size : (page + 1) * size]
    return {
        "total": len(selection.places),
        "page": page,
        "pages": max(1, math.ceil(len(selection.places) / size)),
        "seen": selection.size,
        "is_complete": selection.is_complete,
        "share": index.share if not selection.is_complete else 1.0,
        "items": items(index, shown),
    }


def numbers(explorer: Explorer, parameters: Parameters) -> dict[str, Any]:
    """Return the numbers of all segments that are chosen, with intervals."""
    index, selections = _runs(explorer)
    _refuse_unknown(parameters)
    if not index.is_complete:
        return {"complete": False, "share": index.share}
    return selections.numbers(chosen_of(parameters, index))


def segment(explorer: Explorer, parameters: Parameters) -> dict[str, Any]:
    """Return one segment, from a byte on."""
    index, _ = _runs(explorer)
    index.check_unchanged()
    if name := parameters.get("id"):
        return {"segment": _segment_called(index, name)}
    number = _whole(parameters, "at", 0)
    place = _place_of(index, number)
    if place is None:
        raise InputError(f"there is no segment {number} among the {index.size:,} that were read")
    return as_item(index, place, _whole(parameters, "begin", 0))


def _segment_called(index: Index, name: str) -> int:
    size = index.size
    if index.has_ids:
        import pyarrow as pa
        import pyarrow.compute as pc

        ends, data = index.ids(size)
        ids = pa.LargeStringArray.from_buffers(size, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(data))
        at = pc.index(ids, pa.scalar(name, pa.large_string())).as_py()
        if at >= 0:
            return int(index.of_text("segment", size)[at])
    source, _, line = name.rpartition(":")
    files = [i for i, file in enumerate(index.sources()) if f"/{file}".endswith(f"/{source}")]
    if line.isdecimal() and len(line) < 19 and source and files:
        is_it = (index.of_text("line", size) == int(line)) & np.isin(index.of_text("source", size), files)
        if is_it.any():
            return int(index.of_text("segment", size)[int(np.argmax(is_it))])
    raise InputError(f"no segment that was read is called {name[:100]!r}")


def _place_of(index: Index, number: int) -> int | None:
    numbers = index.of_text("segment", index.size)
    place = int(np.searchsorted(numbers, number))
    return place if place < len(numbers) and int(numbers[place]) == number else None


def _page_of(index: Index, places: Any, number: int, size: int) -> int:
    place = _place_of(index, number)
    there = np.flatnonzero(places == place) if place is not None else np.zeros(0, np.int64)
    if not len(there):
        raise InputError(f"segment {number:,} is not among the {len(places):,} segments shown here")
    return int(there[0]) // size


def _runs(explorer: Explorer) -> tuple[Index, Selections]:
    if explorer.index is None or explorer.selections is None:
        raise InputError("there is no run to look at yet")
    return explorer.index, explorer.selections


def _refuse_unknown(parameters: Parameters) -> None:
    for name in parameters:
        if name not in _SEGMENT_PARAMETERS and not name.startswith(("min.", "max.")) and name != "token":
            raise UsageError(f"{name[:50]!r} is not known here; known are {', '.join(sorted(_SEGMENT_PARAMETERS))}")


def _column(name: str, index: Index) -> str:
    names = column_names(len(index.runs))
    if name not in names:
        raise UsageError(f"there is no column {name[:50]!r}; columns are {', '.join(names)}")
    return name


def _flag(parameters: Parameters, name: str) -> bool:
    return parameters.get(name, "") not in ("", "0", "false")


def _value(name: str, value: str, kind: Callable[[str], Any], what: str) -> Any:
    try:
        if len(value) > 30:
            raise ValueError
        return kind(value)
    except ValueError as error:
        raise UsageError(f"{name[:50]} is {value[:50]!r}, not {what}") from error


def _number(name: str, value: str) -> float:
    number = float(_value(name, value, float, "a number"))
    if math.isnan(number):
        raise UsageError(f"{name[:50]} is not a number")
    return number


def _whole(parameters: Parameters, name: str, default: int) -> int:
    value = parameters.get(name)
    if value is None or value == "":
        return default
    number = int(_value(name, value, int, "a whole number"))
    if not 0 <= number < 1 << 62:
        raise UsageError(f"{name} is {value}, not a whole number from 0")
    return number
