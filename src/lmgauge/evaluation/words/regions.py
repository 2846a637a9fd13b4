"""Regions of texts, as a file or rows name them: a span of bytes each, or strings that follow one another in the text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from lmgauge.base.errors import InputError
from lmgauge.base.escaping import visible
from lmgauge.base.files import digest
from lmgauge.base.remote.addresses import PATHS, PathLike
from lmgauge.evaluation.words.merging import Units
from lmgauge.records.sources import table_rows
from lmgauge.text.segments import Segments, is_character_start, is_white_space

_ID_COLUMNS = ("text_id", "id", "item")
_WHITE = b" \t\n\v\f\r"
_SHOWN = 40
_MOST_DIGITS = 12


@dataclass(frozen=True)
class Region:
    """A region as it was named."""

    where: str  # the file and the line, for messages
    line: int  # the line alone, or the row, from 1
    name: str
    start: int | None  # start, end: bytes in the UTF-8 text; None where only the string is named
    end: int | None
    text: bytes | None  # the string, in UTF-8; None where only the span is named


class Regions:
    """The regions of texts, by the id of the text."""

    def __init__(self, by_text: Mapping[str, list[Region]]) -> None:
        self._by_text = by_text
        content = sorted((key, [(one.name, one.start, one.end, one.text) for one in by_text[key]]) for key in by_text)
        self.fingerprint = digest(repr(content))[:6]
        self._waiting = dict.fromkeys(by_text)
        self.texts_without = 0

    @classmethod
    def of(cls, regions: PathLike | Iterable[Mapping[str, Any]] | Any) -> Regions:
        """Return the regions of a file, of a data frame, or of rows, each a mapping with the fields that a file has."""
        rows: Iterable[tuple[int, Mapping[str, Any]]]
        if isinstance(regions, PATHS):
            source = os.fspath(regions)
            place, rows = f"{source}, line", table_rows(source, "regions are read from")
        else:
            source, place = "regions", "regions, row"
            rows = enumerate(regions.to_dict("records") if hasattr(regions, "to_dict") else regions, 1)
        by_text: dict[str, list[Region]] = {}
        for line, row in rows:
            text_id, region = _region(line, f"{place} {line}", row)
            own = by_text.setdefault(text_id, [])
            own.append(region if region.name else replace(region, name=str(len(own) + 1)))
        if not by_text:
            raise InputError(f"{source}: no region is named in it")
        return cls(by_text)

    def lay(self, block: Segments) -> Units:
        """Return the regions of the texts of a block as units."""
        spans: list[tuple[int, int, int, Region]] = []
        for i, identifier in enumerate(block.identifiers()):
            keys = [identifier] if block.ids is not None else [identifier, str(block.first + i + 1)]
            key = next((key for key in keys if key in self._by_text), None)
            if key is None:
                self.texts_without += 1
                continue
            if key not in self._waiting:
                raise InputError(f"regions: two texts have the id {_short(key)}; give each an id of its own (--id)")
            self._waiting.pop(key)
            spans += [(*span, i, region) for span, region in _placed(self._by_text[key], block, i, key)]
        starts, ends, owners = (np.array([span[k] for span in spans], np.int64) for k in range(3))
        return Units(starts, ends, owners, is_white_space(block.data), [region for *_, region in spans])

    def check_all_laid(self) -> None:
        """Check that each text that a region names was there."""
        for text_id in self._waiting:
            where = self._by_text[text_id][0].where
            raise InputError(
                f"{where}: there is no text {_short(text_id)}; a text is named by its id (--id), or by its number, from 1"
            )


def _region(line: int, where: str, row: Mapping[str, Any]) -> tuple[str, Region]:
    identifier = next((_cell(row, name) for name in _ID_COLUMNS if _cell(row, name)), "")
    if not identifier:
        raise InputError(f"{where}: names no text; give its id in a column text_id")
    start, end, text = (_cell(row, name) for name in ("start", "end", "text"))
    if bool(start) != bool(end) or not (start or text):
        raise InputError(f"{where}: names no region; give start and end (bytes), or its text")
    span = [_offset(value, where) if value else None for value in (start, end)]
    try:
        string = text.encode().strip(_WHITE) if text else None
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: its text holds a lone surrogate, which no UTF-8 text can") from error
    if string == b"":
        raise InputError(f"{where}: its text is white space alone")
    return identifier, Region(where, line, _cell(row, "region"), span[0], span[1], string)


def _cell(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, float) and value.is_integer():  # a data frame's whole numbers beside missing ones
        value = int(value)
    return "" if value is None or value != value else str(value)


def _offset(value: str, where: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS):
        raise InputError(f"{where}: {_short(value)} is not a number of bytes; start and end count from 0")
    return int(value)


def _placed(regions: list[Region], block: Segments, i: int, key: str) -> list[tuple[tuple[int, int], Region]]:
    # Regions of a text with their spans in the block's data, in the order of the text.
    text, base = block.text(i), int(block.starts[i])
    placed: list[tuple[int, int, Region]] = []
    at = 0
    for region in regions:
        start, end = _by_span(region, text, key) if region.start is not None else _by_string(region, text, at, key)
        placed.append((start, end, region))
        at = end
    placed.sort(key=lambda item: item[0])
    for (_, before, earlier), (start, _, later) in pairwise(placed):
        if start < before:
            raise InputError(f"{later.where}: region {_short(later.name)} overlaps that of line {earlier.line}")
    return [((base + start, base + end), region) for start, end, region in placed]


def _by_span(region: Region, text: bytes, key: str) -> tuple[int, int]:
    start, end = region.start or 0, region.end or 0
    what = f"{region.where}: region {_short(region.name)}"
    if not start < end <= len(text):
        raise InputError(f"{what}, bytes {start} to {end}, is not in text {_short(key)}, which has {len(text)} bytes")
    begins = np.append(is_character_start(np.frombuffer(text, np.uint8)), True)
    if not (begins[start] and begins[end]):
        raise InputError(f"{what} cuts a character of text {_short(key)}: start and end count bytes of UTF-8")
    piece = text[start:end]
    core = piece.strip(_WHITE)
    if not core:
        raise InputError(f"{what}, bytes {start} to {end} of text {_short(key)}, is white space alone")
    if region.text not in (None, core):
        raise InputError(f"{what}: bytes {start} to {end} of text {_short(key)} are {_short(core.decode())}, not its text")
    start += len(piece) - len(piece.lstrip(_WHITE))
    return start, start + len(core)


def _by_string(region: Region, text: bytes, at: int, key: str) -> tuple[int, int]:
    string = region.text or b""
    start = len(text) - len(text[at:].lstrip(_WHITE))
    if not text.startswith(string, start):
        there = text[start : start + 4 * _SHOWN].decode(errors="ignore")
        raise InputError(
            f"{region.where}: text {_short(key)} continues with {_short(there)} at byte {start}, not with "
            f"{_short(string.decode())}; name the regions of a text one after another from its beginning, or give "
            "start and end"
        )
    return start, start + len(string)


def _short(text: str) -> str:
    shown = visible(text)
    return repr(shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}...")
