"""Samples of lm-evaluation-harness, in the form of version 0.4.9."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks.items.table import ItemScores

DATE = "2026-01-21T03-44-18.458309"


def sample(number: int, chosen: str = "none", **changes: Any) -> dict[str, Any]:
    """A sample of a task that generates text, scored 1 for odd numbers."""
    doc = {"problem": f"What is {number} + 1?", "level": f"Level {number % 2}", "type": "Algebra"}
    prompt = f"Problem: {doc['problem']}\n\nSolution:"
    request = {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["\n\n"], "do_sample": False}}}
    digests = {"doc": json.dumps(doc, indent=2), "prompt": prompt, "target": str(number + 1)}
    return {
        "doc_id": number,
        "doc": doc,
        "target": str(number + 1),
        "arguments": request,
        "resps": [[" 1."]],
        "filtered_resps": [" 1."],
        "filter": chosen,
        "metrics": ["exact_match"],
        **{f"{name}_hash": hashlib.sha256(text.encode()).hexdigest() for name, text in digests.items()},
        "exact_match": float(number % 2),
    } | changes


def written(folder: Path, *samples: dict[str, Any], task: str = "gsm8k", date: str = DATE) -> Path:
    """The path of a log, in the folder of its model."""
    path = folder / "EleutherAI__pythia-160m" / f"samples_{task}_{date}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in samples), encoding="utf-8")
    return path


def imported(paths: Path | list[Path], score: str = "exact_match", **options: Any) -> ItemScores:
    """Scores of logs."""
    first = paths if isinstance(paths, Path) else paths[0]
    run = lmgauge.tasks.import_items(paths, first.parent / "run", score=score, **options)
    assert isinstance(run, ItemScores)
    return run


def test_samples(tmp_path: Path) -> None:
    run = imported(written(tmp_path, *map(sample, range(4))), document="level")
    assert (run.item, run.score.tolist(), run.subset) == (["0", "1", "2", "3"], [0.0, 1.0, 0.0, 1.0], ["gsm8k"] * 4)
    assert run.cluster == ["Level 0", "Level 1"] * 2
    assert (run.prompt[1], run.content[1]) == (sample(1)["prompt_hash"], sample(1)["doc_hash"])
    assert (run.origin.model, run.origin.score, run.origin.program) == (
        *("EleutherAI/pythia-160m", "exact_match", "lm-evaluation-harness"),
    )


def test_filters_are_told_apart(tmp_path: Path) -> None:
    filters = "strict-match", "flexible-extract"
    path = written(tmp_path, *(sample(i, name, exact_match=float(name < "s")) for name in filters for i in range(2)))
    assert imported(path, "exact_match,strict-match").mean == 0.0
    assert imported(path, "exact_match,flexible-extract").mean == 1.0
    with pytest.raises(
        UsageError, match="no score 'exact_match'; it has 'exact_match,strict-match', 'exact_match,flexible-extract'"
    ):
        imported(path)


def test_what_the_results_say(tmp_path: Path) -> None:
    path = written(tmp_path, sample(0), sample(1), task="ter_task")
    stated = {
        "model_name": "EleutherAI/pythia-160m-deduped",
        "higher_is_better": {"ter_task": {"exact_match": False}},
        "n-samples": {"ter_task": {"original": 9, "effective": 2}},
    }
    results = path.with_name(f"results_{DATE}.json")
    results.write_text(json.dumps(stated), encoding="utf-8")
    origin = imported(path).origin
    assert (origin.model, origin.higher_is_better) == ("EleutherAI/pythia-160m-deduped", False)
    results.write_text(json.dumps(stated | {"n-samples": {"ter_task": {"effective": 9}}}), encoding="utf-8")
    with pytest.raises(InputError, match=r"has 2 of the 9 documents of results_.*json: is it cut off\?"):
        imported(path)


def test_repeats_are_files_and_other_items_are_refused(tmp_path: Path) -> None:
    first, later = written(tmp_path, sample(0)), "2026-02-01T00-00-00.000000"
    run = imported([first, written(tmp_path, sample(0, exact_match=1.0, prompt_hash="f" * 64), date=later)])
    assert (run.item, run.sample.tolist(), run.mean) == (["0", "0"], [0, 1], 0.5)
    assert any("attempts in other prompts than the first at the item: 1, such as" in note for note in run.origin.notes)
    with pytest.raises(InputError, match=r"\(item '0'\): has another text than the item that was scored"):
        imported([first, written(tmp_path, sample(0, doc_hash="f" * 64), date=later)])
    with pytest.raises(InputError, match=r"line 2 \(item '0'\): is scored twice"):
        imported(written(tmp_path, sample(0), sample(0)))


def test_sums_over_a_corpus_are_no_scores_of_items(tmp_path: Path) -> None:
    path = written(tmp_path, sample(0, metrics=["bleu"], bleu=["1", "2"]))
    with pytest.raises(InputError, match=r"\(item '0', bleu .*\): is not a number"):
        imported(path, "bleu")


def test_without_a_score_the_names_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, sample(0, metrics=["exact_match", "f1"], f1=1.0))
    with pytest.raises(UsageError, match=r"no log-probabilities of texts, .* name one with --score \(exact_match, f1\)"):
        lmgauge.import_scores(path, tmp_path / "run")


@pytest.mark.parametrize(
    ("folder", "model"),
    [("results/model-a", "model-a"), ("org__m", "org/m"), ("2026-01-21", "samples_x"), ("..", "samples_x")],
)
def test_a_folder_of_any_name_is_called_as_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, model: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    path = Path(folder, "samples_x.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(sample(0)), encoding="utf-8")
    assert imported(path).origin.model == model


def test_the_same_items_in_files_of_other_names_are_noted(tmp_path: Path) -> None:
    paths = [written(tmp_path, sample(0), sample(1), task=task) for task in ("gsm_a", "gsm_b")]
    (note,) = imported(paths).origin.notes
    assert note.startswith("the same ids count as 2 subsets: if they are one task, give it one name; lm-evaluation-harness")
    paths[1] = written(tmp_path, sample(0), sample(1, doc_hash="f" * 64), task="arc")  # of --limit 2
    assert imported(paths).origin.notes == ()
