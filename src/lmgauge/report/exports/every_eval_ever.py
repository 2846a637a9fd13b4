"""Results in the schema of Every Eval Ever, 0.3.0 (github.com/evaleval/every_eval_ever), filed as its datastore is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from lmgauge.base.errors import UsageError
from lmgauge.base.files import digest
from lmgauge.base.json_text import to_json
from lmgauge.base.version import __version__
from lmgauge.report.exports import ExportedFigure, ExportedRun

_UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}


def every_eval_ever(
    runs: Sequence[ExportedRun], *, organization: str, relationship: str, dataset: str = "", source: str = ""
) -> Iterator[tuple[str, str]]:
    """Records of Every Eval Ever: the figures of each run, and a line for each scored item."""
    data = {"source_type": "hf_dataset", "hf_repo": dataset} if dataset else {"source_type": "other"}
    origin: dict[str, Any] = {
        "source_name": "lmgauge",
        "source_type": "evaluation_run",
        "source_organization_name": organization,
    }
    origin |= {"evaluator_relationship": relationship} | ({"additional_details": {"url": source}} if source else {})
    for run in runs:
        if "/" not in run.model or any(math.isinf(figure.value) for figure in run.figures):
            raise UsageError(f"{run.model}: Every Eval Ever needs finite figures, and who made the model: --names BY/MODEL")
        stamp = str(int(run.moment.timestamp()))
        shared = {"schema_version": "0.3.0", "evaluation_id": f"{run.task}/{run.model}/{stamp}"}
        key = UUID(digest(shared, run.rows_sha256, [figure.name for figure in run.figures])[:32], version=4)
        parts = (run.task, *run.model.split("/", 1))
        path = "/".join(["data", *(re.sub(r"[^\w.-]", "_", part).rstrip(".") or "_" for part in parts), str(key)])
        version = __version__ if run.program == "lmgauge" else "unknown"
        record = shared | {
            "retrieved_timestamp": stamp,
            "source_metadata": origin,
            "eval_library": {"name": run.program, "version": version, "additional_details": run.provenance()},
            "model_info": {"name": run.model, "id": run.model, "additional_details": _UNKNOWN},
            "evaluation_results": [_result(run.task, figure, data) for figure in run.figures],
        }
        if run.rows:
            lines = [to_json(shared | _sample(run, row), indent=None) for row in run.rows]
            files = {"format": "jsonl", "file_path": f"{path}_samples.jsonl", "total_rows": len(lines)}
            record["detailed_evaluation_results"] = files
            yield f"{path}_samples.jsonl", "".join(f"{line}\n" for line in lines)
        yield f"{path}.json", to_json(record) + "\n"


def _result(task: str, figure: ExportedFigure, data: dict[str, str]) -> dict[str, Any]:
    own, highest = figure.interval, "Infinity" if math.isinf(figure.highest) else figure.highest
    metric: dict[str, Any] = {
        "metric_id": figure.name,
        "metric_name": figure.title,
        "lower_is_better": not figure.higher_is_better,
    }
    details: dict[str, Any] = {"score": figure.value, "details": {"is_lower_bound": str(figure.is_lower_bound).lower()}}
    if own is not None:
        ends = {"lower": own.low, "upper": own.high, "confidence_level": own.level, "method": own.method}
        details["uncertainty"] = {"confidence_interval": ends, "num_samples": own.units}
    metric |= {"score_type": "continuous", "min_score": figure.lowest, "max_score": highest}
    named = {"evaluation_result_id": figure.name, "evaluation_name": task, "source_data": {"dataset_name": task} | data}
    return named | {"metric_config": metric, "score_details": details}


def _sample(run: ExportedRun, row: Mapping[str, Any]) -> dict[str, Any]:
    # Of what was asked and answered only digests are kept.
    (figure,) = run.figures
    best = figure.highest if figure.higher_is_better else figure.lowest
    named = {"model_id": run.model, "evaluation_name": run.task, "evaluation_result_id": figure.name}
    unknown = {"input": {"raw": "", "reference": []}, "output": {"raw": []}, "answer_attribution": []}
    return {
        **(named | {"sample_id": row["item"], "interaction_type": "single_turn"} | unknown),
        "evaluation": {"score": row["score"], "is_correct": row["score"] == best},
        "metadata": {name: str(row[name]) for name in ("subset", "cluster", "sample", "prompt", "content")},
    }
