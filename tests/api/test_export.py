"""Runs exported: figures as they are, best in bold where that is known, the same bytes each time, mistakes in words."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import ok, refused

import lmgauge
from lmgauge.base.errors import UsageError
from lmgauge.tasks.items.table import ItemScores, ItemsOrigin

HOSTILE = "=[evil]|$x_{1}%&#~^\\\"',\n\x1b[31m-é模"
"""A name with what forms of files, spreadsheets and terminals take for their own signs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export")
    lines = [f"{a} {b} {c}" for a in "ab" for b in "abc" for c in "cd"] * 2
    train, test = (lmgauge.Corpus.from_strings(part) for part in (lines, [*lines[3:], "a d e"]))
    models = {f"wb{order}": lmgauge.train("witten-bell", train, order=order) for order in (1, 2, 3)}
    models["kn2"] = lmgauge.train("kneser-ney", train, order=2)
    models["small"] = lmgauge.train("witten-bell", train, order=1, words=["a", "b", "c"])
    lmgauge.evaluate(models, test, output=path)
    items(HOSTILE, [1, 1, 0, 1, 0, 1, 1, 0]).write(path / "items")
    for name in ("items/items.parquet", *(f"{model}/evaluation.json" for model in models)):
        os.utime(path / name, (1_700_000_000, 1_700_000_000))
    return path


def items(model: str, scores: list[float], cluster: str = "") -> ItemScores:
    """Scores of items, two of which are of each cluster, where these are asked for."""
    count = len(scores)
    origin = ItemsOrigin(model, "acc", "lm-evaluation-harness")
    clusters = [cluster and f"{cluster}{i // 2}" for i in range(count)]
    names, subset, prompt = [str(i) for i in range(count)], ["task"] * count, [f"{i:064x}" for i in range(count)]
    return ItemScores(origin, names, np.array(scores, float), np.zeros(count, np.int64), subset, clusters, prompt)


def table(folder: Path, *runs: str, **options: object) -> list[str]:
    paths = [folder / run for run in runs]
    (text,) = lmgauge.export(paths, to="latex", **options).values()
    return [line for line in text.splitlines() if line.endswith(r"\\")]


def test_csv_has_each_figure_in_full(folder: Path) -> None:
    (text,) = lmgauge.export([folder / "wb2", folder / "small", folder / "items"], to="csv").values()
    rows = list(csv.DictReader(io.StringIO(text)))
    for name in ("wb2", "small"):
        content = json.loads((folder / name / "evaluation.json").read_text())
        own = {row["figure"]: row for row in rows if row["model"] == name}
        assert {figure: float(row["value"]) for figure, row in own.items()} == {
            figure: content["evaluation"][figure]
            for figure in ("perplexity", "bits_per_byte", "bits_per_character", "bits_per_word")
        }
        interval = content["evaluation"]["interval"]
        assert [float(own["perplexity"][f"interval_{end}"]) for end in ("low", "high")] == [
            interval["low"],
            interval["high"],
        ]
        bounds = {figure: row["is_lower_bound"] for figure, row in own.items()}
        assert (bounds["perplexity"], bounds["bits_per_byte"]) == ("False", "True")  # of unseen words
        assert {row["rows_sha256"] for row in own.values()} == {content["scores_sha256"]}
        assert {row["date"] for row in own.values()} == {"2023-11-14T22:13:20+00:00"}
    (item,) = rows[-1:]
    assert (item["model"], item["figure"], float(item["value"])) == (f"'{HOSTILE}", "acc", 0.625)
    assert float(item["interval_low"]) < 0.625 < float(item["interval_high"])


def test_the_same_run_gives_the_same_bytes_and_other_scores_another_digest(folder: Path, tmp_path: Path) -> None:
    for form in ("csv", "latex"):
        assert lmgauge.export(folder / "items", to=form) == lmgauge.export(folder / "items", to=form)
    items(HOSTILE, [1, 1, 0, 1, 0, 1, 0, 1]).write(tmp_path / "other")
    texts = [
        lmgauge.export(run, to="csv", date="2026-01-15")["results.csv"] for run in (folder / "items", tmp_path / "other")
    ]
    (one,), (other,) = (list(csv.DictReader(io.StringIO(text))) for text in texts)
    assert {name for name in one if one[name] != other[name]} == {"rows_sha256"}


