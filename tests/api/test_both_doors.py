"""The same bytes whether something is done in a shell or in Python: run folders, rows, and what --json prints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import TERMINAL, ok, run

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import UsageError
from lmgauge.base.json_text import to_json
from lmgauge.evaluation.runs import EVALUATION_FILE, SCORES_FILE, run_settings
from lmgauge.settings import Outputs, ScoringOptions

KN, LAPLACE = "modified-kneser-ney", "laplace"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, their runs, and two texts, one of them with a reserved token."""
    path = tmp_path_factory.mktemp("runs")
    lines = [f"{a} {b} c {d}" for a in "ab" for b in "cde" for d in "fgh"]
    (path / "one.txt").write_text("\n".join([*lines, "a <unk> c"]) + "\n")
    (path / "two.jsonl").write_text("".join(json.dumps({"line": line[::-1], "part": line[0]}) + "\n" for line in lines))
    for kind in (KN, LAPLACE, "kneser-ney", "witten-bell"):
        lmgauge.train(kind, path / "one.txt", order=2, reserved="escape").save(path / kind)  # type: ignore[arg-type]
        lmgauge.evaluate(path / kind, path / "one.txt", output=path / f"run-{kind}")
    return path


def files_of(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


SCORING = [field.name for field in fields(ScoringOptions) if field.name != "reserved"]


@pytest.mark.parametrize(
    ("shell", "python"),
    [
        ([], {}),
        (["--by-group"], {"by_group": True}),
        (["--threads", "1"], {"threads": 1}),
        (["--reserved", "unk"], {"scoring": ScoringOptions(reserved="unk")}),
        (["--document", "segment"], {"document": "segment"}),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_both_doors_write_the_same_bytes(folder: Path, tmp_path: Path, shell: list[str], python: dict[str, Any]) -> None:
    model, text = folder / KN, folder / "one.txt"
    printed = ok("eval", "-m", model, text, "-o", tmp_path / "shell", "--json", *shell).stdout
    result = lmgauge.evaluate(model, text, output=tmp_path / "python", **python)
    assert files_of(tmp_path / "shell") == files_of(tmp_path / "python")
    assert set(files_of(tmp_path / "shell")) == {EVALUATION_FILE, SCORES_FILE}
    assert printed == to_json(result.to_dict() if python.get("by_group") else [result.to_dict()]) + "\n"


def test_so_they_do_for_several_models_and_records(folder: Path, tmp_path: Path) -> None:
    models, text = [folder / KN, folder / LAPLACE], folder / "two.jsonl"
    named = [argument for model in models for argument in ("-m", model)]
    ok("eval", *named, text, "--field", "line", "--group", "part", "--by-group", "-o", tmp_path / "shell")
    corpus = Corpus.from_files(text, field="line", group="part")
    lmgauge.evaluate(models, corpus, by_group=True, output=tmp_path / "python")
    assert files_of(tmp_path / "shell") == files_of(tmp_path / "python")
    assert len(files_of(tmp_path / "python")) == 4


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl"])
def test_rows_and_columns_are_the_same_too(folder: Path, tmp_path: Path, suffix: str) -> None:
    models, text = [folder / KN, folder / LAPLACE], folder / "two.jsonl"
    named = [argument for model in models for argument in ("-m", model)]
    options = ["--columns", "entropy,rank", "--field", "line", "--id", "part"]
    (tmp_path / "shell").mkdir()
    (tmp_path / "python").mkdir()
    rows = [f"segments{suffix}", f"tokens{suffix}"]
    written = ["--per-segment", tmp_path / "shell" / rows[0], "--per-token", tmp_path / "shell" / rows[1]]
    ok("eval", *named, text, *options, *written, "-o", tmp_path / "shell" / "run")
    corpus = Corpus.from_files(text, field="line", id="part")
    segments, tokens = (tmp_path / "python" / name for name in rows)
    outputs = Outputs(tmp_path / "python" / "run", columns=("entropy", "rank"), per_segment=segments, per_token=tokens)
    lmgauge.evaluate(models, corpus, output=outputs)
    assert files_of(tmp_path / "shell") == files_of(tmp_path / "python")
    assert len(files_of(tmp_path / "python")) == 6


PRINTED: dict[str, tuple[Callable[[Path], list[object]], Callable[[Path], Any]]] = {
    "compare": (
        lambda f: ["compare", f / f"run-{KN}", f / f"run-{LAPLACE}", "--train", f / "one.txt"],
        lambda f: lmgauge.compare([f / f"run-{KN}", f / f"run-{LAPLACE}"], train=f / "one.txt").to_dict(),
    ),
    "compare recipes": (
        lambda f: [
            "compare",
            *("--recipe", f"kn={f / f'run-{KN}'},{f / 'run-kneser-ney'}"),
            *("--recipe", f"others={f / f'run-{LAPLACE}'},{f / 'run-witten-bell'}"),
        ],
        lambda f: [
            item.to_dict()
            for item in lmgauge.compare_recipes(
                {
                    "kn": [f / f"run-{KN}", f / "run-kneser-ney"],
                    "others": [f / f"run-{LAPLACE}", f / "run-witten-bell"],
                }
            )
        ],
    ),
    "diagnose": (
        lambda f: ["diagnose", f / f"run-{KN}", "-m", f / KN, "--train", f / "one.txt", "--seed", 7],
        lambda f: lmgauge.diagnose(f / f"run-{KN}", model=f / KN, train=f / "one.txt", seed=7).to_dict(),
    ),
    "divergence": (
        lambda f: ["divergence", f / KN, f / LAPLACE, f / "one.txt", "--exhaustive", "--top-k", "2", "--reserved", "unk"],
        lambda f: [
            item.to_dict()
            for item in lmgauge.divergence(
                f / KN, [f / LAPLACE], f / "one.txt", events=None, top_k=2, scoring=ScoringOptions(reserved="unk")
            )
        ],
    ),
    "membership": (
        lambda f: ["membership", f / KN, f / "one.txt", "--control", f / "two.jsonl", "--field", "line", "--k", 0.3],
        lambda f: lmgauge.membership(
            f / KN, f / "one.txt", Corpus.from_files(f / "two.jsonl", field="line"), k=0.3
        ).to_dict(),
    ),
    "scores": (
        lambda f: ["eval", "--scores", f / f"run-{KN}" / SCORES_FILE, f / "one.txt"],
        lambda f: [lmgauge.evaluate_scores(f / f"run-{KN}" / SCORES_FILE, f / "one.txt").to_dict()],
    ),
    "a run folder": (
        lambda f: ["eval", "--scores", f / f"run-{KN}"],
        lambda f: [lmgauge.evaluate(f / KN, f / "one.txt").to_dict()],
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_both_doors_say_the_same(folder: Path, name: str) -> None:
    shell, python = PRINTED[name]
    assert ok(*shell(folder), "--json").stdout == to_json(python(folder)) + "\n"


@pytest.mark.parametrize("weights", [None, (0.25, 0.75)])
def test_both_doors_mix_the_same(folder: Path, tmp_path: Path, weights: tuple[float, ...] | None) -> None:
    models, text = [folder / KN, folder / LAPLACE], folder / "one.txt"
    named = [argument for model in models for argument in ("-m", model)]
    given = [] if weights is None else ["--weights", ",".join(map(str, weights))]
    ok("mix", *named, text, *given, "-o", tmp_path / "shell")
    lmgauge.mix(models, text, weights=weights, output=tmp_path / "python")
    assert files_of(tmp_path / "shell") == files_of(tmp_path / "python")
    assert files_of(tmp_path / "shell")


@pytest.mark.parametrize(
    ("shell", "python"),
    [
        ([KN, "--order", "2"], {"kind": KN, "order": 2}),
        (
            ["witten-bell", "--order", "3", "--back-off", "--cutoffs", "0,0,1", "--no-eos", "--vocabulary", "closed"],
            {"kind": "witten-bell", "interpolate": False, "cutoffs": (0, 0, 1), "eos": False, "vocabulary": "closed"},
        ),
        (["lidstone", "--k", "0.5", "--min-count", "2"], {"kind": "lidstone", "k": 0.5, "min_count": 2}),
        (
            ["laplace", "--tokenizer", "character", "--context", "stream"],
            {"kind": LAPLACE, "tokenizer": "character", "context": "stream"},
        ),
    ],
    ids=["plain", "back-off", "lidstone", "characters"],
)
def test_both_doors_train_the_same(folder: Path, tmp_path: Path, shell: list[str], python: dict[str, Any]) -> None:
    text = folder / "one.txt"
    ok("train", *shell, "--reserved", "escape", text, "-o", tmp_path / "shell")
    lmgauge.train(texts=text, reserved="escape", **python).save(tmp_path / "python")
    assert files_of(tmp_path / "shell") == files_of(tmp_path / "python")


def test_both_doors_train_the_same_network(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = folder / "one.txt"
    sizes = {"hidden_size": 8, "embedding_size": 8, "epochs": 1}
    options = [part for name, value in sizes.items() for part in (f"--{name.replace('_', '-')}", value)]
    ok("train", "rnn", *options, "--reserved", "escape", "--threads", 1, text, "-o", tmp_path / "shell")
    lmgauge.train_neural("rnn", text, output=tmp_path / "python", reserved="escape", threads=1, **sizes)  # type: ignore[arg-type]
    shell, python = files_of(tmp_path / "shell"), files_of(tmp_path / "python")
    assert shell.keys() == python.keys()
    for files in (shell, python):  # the one thing that may differ is how long it took
        files["config.json"] = re.sub(rb'"seconds": [0-9.]+', b"", files["config.json"])
    assert [name for name in shell if shell[name] != python[name]] == []


def test_all_that_was_chosen_is_recorded(folder: Path, tmp_path: Path) -> None:
    outputs = Outputs(tmp_path / "run", columns=("rank",))
    lmgauge.evaluate(folder / LAPLACE, folder / "one.txt", output=outputs, scoring=ScoringOptions(reserved="escape"))
    settings = json.loads((tmp_path / "run" / EVALUATION_FILE).read_text())["settings"]
    assert list(settings) == ["text", "by", "reserved", "columns", *SCORING]
    assert (settings["columns"], settings["text"]["paths"]) == (["rank"], [str(folder / "one.txt")])
    assert settings["reserved"] == "escape"


def test_a_model_s_own_options_are_what_it_scored_with() -> None:
    class Other(lmgauge.CustomModel):
        """Follows no options."""

    class Own(Other):
        options = ScoringOptions(context=8)

    shared: dict[str, Any] = {"by_group": False, "columns": ()}
    given = ScoringOptions(context=4)
    assert run_settings(Own([]), {}, **shared, scoring=given)["context"] == 8
    assert run_settings(Other([]), {}, **shared, scoring=given)["context"] == 4


def test_columns_need_a_place(folder: Path) -> None:
    with pytest.raises(UsageError, match="name where they go"):
        Outputs(columns=["rank"])
    with pytest.raises(UsageError, match="would replace"):
        lmgauge.evaluate(folder / LAPLACE, folder / "one.txt", output=folder / LAPLACE)


@pytest.mark.parametrize("name", ["audit", "compare", "divergence", "eval", "info", "overlap", "split"])
def test_a_result_prints_as_the_command_does(folder: Path, tmp_path: Path, name: str) -> None:
    text, models = folder / "one.txt", [folder / LAPLACE, folder / "witten-bell"]
    runs, out = [folder / f"run-{LAPLACE}", folder / "run-witten-bell"], tmp_path / "out"
    ran: dict[str, tuple[list[object], Callable[[], object]]] = {
        "audit": (["audit", runs[0]], lambda: lmgauge.audit_run(runs[0])),
        "compare": (["compare", *runs, "--details", "-v"], lambda: lmgauge.compare(runs)),
        "divergence": (
            ["divergence", *models, text, "--reserved", "unk", "-v"],
            lambda: lmgauge.divergence(*models, text, scoring=ScoringOptions(reserved="unk")),
        ),
        "eval": (["eval", "-m", models[0], "-m", models[1], text, "-v"], lambda: lmgauge.evaluate(models, text)),
        "info": (["info", runs[0]], lambda: lmgauge.info(runs[0])),
        "overlap": (["overlap", text, text, "--ngram", 2], lambda: lmgauge.overlap(text, text, n=2)),
        "split": (["split", text, "-o", out], lambda: lmgauge.split(text, out)),
    }
    shell, python = ran[name]
    assert run(*shell, env=TERMINAL).stdout == f"{python()}\n"
