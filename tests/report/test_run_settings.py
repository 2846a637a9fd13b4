"""Run folders: the same bytes whether a run is started in a shell or in Python."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import ok

import lmgauge
from lmgauge import Corpus, ScoringOptions, UsageError
from lmgauge.evaluation.run_folder import run_settings
from lmgauge.evaluation.runs import EVALUATION_FILE, SCORES_FILE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models and two texts, one of them with a reserved token."""
    path = tmp_path_factory.mktemp("runs")
    lines = [f"{a} {b} c {d}" for a in "ab" for b in "cde" for d in "fgh"]
    (path / "one.txt").write_text("\n".join([*lines, "a <unk> c"]) + "\n")
    (path / "two.jsonl").write_text("".join(json.dumps({"line": line[::-1], "part": line[0]}) + "\n" for line in lines))
    for kind in ("modified-kneser-ney", "laplace"):
        lmgauge.train(kind, path / "one.txt", order=2, reserved="escape").save(path / kind)
    return path


def files_of(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


SCORING = [field.name for field in fields(ScoringOptions)]


@pytest.mark.parametrize(
    ("shell", "python"),
    [
        ([], {}),
        (["--by", "group"], {"by_group": True}),
        (["--columns", "entropy,rank", "--threads", "1"], {"columns": ["entropy", "rank"], "threads": 1}),
        (["--reserved", "unk"], {"reserved": "unk"}),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_both_doors_write_the_same_bytes(folder: Path, tmp_path: Path, shell: list[str], python: dict[str, Any]) -> None:
    model, text = folder / "modified-kneser-ney", folder / "one.txt"
    ok("eval", "-m", model, text, "-o", tmp_path / "shell", *shell)
    lmgauge.evaluate(model, text, output=tmp_path / "python", **python)
    assert files_of(tmp_path / "shell") == files_of(tmp_path / "python")
    assert set(files_of(tmp_path / "shell")) == {EVALUATION_FILE, SCORES_FILE}


def test_so_they_do_for_several_models_and_records(folder: Path, tmp_path: Path) -> None:
    models, text = [folder / "modified-kneser-ney", folder / "laplace"], folder / "two.jsonl"
    named = [argument for model in models for argument in ("-m", model)]
    ok("eval", *named, text, "--field", "line", "--group", "part", "--by", "group", "-o", tmp_path / "shell")
    corpus = Corpus.from_files(text, field="line", group="part")
    lmgauge.evaluate(models, corpus, by_group=True, output=tmp_path / "python")
    assert files_of(tmp_path / "shell") == files_of(tmp_path / "python")
    assert len(files_of(tmp_path / "python")) == 4


def test_all_that_was_chosen_is_recorded(folder: Path, tmp_path: Path) -> None:
    lmgauge.evaluate(folder / "laplace", folder / "one.txt", output=tmp_path / "run", columns=("rank",))
    settings = json.loads((tmp_path / "run" / EVALUATION_FILE).read_text())["settings"]
    assert list(settings) == ["text", "by", "reserved", "columns", *SCORING]
    assert (settings["columns"], settings["text"]["paths"]) == (["rank"], [str(folder / "one.txt")])


def test_a_model_s_own_options_are_what_it_scored_with() -> None:
    class Own:
        options = ScoringOptions(context=8)

    shared: dict[str, Any] = {"by_group": False, "reserved": None, "columns": ()}
    given = ScoringOptions(context=4)
    assert run_settings(Own(), {}, **shared, scoring=given)["context"] == 8
    assert run_settings(object(), {}, **shared, scoring=given)["context"] == 4


def test_columns_need_a_folder(folder: Path) -> None:
    with pytest.raises(UsageError, match="name the folder it goes to with output"):
        lmgauge.evaluate(folder / "laplace", folder / "one.txt", columns=["rank"])
