"""Results as lm-evaluation-harness writes them: `MODEL/results_DATE.json`, and `samples_TASK_DATE.jsonl` beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any

from lmgauge.base.errors import UsageError
from lmgauge.base.files import folder_named
from lmgauge.base.json_text import to_json
from lmgauge.base.result_list import plain_values
from lmgauge.report.exports import ExportedRun


def harness(runs: Sequence[ExportedRun]) -> Iterator[tuple[str, str]]:
    """Files of lm-evaluation-harness: results_*.json, and samples_*.jsonl of scored items."""
    for run in runs:
        date = run.moment.astimezone(UTC).replace(tzinfo=None).isoformat().replace(":", "-")
        folder = folder_named(re.sub(r'["<>:/|\\?*\[\]\x00-\x1f]+', "__", run.model))
        tasks: dict[str, list[Mapping[str, Any]]] = {}
        for row in run.rows:
            tasks.setdefault(row["subset"] or run.task, []).append(row)
        if any(row["sample"] for row in run.rows):
            raise UsageError(f"{run.model}: items have several scores, for which the harness has no place; use --to inspect")
        names = [figure.name if "," in figure.name else f"{figure.name},none" for figure in run.figures]
        results: dict[str, dict[str, Any]] = {
            task: {names[0]: math.fsum(row["score"] for row in rows) / len(rows)} for task, rows in tasks.items()
        }
        results[run.task] = {"alias": run.task}
        for name, figure in zip(names, run.figures, strict=True):
            results[run.task] |= {name: figure.value, name.replace(",", "_stderr,"): figure.error or "N/A"}
        better = {figure.name.partition(",")[0]: figure.higher_is_better for figure in run.figures}
        content = {
            "results": results,
            "group_subtasks": {run.task: [task for task in tasks if task != run.task]},
            "versions": {},
            "higher_is_better": dict.fromkeys(results, better),
            "n-samples": {task: {"original": len(rows), "effective": len(rows)} for task, rows in tasks.items()},
            "date": run.moment.timestamp(),
            "model_name": run.model,
            "lmgauge": run.provenance() | {"figures": [plain_values(figure) for figure in run.figures]},
        }
        yield f"{folder}/results_{date}.json", to_json(content) + "\n"
        for task, rows in tasks.items():
            lines = (to_json(_sample(names[0], row), indent=None) for row in rows)
            yield f"{folder}/samples_{folder_named(task)}_{date}.jsonl", "".join(f"{line}\n" for line in lines)


def _sample(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    item, (metric, chosen) = row["item"], name.split(",", 1)
    number = int(item) if item.isascii() and item.isdigit() and len(item) < 19 else None
    empty: dict[str, Any] = {"target": "", "arguments": {}, "resps": [], "filtered_resps": [], "target_hash": ""}
    known = {"doc": {"cluster": row["cluster"]}, "doc_hash": row["content"], "prompt_hash": row["prompt"]}
    score = {"filter": chosen, "metrics": [metric], metric: row["score"]}
    return {"doc_id": number if str(number) == item else item} | empty | known | score