def test_latex_has_the_best_in_bold_and_never_a_bound(folder: Path) -> None:
    rows = table(folder, "wb1", "kn2", "wb3", figures=["perplexity"])
    assert rows[0] == r"model & perplexity & 95 \% interval \\"
    assert [r"\textbf" in row for row in rows[1:]] == [False, True, True]  # kn2 is not shown to be worse than wb3
    bound = table(folder, "small", "wb2", figures=["perplexity", "bits_per_byte"])
    assert bound[1].split(" & ")[3].startswith(r"$\geq$ ")
    assert r"\textbf" not in "".join(bound)  # other words: not comparable; a bound beside a bound: nobody knows
    assert r"\textbf" not in "".join(table(folder, "wb2"))


def test_names_cannot_break_a_table(folder: Path) -> None:
    (row,) = table(folder, "items", task="[t]")[1:]
    assert row.startswith(r"=[evil]$|$\$x\_\{1\}\%\&\#\textasciitilde{}\textasciicircum{}\textbackslash{}")
    assert row.count(" & ") == 2
    (text,) = lmgauge.export(folder / "items", to="latex", names=["[x"]).values()
    assert "\n{}[x & 0.6250 & " in text
    assert all(line.startswith("% ") or "evil" not in line for line in text.splitlines())


def test_a_task_is_a_column_and_a_model_a_row(folder: Path) -> None:
    rows = table(folder, "wb2", "items", names=["mine", "mine"], figures=[])
    assert rows[0].startswith("model & text: perplexity & ")
    assert len(rows) == 2
    with pytest.raises(UsageError, match="two runs of 'a' have acc: give each a name of its own"):
        lmgauge.export([folder / "items"] * 2, to="latex", names=["a", "a"])


def test_the_command_prints_one_file_and_says_where_it_wrote(folder: Path, tmp_path: Path) -> None:
    run, path = folder / "wb2", tmp_path / "new" / "table.tex"
    printed = ok("export", run, "--to", "latex", "--figures", "perplexity", "--names", "a b").stdout
    assert ok("export", run, "--to", "latex", "--figures", "perplexity", "--names", "a b", "-o", path).stderr == f"{path}\n"
    assert path.read_text() == printed
    (tmp_path / "folder").mkdir()
    ok("export", run, "--to", "csv", "-o", tmp_path / "folder")
    assert [file.name for file in (tmp_path / "folder").iterdir()] == ["results.csv"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--to", "word"], "unknown form 'word': choose one of csv, latex"),
        (
            ["--to", "csv", "--figures", "bleu"],
            "wb2 has no figure 'bleu': choose of perplexity, cross_entropy, bits_per_token",
        ),
        (["--to", "csv", "--names", "a,b"], "2 names for 1 runs: give one for each, in their order"),
        (["--to", "csv", "--date", "today"], "date 'today' is not one: write 2026-01-15, or 2026-01-15T10:30:00Z"),
        (["--to", "csv", "--dataset", "cais/hle"], "the form csv got an unexpected keyword argument 'dataset'"),
        (["--to", "csv", "-o", "wb2"], "would replace what this command reads"),
    ],
)
def test_mistakes_are_said_in_words(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str) -> None:
    monkeypatch.chdir(folder)
    assert words in refused("export", "wb2", *arguments)


def test_what_is_not_a_run_is_refused(folder: Path) -> None:
    assert "no such run" in refused("export", folder / "nothing", "--to", "csv")
    assert "is a score table; `lmgauge eval --scores" in refused("export", folder / "wb2/scores.parquet", "--to", "csv")
    assert "is not a run: name the runs in it" in refused("export", folder, "--to", "csv")
