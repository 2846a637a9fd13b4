"""`lmgauge percentiles` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import TERMINAL, ok, refused, run

import lmgauge
from lmgauge.cli.odd_values import read_sample


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and documents in groups of different sizes."""
    folder = tmp_path_factory.mktemp("percentiles")
    lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(["a b", "a", "b b a", "c"]), order=2).save(folder / "wb2")
    rows = [
        {"text": " ".join("abc"[i % (1 + k % 3)] for i in range(1 + k % 11)), "lang": "en" if k % 5 else "de\x1b[31m"}
        for k in range(400)
    ]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"n": 1}]), encoding="utf-8")
    return folder


def test_a_table_and_a_file(folder: Path, tmp_path: Path) -> None:
    arguments = ["percentiles", "-m", folder / "wb2", folder / "in.jsonl", "--group", "lang", "--sample", "200"]
    done = ok(*arguments, "-o", tmp_path / "p.json", "--html", tmp_path / "p.html")
    rows = [line.split("\t") for line in done.stdout.splitlines() if line and not line.startswith("#")]
    assert rows[0][:5] == ["lang", "documents", "scored", "p10", "95 % of p10"]
    assert [row[0] for row in rows[1:]] == ["de\N{REPLACEMENT CHARACTER}[31m", "en", "all"]
    assert [row[1] for row in rows[1:]] == ["80", "320", "400"]
    assert rows[1][3] == "–"  # fewer than 100
    assert "# 1 record without valid text left out" in done.stdout
    assert "1 group has fewer than 100 documents with a perplexity (80 documents)" in done.stdout
    assert f"lmgauge filter --percentiles {tmp_path / 'p.json'} --keep p10..p70" in done.stderr
    saved = lmgauge.results.Percentiles.load(tmp_path / "p.json")
    assert saved == lmgauge.learn_percentiles({"wb2": folder / "wb2"}, folder / "in.jsonl", group="lang", sample=200)
    assert json.loads(ok(*arguments, "--json").stdout) == saved.to_dict()
    assert "<svg" in (tmp_path / "p.html").read_text("utf-8")


def test_all_documents_have_no_intervals(folder: Path) -> None:
    printed = ok("percentiles", "-m", folder / "wb2", folder / "in.jsonl", "--sample", "all").stdout
    assert printed.splitlines()[1].split("\t") == ["group", "documents", "scored", "p10", "p30", "p50", "p70", "p90"]
    assert "# learned on all documents; 400 documents were read (seed 12345)" in printed


def test_a_terminal_has_room_for_the_percentiles(folder: Path) -> None:
    lines = run(
        "percentiles", "-m", folder / "wb2", folder / "in.jsonl", "--group", "lang", "--sample", "50", env=TERMINAL
    ).stdout.splitlines()
    heads = next(line for line in lines if "documents" in line)
    assert all(f"p{percent}" in heads for percent in (10, 30, 50, 70, 90))
    assert max(map(len, lines[: lines.index(heads) + 4])) <= 100


def test_what_is_refused(folder: Path, tmp_path: Path) -> None:
    start = ["percentiles", "-m", folder / "wb2", folder / "in.jsonl"]
    assert "a number of documents such as 20000, or 'all'" in refused(*start, "--sample", "0")
    assert "a number of documents" in refused(*start, "--sample", "x")
    assert "would replace" in refused(*start, "-o", folder / "in.jsonl")
    assert "VALUE=MODEL" in refused(*start, "--by", "lang")
    assert "no such file" in refused("percentiles", "-m", folder / "wb2", tmp_path / "none.jsonl")
    assert "Missing option '-m'" in refused("percentiles", folder / "in.jsonl")


@pytest.mark.parametrize(("text", "size"), [("20,000", 20_000), ("1_000", 1_000), ("all", None)])
def test_sizes_of_samples(text: str, size: int | None) -> None:
    assert read_sample(text) == size
