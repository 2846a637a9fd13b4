"""Tables with named columns: a row for each attempt at an item, a column for each score, or for each model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lmgauge.base.errors import InputError
from lmgauge.base.files import digest
from lmgauge.scores.imports.log import LogFile
from lmgauge.tasks.items.logs import LoggedItem

_IDS = ("item", "item_id", "id", "doc_id", "question_id", "sample_id", "idx")
_SAMPLES = ("sample", "epoch", "trial", "repeat")
_DIGEST = re.compile("[0-9a-f]{64}")
_BY_ROW = "items are known by the numbers of their rows, as no column is called item or id (--id names another)"


def columns(file: LogFile) -> Iterator[LoggedItem] | None:
    """Read a table with a column of scores: CSV, TSV, JSON lines, a JSON array, Parquet or a data frame."""
    is_array = file.head.lstrip()[:1] == b"["
    return _items(file, is_array) if is_array or any(file.columns()) else None


def _items(file: LogFile, is_array: bool) -> Iterator[LoggedItem]:
    rows = file.values() if is_array else ((f"{file.path}, line {row.number}", row.fields) for row in file.rows())
    for number, (where, fields) in enumerate(rows, 1):
        if not isinstance(fields, dict):
            raise InputError(f"{where}: is not an object with the columns of a table")
        known = [name for name in _IDS if name in fields]
        prompt, content = (str(fields.get(name) or "") for name in ("prompt", "content"))
        yield LoggedItem(
            where,
            fields[known[0]] if known else str(number),
            {name: None if value == "" else value for name, value in fields.items()},
            fields,
            sample=next((fields[name] for name in _SAMPLES if name in fields), 0),
            subset=str(fields.get("subset") or ""),
            cluster=fields.get("cluster"),
            prompt=prompt if not prompt or _DIGEST.fullmatch(prompt) else digest(prompt),
            content=content if _DIGEST.fullmatch(content) else "",
            model=str(fields.get("model") or ""),
            note="" if known else _BY_ROW,
        )
