"""Tables with named columns: a row for each attempt at an item, a column for each score, or for each model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lmgauge.base.files import digest
from lmgauge.scores.imports.log import LogFile
from lmgauge.tasks.items.logs import LoggedItem

_IDS = ("item", "item_id", "id", "doc_id", "question_id", "sample_id", "idx")
_SAMPLES = ("sample", "epoch", "trial", "repeat")
_DIGEST = re.compile("[0-9a-f]{64}")
_BY_ROW = "items are known by the numbers of their rows, as no column is called item or id (--id names another)"


def columns(file: LogFile) -> Iterator[LoggedItem]:
    """Read a table with a column of scores: CSV, TSV, JSON lines, a JSON array, Parquet or a data frame."""
    rows = ((f"{file.path}, line {row.number}", row.fields) for row in (file.rows() if any(file.columns()) else ()))
    for number, (where, fields) in enumerate(file.values() if file.head.lstrip()[:1] == b"[" else rows, 1):
        known = [name for name in _IDS if name in fields]
        prompt, content, subset, model = (str(fields.get(name) or "") for name in ("prompt", "content", "subset", "model"))
        scores = {name: None if value == "" else value for name, value in fields.items()}
        sample = next((fields[name] for name in _SAMPLES if name in fields), 0)
        prompt = prompt if not prompt or _DIGEST.fullmatch(prompt) else digest([prompt])
        about = {"prompt": prompt, "content": content if _DIGEST.fullmatch(content) else "", "model": model}
        item, note = (fields[known[0]], "") if known else (str(number), _BY_ROW)
        yield LoggedItem(where, item, scores, fields, sample, subset, fields.get("cluster"), note=note, **about)
