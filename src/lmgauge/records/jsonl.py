"""JSONL as records: the members of an object stay as they were written, and those of its scores are put behind them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.json_text import from_json, to_json
from lmgauge.records.lines import PackedLines, ReaderOfLines
from lmgauge.records.records import (
    BAD_RECORD,
    BLOCK_BYTES,
    NO_TEXT,
    TAKEN,
    Column,
    Problem,
    RawBlock,
    Records,
    Row,
    ScoredRecords,
    Strings,
    name_taken,
    utf8,
    what_is_wrong,
)


def json_object(line: bytes | str, such_as: str = ' such as {"text": "..."}') -> dict[str, Any]:
    """Return the object of a line of JSONL."""
    try:
        record = from_json(line.decode() if isinstance(line, bytes) else line)
    except UnicodeDecodeError as error:
        raise InputError(f"not valid JSON: {what_is_wrong(error.object, error.start)}") from error
    except json.JSONDecodeError as error:
        wrong = error.msg.removesuffix(" starting at")
        raise InputError(f"not valid JSON: {wrong} at column {error.colno}") from error
    except ValueError as error:  # a key twice; a number of thousands of digits; brackets thousands deep
        raise InputError(f"not usable JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputError(f"a JSON object{such_as} is needed, not {kind_of(record)}")
    return record


def object_rows(lines: Iterable[tuple[int, bytes | str]], name: str) -> Iterator[Row]:
    """Yield the objects of numbered lines of a file, blank ones left out; a bad one ends it."""
    for number, line in lines:
        if line and not line.isspace():
            try:
                yield Row(number, json_object(line, such_as=""))
            except InputError as error:
                raise InputError(f"{name}:{number}: {error}") from error


def kind_of(value: object) -> str:
    """Return what a value of JSON is called in messages."""
    names = {dict: "an object", list: "a list", bool: "true or false", type(None): "null", str: "a string"}
    return names.get(type(value), "a number")


class Reader(ReaderOfLines):
    """Reads the objects of a JSONL file; a line of nothing but white space is not a record."""

    def parse(self, block: RawBlock) -> Records:
        lines: list[bytes] = []
        numbers: list[int] = []
        texts: list[bytes] = []
        owners: list[int] = []
        values: dict[str, list[Any]] = {name: [] for name in self.fields.others}
        problems: dict[int, Problem] = {}
        for number, line in self._lines(block):
            record, own, problem = self._read(line)
            if problem is not None:
                if problem[0] == TAKEN and number == 1:  # not a bad record, but a file that was scored before
                    raise name_taken(f"{self.source.name}:1", min(self.fields.taken.intersection(record)))
                problems[len(lines)] = problem
            texts += own
            owners += [len(lines)] if len(own) == 1 else [len(lines)] * len(own)
            lines.append(line)
            numbers.append(number)
            for name, column in values.items():
                column.append(record.get(name))
        strings = Strings.of(texts, owners)
        return Records(self.source.name, np.array(numbers, np.int64), strings, values, problems, lines)

    def _lines(self, block: RawBlock) -> Iterator[tuple[int, bytes]]:
        lines, numbers = self.numbered(block)
        return ((number, line) for number, line in zip(numbers.tolist(), lines, strict=True) if line and not line.isspace())

    def rows(self) -> Iterator[Row]:
        for block in self.blocks(BLOCK_BYTES):
            yield from object_rows(self._lines(block), self.source.name)

    def _read(self, line: bytes) -> tuple[dict[str, Any], list[bytes], Problem | None]:
        try:
            record = json_object(line)
        except InputError as error:
            return {}, [], (BAD_RECORD, str(error))
        if self.fields.options and not self.fields.options.keys() <= record.keys():
            absent = next(name for name in self.fields.options if name not in record)
            return record, [], (NO_TEXT, self.fields.missing(absent, list(record)))
        name = self.fields.text
        if name is None:
            return record, [], None
        value = record.get(name)
        if isinstance(value, str):
            if self.fields.taken and not self.fields.taken.isdisjoint(record):
                taken = min(self.fields.taken.intersection(record))
                return record, [], (TAKEN, f"there is already a field {taken!r}, which scores would hide")
            return record, [value.encode("utf-8", "surrogatepass")], None  # as `utf8`, without a call for each
        if name not in record:
            return record, [], (NO_TEXT, self.fields.missing(name, list(record)))
        wanted, what = "a string", kind_of(value)
        if self.fields.lists:
            wanted = "a string or a list of strings"
            if isinstance(value, list):
                present = [text for text in value if text is not None]  # null: a reference that is absent
                if present and all(isinstance(text, str) for text in present):
                    return record, list(map(utf8, present)), None
                what = "a list without a string" if not present else "a list with something that is not a string"
        return record, [], (NO_TEXT, f"field {name!r} holds {what}, not {wanted}")


class Writer(PackedLines):
    """Writes JSONL: objects as they were, with the members of their scores behind their own; lines of text as objects."""

    def write(self, scored: ScoredRecords, rows: NDArray[np.intp]) -> None:
        """Write records; see `RecordWriter`."""
        names = (json.dumps(name).replace("{", "{{").replace("}", "}}") for name in scored.columns)
        members = ", ".join(f"{name}: {{}}" for name in names)
        texts = (json_values(values, rows) for values in scored.columns.values())
        parts: list[bytes] = []
        for row, *values in zip(rows.tolist(), *texts, strict=True):
            parts += _open_object(scored.records, row), members.format(*values).encode(), b"}\n"
        self.put(parts)


def json_values(column: Column, rows: NDArray[np.intp]) -> list[str]:
    """Return some values of a column as JSON has them, in full precision; "inf" is a string, and NaN is null."""
    if not isinstance(column, np.ndarray):
        return [json.dumps(column[row]) for row in rows.tolist()]
    values = column[rows]
    texts, special = list(map(repr, values.tolist())), {"inf": '"inf"', "-inf": '"-inf"', "nan": "null"}
    return texts if np.isfinite(values).all() else [special.get(text, text) for text in texts]


def _open_object(records: Records, row: int) -> bytes:
    line: bytes = records.raw[row]
    if records.is_text:
        text = {"id": records.identifier(row), "text": line.rstrip(b"\r").decode()}
        return to_json(text, indent=None)[:-1].encode() + b", "
    members = line.rstrip()[:-1].rstrip()
    return members + (b"" if members.endswith(b"{") else b", ")
