"""What the explorer is asked, as one declaration of fields, and its answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from lmgauge.base.decoding import Meta, Whole
from lmgauge.base.errors import InputError, UsageError
from lmgauge.explore.passages import item_at
from lmgauge.explore.playground import LONGEST_TEXT
from lmgauge.explore.selection import Choice

if TYPE_CHECKING:
    from lmgauge.explore.explorer import Explorer
    from lmgauge.explore.index import Index
    from lmgauge.explore.selection import Places, Selections

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
