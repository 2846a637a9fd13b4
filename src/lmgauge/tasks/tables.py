"""Tables of systems: a row for each, from TSV, CSV, JSON or JSON lines, with all their columns."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from lmgauge.errors import InputError, UsageError
from lmgauge.json_text import from_json

Row = dict[str, Any]


def read_table(path: str) -> list[Row]:
    """Return the rows of a table of systems: TSV or CSV with a header, JSONL, or JSON."""
    # JSON is a list of objects, or an object with such a list under "systems", which `lmgauge bleu --json` and its like
    # print.
    # -> a dictionary for each row; values of TSV and CSV are strings of characters, those of JSON as they are.
    readers = {".tsv": _read_separated, ".csv": _read_separated, ".jsonl": _read_json_lines, ".json": _read_json}
    suffix = Path(path).suffix.lower()
    if suffix not in readers:
        raise UsageError(f"{path}: the suffix is none of .tsv, .csv, .jsonl and .json; rename the file")
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not valid UTF-8 at byte {error.start}; save it as UTF-8") from error
    rows = readers[suffix](path, text)
    if not rows:
        raise InputError(f"{path}: the table has no rows")
    return rows


def _read_separated(path: str, text: str) -> list[Row]:
    separator = "\t" if path.lower().endswith(".tsv") else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    header: list[str] = []
    rows: list[Row] = []
    try:
        for cells in reader:
            if not cells:
                continue
            if not header:
                header = _header(path, cells)
            elif len(cells) != len(header):
                raise InputError(f"{path}:{reader.line_num}: {len(cells)} fields, but the header has {len(header)}")
            else:
                rows.append(dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: {error}") from error
    return rows


def _header(path: str, cells: list[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    odd = next((name for i, name in enumerate(header) if not name or name in header[:i]), None)
    if odd is not None:
        what = f"the column {odd!r} occurs twice" if odd else "a column has no name"
        raise InputError(f"{path}:1: {what}; the first line names the columns, each once")
    return header


def _read_json_lines(path: str, text: str) -> list[Row]:
    return [_json_row(path, number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _json_row(path: str, number: int, line: str) -> Row:
    row = _parsed(line, path, number)
    if not isinstance(row, dict):
        raise InputError(f"{path}:{number}: {type(row).__name__} where an object with the columns' names belongs")
    return row


def _parsed(text: str, path: str, line: int | None = None) -> Any:
    # Value of a JSON text: the whole file, or its line of this number.
    try:
        return from_json(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{line or error.lineno}: not JSON: {error.msg} at column {error.colno}") from error
    except ValueError as error:  # a key twice; a number of thousands of digits; brackets thousands deep
        raise InputError(f"{path}{'' if line is None else f':{line}'}: not usable JSON: {error}") from error


def _read_json(path: str, text: str) -> list[Row]:
    whole = _parsed(text, path)
    rows = whole.get("systems") if isinstance(whole, dict) else whole
    if not isinstance(rows, list):
        raise InputError(f'{path}: needs a list of objects, or an object with such a list under "systems"')
    odd = next((i for i, row in enumerate(rows) if not isinstance(row, dict)), None)
    if odd is not None:
        raise InputError(f"{path}: entry {odd + 1} is {type(rows[odd]).__name__}, not an object")
    return rows
