"""`lmgauge report` and the page of `quickstart`: files appear whole where they are said to be, mistakes are one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import ok, refused

import lmgauge
from lmgauge.base.errors import InputError
from lmgauge.base.files import OutputError
from lmgauge.base.json_text import to_json
from lmgauge.cli.tools import quickstart


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report")
    lines = [f"{a} {b} c {d}" for a in "ab" for b in "cde" for d in "fgh"]
    (path / "one.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    for kind in ("kneser-ney", "witten-bell"):
        model = lmgauge.train(kind, path / "one.txt", order=2)  # type: ignore[arg-type]
        model.save(path / kind)
        lmgauge.evaluate(path / kind, path / "one.txt", output=path / f"run-{kind}")
    return path


def needs_the_extra() -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")


def test_a_page_is_where_it_is_said_to_be(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_the_extra()
    monkeypatch.chdir(tmp_path)
    shown = ok("report", folder / "run-kneser-ney").stdout
    assert "kneser-ney has a perplexity of" in shown
    page = tmp_path / "report.html"
    assert page.as_uri() in shown
    assert page.read_text(encoding="utf-8").startswith("<!")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_charts_are_written_beside(folder: Path, tmp_path: Path) -> None:
    needs_the_extra()
    runs = [folder / "run-kneser-ney", folder / "run-witten-bell"]
    ok("report", *runs, "-o", tmp_path / "both.html", "--vega", tmp_path / "vega", "--figures", tmp_path / "figures")
    specification = json.loads((tmp_path / "vega" / "segment-scores.vl.json").read_text(encoding="utf-8"))
    assert "vega-lite" in specification["$schema"]
    assert {file.suffix for file in (tmp_path / "figures").iterdir()} == {".svg", ".pdf", ".png"}


@pytest.mark.parametrize("runs", [["run-kneser-ney"], ["run-kneser-ney", "run-witten-bell"]])
def test_both_doors_say_the_same_and_json_writes_no_page(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [folder / run for run in runs]
    printed = ok("report", *paths, "--json", "--train", folder / "one.txt", "--segments", 3, "--seed", 5).stdout
    assert printed == to_json(lmgauge.report(paths, train=folder / "one.txt", segments=3, seed=5).to_dict()) + "\n"
    assert list(tmp_path.iterdir()) == []


def test_an_audit_in_a_file(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    file.write_text(ok("audit", folder / "run-kneser-ney", "--json").stdout, encoding="utf-8")
    assert ok("report", folder / "run-kneser-ney", "--audit", file, "--json").stdout.count('"verdict": "PASS"') > 3
    assert "is not of" in refused("report", folder / "run-witten-bell", "--audit", file, "--json")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing argument 'RUNS...'"),
        (["nothing"], "no such run"),
        (["run-kneser-ney", "--segments", "61"], "61"),
        (["run-kneser-ney", "--audit", "one.txt"], "one.txt: is not an audit as lmgauge writes it"),
        (["run-kneser-ney", "-o", "run-kneser-ney"], "run-kneser-ney"),
        (["run-kneser-ney", "-o", "page.PDF"], "page.PDF: a page is HTML"),
        (["run-kneser-ney", "run-kneser-ney"], "named twice"),
        (["kneser-ney"], "without curves"),
        (["run-kneser-ney", "run-witten-bell", "-m", "kneser-ney"], "one run"),
    ],
)
def test_mistakes_are_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str) -> None:
    monkeypatch.chdir(folder)
    assert words in refused("report", *arguments)
    assert not (folder / "report.html").exists()


def test_quickstart_writes_a_page_or_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = ok("quickstart").stdout
    assert "trigram" in shown
    page = tmp_path / "lmgauge-quickstart" / "report.html"
    assert (page.as_uri() in shown) if page.exists() else ("lmgauge[report]" in shown)
    assert not page.exists() or page.stat().st_size < 2_000_000


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (OutputError("report.html: the disk is full"), "^report.html: the disk is full$"),
        (InputError("scores.parquet: damaged"), r"report\.html: the scores for it, in .*, cannot be read back$"),
    ],
)
def test_quickstart_does_not_end_well_without_the_page_of_a_folder_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, message: str
) -> None:
    def _report(*_: Any, **__: Any) -> None:
        raise fault

    monkeypatch.setattr("lmgauge.cli.tools._trained", lambda *_: {})
    monkeypatch.setattr(lmgauge, "evaluate", lambda *_, **__: [])
    monkeypatch.setattr(lmgauge, "report", _report)
    with pytest.raises(OutputError, match=message):
        quickstart(output=tmp_path / "new")
