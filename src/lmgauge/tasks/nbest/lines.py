"""The lines of a text file, whole: n-best lists are read as they are, not cut into segments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from lmgauge.errors import InputError
from lmgauge.records.compression import read_chunks
from lmgauge.records.sources import Source, find_sources


def decoded_lines(source: Source) -> Iterator[str]:
    """Yield the lines of a file, without their ends and a byte order mark."""
    whole = b"".join(read_chunks(source, 1 << 20)).removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(whole.split(b"\n"), 1):
        try:
            yield line.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{source.name}:{number}: is not UTF-8 at byte {error.start + 1} of the line; convert it with iconv"
            ) from error


def read_table(path: str | os.PathLike[str]) -> dict[str, tuple[int, str]]:
    """Return by the id that begins each line of a file its number and what follows the id."""
    source = find_sources(path, "text")[0]
    lines = (line.strip().replace("\t", " ", 1).partition(" ") for line in decoded_lines(source))
    return by_id(((number, key, rest.strip()) for number, (key, _, rest) in enumerate(lines, 1) if key), source.name)


def by_id(rows: Iterable[tuple[int, str, str]], name: str) -> dict[str, tuple[int, str]]:
    """Return numbered texts by their ids."""
    table: dict[str, tuple[int, str]] = {}
    for number, key, text in rows:
        if key in table:
            raise InputError(f"{name}:{number}: the id {key!r} is on line {table[key][0]} too; each id needs one line")
        table[key] = (number, text)
    return table
