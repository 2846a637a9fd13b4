"""Runs of HELM, in the form of version 0.5."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge.base.errors import InputError
from lmgauge.tasks.items.table import ItemScores

NAME = "mmlu:subject=philosophy,method=multiple_choice_joint,model=openai_gpt2"


def entry(
    name: str, scores: dict[str, float | None], split: str = "test", trial: int = 0, changed: str = ""
) -> dict[str, Any]:
    """What HELM says of an instance in a trial: statistics of one metric class."""
    stats = [
        {"name": {"name": one, "split": split}} | ({"count": 0, "sum": 0} if value is None else {"count": 1, "mean": value})
        for one, value in scores.items()
    ]
    perturbation = {"perturbation": {"name": changed, "computed_on": "perturbed"}} if changed else {}
    return {"instance_id": name, "train_trial_index": trial, "stats": stats} | perturbation


def imported(folder: Path, *entries: dict[str, Any], score: str = "exact_match", **options: Any) -> ItemScores:
    """Scores of a run in a folder that is called as HELM calls it."""
    path = folder / NAME / "per_instance_stats.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(entries, indent=2), encoding="utf-8")
    run = lmgauge.tasks.import_items(path, folder / "run", score=score, **options)
    assert isinstance(run, ItemScores)
    return run


def test_instances(tmp_path: Path) -> None:
    """Each class of metrics writes an entry of its own."""
    run = imported(
        tmp_path,
        *(entry("id147", {"num_references": 4.0, "exact_match": 1.0}), entry("id11", {"exact_match": 0.0}, "valid")),
        *(entry("id147", {"max_prob": 0.9}), entry("id11", {"max_prob": 0.5}, "valid")),
    )
    task = "mmlu:subject=philosophy,method=multiple_choice_joint"
    assert (run.item, run.score.tolist()) == (["id147", "id11"], [1.0, 0.0])
    assert run.subset == [f"{task},split=test", f"{task},split=valid"]
    assert (run.origin.model, run.origin.program) == ("openai_gpt2", "helm")


def test_trials_and_perturbations(tmp_path: Path) -> None:
    run = imported(
        tmp_path,
        *(entry("id1", {"exact_match": 1.0}, trial=trial) for trial in range(2)),
        entry("id1", {"exact_match": 0.0}, changed="typos"),
    )
    assert (run.sample.tolist(), [subset[-18:] for subset in run.subset][2]) == ([0, 1, 0], "perturbation=typos")
    with pytest.raises(InputError, match="is scored twice"):
        imported(tmp_path, *[entry("id1", {"exact_match": 1.0})] * 2)
    run = imported(tmp_path, entry("id1", {"exact_match": None}), entry("id2", {"exact_match": 1.0}))
    assert any("attempts without a score, left out: 1, such as " in note for note in run.origin.notes)


def test_what_stands_beside(tmp_path: Path) -> None:
    folder = tmp_path / NAME
    folder.mkdir()
    spec = {"name": NAME, "adapter_spec": {"model": "openai/gpt2", "num_train_trials": 1}}
    (folder / "run_spec.json").write_text(json.dumps(spec), encoding="utf-8")
    instance = {"input": {"text": "Why?"}, "split": "test", "id": "id1", "sub_split": "ethics"}
    state = {"instance": instance, "train_trial_index": 0, "request": {"prompt": "Question: Why?\nAnswer:"}}
    (folder / "scenario_state.json").write_text(json.dumps({"request_states": [state]}), encoding="utf-8")
    run = imported(tmp_path, entry("id1", {"exact_match": 1.0}), document="sub_split")
    assert (run.origin.model, run.cluster, len(run.prompt[0])) == ("openai/gpt2", ["ethics"], 64)
