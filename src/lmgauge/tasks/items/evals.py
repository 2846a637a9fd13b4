"""Results of promptfoo, and logs of OpenAI evals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lmgauge.base.files import digest
from lmgauge.scores.imports.log import LogFile
from lmgauge.tasks.items.logs import LoggedItem

_FAILED = 2  # of `failureReason` in promptfoo: the provider failed, so that there was nothing to score


def promptfoo(file: LogFile) -> Iterator[LoggedItem]:
    """Read results of promptfoo, .json or .jsonl."""
    begins = re.match(rb'\s*\{(?:\s*"evalId"|.*"(?:testIdx|promptIdx)"\s*:)', file.head, re.DOTALL)
    results = list(_results(file)) if begins else []
    several = len({result["prompt"]["label"] for _, result in results}) > 1
    for where, result in results:
        prompt, provider, given = result["prompt"], result["provider"], result.get("vars", {})
        model = provider if isinstance(provider, str) else provider.get("label") or provider["id"]
        scores = {"success": result["success"], "score": result["score"]} | result.get("namedScores", {})
        scores = {} if result.get("failureReason") == _FAILED else scores
        about = {"prompt": digest([prompt["raw"]]), "content": digest([given])}
        about["model"] = f"{model}, {prompt['label']}" if several else model
        # Where --id names a variable, tests with the same value are attempts at one item.
        yield LoggedItem(where, result["testIdx"], scores, given | result, sample=result["testIdx"], **about)


def _results(file: LogFile) -> Iterator[tuple[str, Any]]:
    # JSON lines are a result each; an object has them in a list, or in an object with that.
    for where, value in file.values():
        inner = value.get("results", [value])
        for number, result in enumerate(inner["results"] if isinstance(inner, dict) else inner, 1):
            yield where if result is value else f"{where}, result {number}", result


def openai_evals(file: LogFile) -> Iterator[LoggedItem]:
    """Read a log of OpenAI evals: JSON lines, the specification first, then events."""
    if not re.match(rb'\s*\{\s*"spec"\s*:\s*\{', file.head):
        return
    spec: dict[str, Any] = {}
    prompts: dict[str, str] = {}  # what the first sampling of a sample asked
    for where, event in file.values():
        spec = event.get("spec", spec)
        data, sample = event.get("data", {}), event.get("sample_id")
        if event.get("type") == "sampling":
            prompts.setdefault(sample, digest([data["prompt"]]))
        elif scores := {name: value for name, value in data.items() if isinstance(value, (bool, int, float))}:
            model, subset = [*spec.get("completion_fns", []), spec.get("model_name", "")][0], spec.get("eval_name", "")
            yield LoggedItem(where, sample, scores, data | event, 0, subset, None, prompts.get(sample, ""), "", model)
