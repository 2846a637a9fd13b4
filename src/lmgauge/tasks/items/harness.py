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

_NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+))?\.jsonl?(?:\.\w+)?|.*")
_STATED = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"}
_STATED |= {"doc_hash", "prompt_hash", "target_hash"}


def harness(file: LogFile) -> Iterator[LoggedItem]:
    """Read samples of lm-evaluation-harness, written with --log_samples."""
    named = _NAME.fullmatch(file.path.name)
    if named is None or not recognizes(file.head):
        return
    task, results, documents = named["task"] or "", f"results_{named['date']}.json", set()
    stated = beside(file, results)
    # Folders are called as models are, with __ for each character that no folder has; a user's own may be called otherwise.
    folder = file.path.absolute().parent.name
    if "__" not in folder:
        folder = "" if re.match(r"\.|\d{4}-?\d\d", file.path.parent.name) else file.path.parent.name
    model = stated.get("model_name") or folder.replace("__", "/", 1)
    higher = stated.get("higher_is_better", {}).get(task, {})
    for where, record in file.values():
        metrics = record.get("metrics", [name for name in record if name not in _STATED])
        chosen = record.get("filter", "none")
        names = {name if chosen == "none" else f"{name},{chosen}": name for name in metrics}
        scores = {name: record[metric] for name, metric in names.items()}
        lower = [name for name, metric in names.items() if higher.get(metric) is False]
        about = {"subset": task, "prompt": record.get("prompt_hash", ""), "content": record.get("doc_hash", "")}
        fields = record["doc"] | record if isinstance(record.get("doc"), dict) else record
        documents.add(record["doc_id"])
        yield LoggedItem(where, record["doc_id"], scores, fields, model=model, lower_is_better=lower, **about)
    expected = stated.get("n-samples", {}).get(task, {}).get("effective", 0)
    if len(documents) < expected:
        raise InputError(f"{file.path}: has {len(documents):,} of the {expected:,} documents of {results}: is it cut off?")
