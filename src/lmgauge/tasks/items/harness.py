"""Samples of lm-evaluation-harness (`--log_samples`): a JSON line for each document and filter.

Its files are `MODEL/samples_TASK_DATE.jsonl`, with `results_DATE.json` beside, which says which way a metric is better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lmgauge.base.errors import InputError
from lmgauge.scores.imports.harness import recognizes
from lmgauge.scores.imports.log import LogFile
from lmgauge.tasks.items.logs import LoggedItem, beside

_NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+))?\.jsonl?(?:\.\w+)?")
_STATED = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"}
_STATED |= {"doc_hash", "prompt_hash", "target_hash"}


def harness(file: LogFile) -> Iterator[LoggedItem] | None:
    """Read samples of lm-evaluation-harness, written with --log_samples."""
    return _items(file) if recognizes(file.head) else None


def _items(file: LogFile) -> Iterator[LoggedItem]:
    named = _NAME.fullmatch(file.path.name)
    task, date = (named["task"], named["date"]) if named else ("", None)
    stated = (date and beside(file, f"results_{date}.json")) or {}
    folder = file.path.absolute().parent.name
    # Folders are called as models are, with __ for each character that no folder has.
    model = stated.get("model_name") or (folder.replace("__", "/", 1) if "__" in folder else "")
    lower = [name for name, higher in stated.get("higher_is_better", {}).get(task, {}).items() if higher is False]
    expected, documents = stated.get("n-samples", {}).get(task, {}).get("effective"), set()
    for where, record in file.values():
        if not isinstance(record, dict):
            raise InputError(f"{where}: is not a sample of lm-evaluation-harness, which is an object")
        metrics = record.get("metrics", [name for name in record if name not in _STATED])
        chosen = record.get("filter", "none")
        scores = {name if chosen == "none" else f"{name},{chosen}": record.get(name) for name in metrics}
        document = record.get("doc")
        documents.add(record.get("doc_id"))
        yield LoggedItem(
            where,
            record.get("doc_id"),
            scores,
            (document if isinstance(document, dict) else {}) | record,
            subset=task,
            prompt=record.get("prompt_hash", ""),
            content=record.get("doc_hash", ""),
            model=model,
            lower_is_better=[name for name in scores if name.partition(",")[0] in lower],
        )
    if expected is not None and len(documents) < expected:
        raise InputError(
            f"{file.path}: has {len(documents):,} of the {expected:,} documents of results_{date}.json: is it cut off?"
        )
