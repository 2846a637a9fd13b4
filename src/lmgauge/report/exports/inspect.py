"""Results as a log of Inspect (inspect.aisi.org.uk), in its JSON form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmgauge.base.files import digest, folder_named
from lmgauge.base.json_text import to_json
from lmgauge.base.result_list import plain_values
from lmgauge.report.exports import ExportedFigure, ExportedRun


def inspect(runs: Sequence[ExportedRun], *, dataset: str = "", source: str = "") -> Iterator[tuple[str, str]]:
    """Logs of Inspect, as JSON: the figures of each run, and a sample for each scored item."""
    for run in runs:
        key, date = digest(run.model, run.task, run.rows_sha256)[:22], run.moment.isoformat()
        samples = [_sample(run, row) for row in run.rows]
        lower = [figure.name for figure in run.figures if samples and not figure.higher_is_better]
        more = {"source": source, "lower_is_better": lower}
        about = {"model": run.model, "metadata": run.provenance() | {name: value for name, value in more.items() if value}}
        about |= {"dataset": {"name": dataset or run.task, "samples": len({sample["id"] for sample in samples})}}
        about |= {"config": {"epochs": max((sample["epoch"] for sample in samples), default=1)}}
        content = {
            "version": 2,
            "status": "success",
            "eval": {"eval_id": key, "run_id": key, "task_id": key, "created": date, "task": run.task} | about,
            "results": {
                "total_samples": len(samples),
                "completed_samples": len(samples),
                "scores": [_score(figure, "mean" if samples else figure.name) for figure in run.figures],
            },
            "samples": samples,
        }
        yield f"{date.replace(':', '-')}_{folder_named(run.task)}_{key}.json", to_json(content) + "\n"


def _score(figure: ExportedFigure, metric: str) -> dict[str, Any]:
    about = {"interval": plain_values(figure.interval), "is_lower_bound": figure.is_lower_bound}
    metrics = {metric: {"name": metric, "value": figure.value, "metadata": about}}
    metrics |= {"stderr": {"name": "stderr", "value": figure.error}} if figure.error is not None else {}
    return {"name": figure.name, "scorer": figure.name, "metrics": metrics}


def _sample(run: ExportedRun, row: Mapping[str, Any]) -> dict[str, Any]:
    # An id is unique within a subset only.
    item = row["item"] if row["subset"] in ("", run.task) else f"{row['subset']}/{row['item']}"
    about = {name: row[name] for name in ("item", "subset", "cluster", "prompt", "content")}
    scores = {run.figures[0].name: {"value": row["score"]}}
    return {"id": item, "epoch": row["sample"] + 1, "input": "", "target": "", "scores": scores, "metadata": about}
