"""Runs exported: figures as they are, best in bold where that is known, the same bytes each time, mistakes in words."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml
from tests.cli.commands import ok, refused

import lmgauge
from lmgauge.base.errors import UsageError
from lmgauge.evaluation.runs import open_run
from lmgauge.report.exports import ExportedFigure, evaluation_exported, items_exported
from lmgauge.report.exports.hub import hub
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
    for file in path.glob("*/*"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
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


def test_of_a_sample_the_estimate_is_exported_and_other_commands_say_what_it_is(tmp_path: Path) -> None:
    lines = [f"{a} {b} {c}" for a in "ab" for b in "abc" for c in "cd"] * 2
    text = lmgauge.Corpus.from_strings(lines, documents=[str(number) for number in range(len(lines))])
    big, small = (lmgauge.train("witten-bell", text, order=order) for order in (2, 1))
    made = lmgauge.estimate(big, text, proxy=small, sample=12, output=tmp_path / "run")
    rows = {
        row["figure"]: row for row in csv.DictReader(io.StringIO(lmgauge.export(tmp_path / "run", to="csv")["results.csv"]))
    }
    for name in ("perplexity", "bits_per_byte"):
        figure = made.figure(name)
        values = [float(rows[name][key]) for key in ("value", "interval_low", "interval_high")]
        assert values == pytest.approx([figure.value, figure.interval.low, figure.interval.high], rel=1e-12)
    assert rows["perplexity"]["signature"] == made.signature
    assert "of a sample, 12/24 documents" in str(lmgauge.audit(run=tmp_path / "run"))
    assert "of a sample alone, 12/24 documents" in str(lmgauge.diagnose(tmp_path / "run", only=["tokens"]))


def test_latex_has_the_best_in_bold_and_never_a_bound(folder: Path) -> None:
    rows = table(folder, "wb1", "kn2", "wb3", figures=["perplexity"])
    assert rows[0] == r"model & perplexity & 95 \% interval \\"
    assert [r"\textbf" in row for row in rows[1:]] == [False, True, True]  # kn2 is not shown to be worse than wb3
    bound = table(folder, "small", "wb2", figures=["perplexity", "bits_per_byte"])
    assert bound[1].split(" & ")[3].startswith(r"$\geq$ ")
    assert r"\textbf" not in "".join(bound)  # other words: not comparable; a bound beside a bound: nobody knows
    assert r"\textbf" not in "".join(table(folder, "wb2"))


def test_items_are_compared_item_by_item(tmp_path: Path) -> None:
    for name, scores in {"a": [1.0] * 11 + [0.0], "b": [1.0] * 10 + [0.0] * 2, "c": [0.0] * 12, "d": [1.0] * 9}.items():
        items(name, scores).write(tmp_path / name)
    assert [r"\textbf" in row for row in table(tmp_path, "a", "b", "c")[1:]] == [True, True, False]
    (text,) = lmgauge.export([tmp_path / "a", tmp_path / "d"], to="latex").values()  # not the same items
    assert r"\textbf" not in text
    assert "\n% none of acc is bold: not the same items: 3 items of a not in d" in text


@pytest.mark.parametrize(
    ("subsets", "ids", "task"),
    [
        (["mmlu_law", "mmlu_logic"], ["1", "2"], "mmlu"),
        (["algebra", "geometry"], ["mmlu/1", "mmlu/12"], "mmlu"),  # of a log's task by --group
        (["algebra", "geometry"], ["item_1", "item_2"], "acc"),
        (["", ""], ["a/1", "a/2"], "acc"),
    ],
)
def test_several_subsets_have_one_short_name(subsets: list[str], ids: list[str], task: str) -> None:
    scores = items("m", [1, 0])
    assert items_exported(replace(scores, subset=subsets, item=ids, content=scores.prompt)).task == task


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
    with pytest.raises(UsageError, match="two runs of 'a' have acc of task: tell them apart by --names"):
        lmgauge.export([folder / "items"] * 2, to="latex", names=["a", "a"])


def test_the_command_prints_one_file_and_says_where_it_wrote(folder: Path, tmp_path: Path) -> None:
    run, path = folder / "wb2", tmp_path / "new" / "table.tex"
    printed = ok("export", run, "--to", "latex", "--figures", "perplexity", "--names", "a b").stdout
    assert ok("export", run, "--to", "latex", "--figures", "perplexity", "--names", "a b", "-o", path).stderr == f"{path}\n"
    assert path.read_text() == printed
    (tmp_path / "folder").mkdir()
    ok("export", run, "--to", "csv", "-o", tmp_path / "folder")
    assert [file.name for file in (tmp_path / "folder").iterdir()] == ["results.csv"]
    ok("export", folder / "items", "--to", "hub", "--dataset", "a/b", "--task", "t", "-o", tmp_path / "model")
    assert (tmp_path / "model" / ".eval_results" / "a_b-t.yaml").is_file()


def files(run: Path | list[Path], form: str, **options: object) -> dict[str, Any]:
    """What a form of one run has, by names of files without the dates: values of JSON and YAML."""
    texts = lmgauge.export(run, to=form, date="2026-01-15T10:30:00Z", **options)  # type: ignore[arg-type]
    read = {".json": json.loads, ".jsonl": lambda text: list(map(json.loads, text.splitlines())), ".yaml": yaml.safe_load}
    return {name: read[Path(name).suffix](text) for name, text in texts.items()}


def test_a_file_for_the_hub(folder: Path) -> None:
    about = {"dataset": "cais/hle", "task": '"x": #', "source": "https://example.org/é"}
    ((name, (entry,)),) = files(folder / "items", "hub", **about).items()
    assert name == '.eval_results/cais_hle-"x"_ #.yaml'
    assert entry == {
        "dataset": {"id": "cais/hle", "task_id": '"x": #'},
        "value": 0.625,
        "date": "2026-01-15T10:30:00+00:00",
        "source": {"url": "https://example.org/é"},
        "notes": entry["notes"],
    }
    (parsed,) = pytest.importorskip("huggingface_hub").parse_eval_result_entries([entry])
    assert (parsed.dataset_id, parsed.value, parsed.source_url) == ("cais/hle", 0.625, "https://example.org/é")
    for part in ("95% interval 0.3", "|score:acc|", "rows sha256:"):
        assert part in entry["notes"]
    tiny = replace(evaluation_exported(open_run(folder / "wb2")), figures=(ExportedFigure("x", "x", 1e-07),))
    ((_, text),) = hub([tiny], dataset="a", task="b")
    assert yaml.safe_load(text)[0]["value"] == 1e-07  # in YAML 1.1, 1e-07 is a string


def test_every_eval_ever(folder: Path) -> None:
    about = {"organization": HOSTILE, "relationship": "third_party", "names": [f"org/{HOSTILE}"]}
    names, (rows, record) = zip(*files(folder / "items", "every-eval-ever", **about).items(), strict=True)
    pattern = (
        r"data/task/org/[\w.-]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(_samples.jsonl|.json)"
    )
    assert all(re.fullmatch(pattern, name) for name in names)
    assert record["detailed_evaluation_results"] == {"format": "jsonl", "file_path": names[0], "total_rows": 8}
    (result,) = record["evaluation_results"]
    assert (result["score_details"]["score"], result["metric_config"]["lower_is_better"]) == (0.625, False)
    interval = result["score_details"]["uncertainty"]["confidence_interval"]
    assert interval["lower"] < 0.625 < interval["upper"]
    assert record["model_info"]["id"] == f"org/{HOSTILE}"
    assert record["retrieved_timestamp"] == "1768473000"
    assert {row["evaluation_id"] for row in rows} == {record["evaluation_id"]}
    assert [row["evaluation"]["score"] for row in rows] == [1, 1, 0, 1, 0, 1, 1, 0]
    assert [row["evaluation"]["is_correct"] for row in rows] == [True, True, False, True, False, True, True, False]
    ((_, record),) = files(folder / "small", "every-eval-ever", **about | {"dataset": "me/text"}).items()
    bits = next(one for one in record["evaluation_results"] if one["evaluation_result_id"] == "bits_per_byte")
    assert bits["score_details"]["details"] == {"is_lower_bound": "true"}
    assert (bits["metric_config"]["max_score"], bits["source_data"]["hf_repo"]) == ("Infinity", "me/text")


def test_a_log_of_inspect(folder: Path) -> None:
    ((name, log),) = files(folder / "items", "inspect").items()
    assert re.fullmatch(r"2026-01-15T10-30-00\+00-00_task_[0-9a-f]{22}.json", name)
    (score,) = log["results"]["scores"]
    assert (score["name"], score["metrics"]["mean"]["value"]) == ("acc", 0.625)
    assert score["metrics"]["mean"]["metadata"]["interval"]["method"] == "Wilson"
    assert [sample["scores"]["acc"]["value"] for sample in log["samples"]] == [1, 1, 0, 1, 0, 1, 1, 0]
    assert log["eval"]["metadata"].keys() == {"signature", "rows_sha256", "lmgauge"}


def test_results_of_the_harness_are_what_its_own_table_shows(folder: Path) -> None:
    utils = pytest.importorskip("lm_eval.utils")
    content = next(iter(files(folder / "items", "harness").values()))
    assert re.search(r"\|task *\|.*\|none *\|.*\|acc *\|↑ *\|0?0\.625\|± *\|0\.183\|", utils.make_table(content))
    ((_, content),) = files(folder / "wb2", "harness").items()
    assert "|perplexity" in utils.make_table(content)


@pytest.mark.parametrize("form", ["harness", "inspect"])
def test_what_is_exported_and_imported_again_is_the_same(tmp_path: Path, form: str) -> None:
    first = items("org/m", [1, 1, 0.25, 1, 0, 1, 1, 0, 0.5, 1, 1, 1 / 3], "passage")
    first = replace(first, origin=replace(first.origin, higher_is_better=False))
    first.write(tmp_path / "first")
    made = lmgauge.export(tmp_path / "first", to=form, output=tmp_path / form, date="2026-01-15T10:30:00Z")
    again = lmgauge.tasks.import_items(list(made)[-1], tmp_path / "again", score="acc", document="cluster")
    assert isinstance(again, ItemScores)
    assert not again.origin.higher_is_better
    names = ("item", "score", "sample", "subset", "cluster", "prompt", "content")
    assert all([*getattr(again, name)] == ([*getattr(first, name)] or [""] * len(again)) for name in names)
    texts = [lmgauge.export(tmp_path / name, to="csv", date="2026-01-15")["results.csv"] for name in ("first", "again")]
    rows = [next(csv.DictReader(io.StringIO(text))) for text in texts]
    differing = {name for name in rows[0] if rows[0][name] != rows[1][name]}
    assert differing == (set() if form == "harness" else {"signature"})  # another program


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--to", "word"], "unknown form 'word': choose one of csv, every-eval-ever, harness, hub, inspect, latex"),
        (
            ["--to", "csv", "--figures", "bleu"],
            "wb2 has no figure 'bleu': choose of perplexity, cross_entropy, bits_per_token",
        ),
        (["--to", "csv", "--names", "a,b"], "2 names for 1 runs: give one for each, in their order"),
        (["--to", "csv", "--date", "today"], "date 'today' is not one: write 2026-01-15, or 2026-01-15T10:30:00Z"),
        (["--to", "csv", "--dataset", "cais/hle"], "the form csv has no use for dataset"),
        (["--to", "hub", "--dataset", "a/b"], "the form hub needs --task (task=...)"),
        (["--to", "hub", "--dataset", "a/b", "--task", "x"], "has one figure of one model: name one run"),
        (
            ["--to", "hub", "--dataset", "../../x", "--task", "x", "--figures", "perplexity"],
            "dataset '../../x' is not a name of the Hub: write NAME or ORGANIZATION/NAME, such as cais/hle",
        ),
        (
            ["--to", "hub", "--dataset", "a", "--task", "x", "--figures", "perplexity", "--source", "javascript:alert(1)"],
            "source 'javascript:alert(1)' is not an address: the Hub makes it a link, which begins with https://",
        ),
        (
            ["--to", "hub", "--dataset", "a/b", "--task", "x", "--figures", "bits_per_byte"],
            "bits per byte of wb2 is a lower bound, which a leaderboard would rank as if it were the figure",
        ),
        (
            ["--to", "every-eval-ever", "--organization", "me", "--relationship", "other"],
            "wb2: Every Eval Ever needs finite figures, and who made the model: --names BY/MODEL",
        ),
        (["--to", "csv", "-o", "wb2"], "would replace what this command reads"),
    ],
)
def test_mistakes_are_said_in_words(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str) -> None:
    monkeypatch.chdir(folder)
    assert words in refused("export", "wb2", *arguments)


def test_what_is_not_a_run_is_refused(folder: Path) -> None:
    about = ["--organization", "me", "--relationship", "other", "--names", "a/b"]
    words = "--to every-eval-ever makes 2 files: name a folder for them (-o)"
    assert words in refused("export", folder / "items", "--to", "every-eval-ever", *about)
    assert "no such run" in refused("export", folder / "nothing", "--to", "csv")
    words = refused("export", folder / "wb2/scores.parquet", "--to", "csv")
    assert "is not a run: `lmgauge eval --scores FILE -o RUN` makes one of a score table, `lmgauge import FILE" in words
    assert "is not a run: name the runs in it" in refused("export", folder, "--to", "csv")


class Tracker(ModuleType):
    """Takes the calls that Trackio and wandb share, and talks on standard output, as these do."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__("wandb")
        self.calls: list[tuple[str, Any]] = []
        self.fails = fails

    def init(self, *, project: str, name: str, config: dict[str, str]) -> None:
        if self.fails:
            raise KeyError("no API key")
        print("hello")
        self.calls.append(("init", (project, name, config)))

    def log(self, figures: dict[str, float]) -> None:
        self.calls.append(("log", figures))

    def finish(self) -> None:
        self.calls.append(("finish", None))


