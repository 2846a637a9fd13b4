"""Results of promptfoo (version 3 of its output), and logs of OpenAI evals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge.tasks.items.table import ItemRuns, ItemScores


def result(
    test: int, score: float, provider: str = "openai:gpt-4", prompt: str = "{{question}}", **changes: Any
) -> dict[str, Any]:
    """A result of promptfoo."""
    given = {"question": f"What is {test} + 1?", "topic": "sums"}
    return {
        "cost": 0,
        "namedScores": {"brevity": 1},
        "promptIdx": 0,
        "testIdx": test,
        "score": score,
        "success": score == 1,
        "prompt": {"raw": prompt.replace("{{question}}", given["question"]), "label": prompt},
        "failureReason": 0,
        "provider": {"id": provider, "label": ""},
        "vars": given,
    } | changes


@pytest.mark.parametrize("form", ["new", "old", "lines"])
def test_results_of_promptfoo(tmp_path: Path, form: str) -> None:
    results = [result(0, 1), result(1, 0.5), result(2, 0, failureReason=2)]
    path = tmp_path / "results.jsonl"
    whole: Any = (
        {"evalId": "eval-x", "results": {"version": 3, "results": results}} if form == "new" else {"results": results}
    )
    lines = results if form == "lines" else [whole]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines), encoding="utf-8")
    run = lmgauge.tasks.import_items(path, tmp_path / "run", score="score", document="topic")
    assert isinstance(run, ItemScores)
    assert (run.item, run.score.tolist(), run.cluster) == (["0", "1"], [1.0, 0.5], ["sums", "sums"])
    assert (run.origin.model, run.origin.program) == ("openai:gpt-4", "promptfoo")
    assert "attempts without a score, left out: 1, such as " in run.origin.notes[0]
    passed = lmgauge.tasks.import_items(path, tmp_path / "run", score="success")
    assert passed.to_dict()["mean"] == 0.5


def test_providers_and_prompts_are_models_each(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results = [
        result(i, 1, name, prompt) for i in range(2) for name in ("a", "b") for prompt in ("{{question}}", "Q: {{question}}")
    ]
    path.write_text(json.dumps({"results": {"results": results}}), encoding="utf-8")
    runs = lmgauge.tasks.import_items(path, tmp_path / "runs", score="score")
    assert isinstance(runs, ItemRuns)
    assert [run.origin.model for run in runs] == [
        "a, {{question}}",
        "a, Q: {{question}}",
        "b, {{question}}",
        "b, Q: {{question}}",
    ]
    assert runs[0].content == runs[1].content
    assert runs[0].prompt != runs[1].prompt
    repeated = [result(i, i, vars={"question": "same"}, provider="a") for i in range(2)]
    path.write_text(json.dumps({"results": {"results": repeated}}), encoding="utf-8")
    run = lmgauge.tasks.import_items(path, tmp_path / "run", score="score", id="question")
    assert isinstance(run, ItemScores)
    assert (run.item, run.sample.tolist()) == (["same", "same"], [0, 1])


def test_a_log_of_openai_evals(tmp_path: Path) -> None:
    spec = {"completion_fns": ["gpt-3.5-turbo"], "eval_name": "test-match.s1.simple-v0", "split": "s1", "seed": 20220722}
    events: list[dict[str, Any]] = [{"spec": spec}, {"final_report": {"accuracy": 0.5}}]
    for number, correct in enumerate((True, False)):
        about = {"run_id": "230417220821DPM75QNS", "sample_id": f"test-match.s1.{number}"}
        events.append(about | {"type": "sampling", "data": {"prompt": f"User: {number}", "sampled": "x"}})
        events.append(about | {"type": "match", "data": {"correct": correct, "expected": "x", "picked": None}})
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in events), encoding="utf-8")
    run = lmgauge.tasks.import_items(path, tmp_path / "run", score="correct")
    assert isinstance(run, ItemScores)
    assert (run.item, run.mean) == (["test-match.s1.0", "test-match.s1.1"], 0.5)
    assert ({*run.subset}, run.origin.model) == ({"test-match.s1.simple-v0"}, "gpt-3.5-turbo")
    assert len({*run.prompt}) == 2
