"""Tables of ids: lines that begin with an id, and what follows it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from lmgauge.errors import InputError
from lmgauge.records.lines import text_lines
from lmgauge.records.sources import find_sources


def read_table(path: str | os.PathLike[str]) -> dict[str, tuple[int, str]]:
    """Return by the id that begins each line of a file its number and what follows the id."""
    source = find_sources(path, "text")[0]
    return by_id(cut_ids(text_lines(source)), source.name)


def cut_ids(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield the number, the id and the rest of lines that begin with an id, blank ones left out."""
    parts = ((number, line.strip().replace("\t", " ", 1).partition(" ")) for number, line in lines)
    return ((number, key, rest.strip()) for number, (key, _, rest) in parts if key)


def by_id(rows: Iterable[tuple[int, str, str]], name: str) -> dict[str, tuple[int, str]]:
    """Return numbered texts by their ids."""
    table: dict[str, tuple[int, str]] = {}
    for number, key, text in rows:
        if key in table:
            raise InputError(f"{name}:{number}: the id {key!r} is on line {table[key][0]} too; each id needs one line")
        table[key] = (number, text)
    return table