@pytest.mark.parametrize("command", ["eval", "report"])
def test_runs_are_tracked(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """Figures in full precision, ends of the interval, signature and digest; standard output has the result alone."""
    tracker = Tracker()
    monkeypatch.setitem(sys.modules, "wandb", tracker)
    names = ["wb2", "kn2"]
    if command == "eval":
        models = {name: lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["a b", "a"]), order=1) for name in names}
        lmgauge.evaluate(models, lmgauge.Corpus.from_strings(["a b"] * 9), output=tmp_path / "runs", track="wandb")
        runs = [tmp_path / "runs" / name for name in names]
    else:
        runs = [folder / name for name in names]
        result = ok("report", *runs, "-o", tmp_path / "page.html", "--track", "wandb", "--json")
        assert json.loads(result.stdout)
        assert "hello" in result.stderr
    assert [kind for kind, _ in tracker.calls] == ["init", "log", "finish"] * 2
    for run, name, (_, made), (_, figures) in zip(runs, names, tracker.calls[::3], tracker.calls[1::3], strict=True):
        exported = evaluation_exported(open_run(run))
        assert made[:2] == ("lmgauge", name)
        assert made[2] == {"text": exported.task, **exported.provenance()}
        interval = exported.figures[0].interval
        assert interval is not None
        assert (figures["perplexity_low"], figures["perplexity_high"]) == (interval.low, interval.high)
        assert figures["perplexity"] == exported.figures[0].value
        assert figures.keys() >= {"bits_per_byte"}


def test_what_cannot_be_tracked_is_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trackio", None)
    assert "lmgauge[track]" in refused("report", folder / "wb2", "-o", tmp_path / "page.html", "--track", "trackio")
    assert not (tmp_path / "page.html").exists()
    monkeypatch.setitem(sys.modules, "wandb", Tracker(fails=True))
    words = refused("report", folder / "wb2", "-o", tmp_path / "page.html", "--track", "wandb").splitlines()[-1]
    assert "wandb did not take wb2, which lies in its folder: 'no API key'" in words
    model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["a b", "a"]), order=1)
    with pytest.raises(UsageError, match="what a run folder holds"):
        lmgauge.evaluate(model, texts=["a"], track="wandb")
    with pytest.raises(UsageError, match="mlflow"):
        lmgauge.evaluate(model, texts=["a"], output=tmp_path / "run", track="mlflow")  # type: ignore[call-overload]
