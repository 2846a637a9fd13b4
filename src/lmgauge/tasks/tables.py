"""Tables of systems: a row for each with all its columns, in any format of records but lines, or in JSON."""

from __future__ import annotations

from typing import Any

from lmgauge.errors import InputError
from lmgauge.json_text import from_json
from lmgauge.records.compression import read_chunks
from lmgauge.records.formats import split_compression
from lmgauge.records.records import BLOCK_BYTES
from lmgauge.records.sources import find_sources, table_rows

Row = dict[str, Any]


def read_table(path: str) -> list[Row]:
    """Return the rows of a table of systems: CSV or TSV with a header, JSON lines, Parquet, or JSON."""
    # JSON is a list of objects, or an object with such a list under "systems", which `lmgauge bleu --json` and its like
    # print.
    # -> a dictionary for each row; values of TSV and CSV are strings of characters, the others as they are.
    if split_compression(path)[0].lower().endswith(".json"):
        rows = _of_json(path)
    else:
        rows = [row.fields for row in table_rows(path, "tables are read from .json,", quotes=True)]
    if not rows:
        raise InputError(f"{path}: the table has no rows")
    return rows


def _of_json(path: str) -> list[Row]:
    try:
        whole = from_json(b"".join(read_chunks(find_sources(path, "text")[0], BLOCK_BYTES)))
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    rows = whole.get("systems") if isinstance(whole, dict) else whole
    if not isinstance(rows, list):
        raise InputError(f'{path}: needs a list of objects, or an object with such a list under "systems"')
    odd = next((i for i, row in enumerate(rows) if not isinstance(row, dict)), None)
    if odd is not None:
        raise InputError(f"{path}: entry {odd + 1} is {type(rows[odd]).__name__}, not an object")
    return rows
