"""`lmgauge filter` and `lmgauge score` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused
from tests.filtering.filtered import COLUMNS, small_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    small_model().save(tmp_path / "m")  # type: ignore[attr-defined]
    return tmp_path / "m"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "a b", "id": 1}\n{"text": "zzz", "id": 2}\n{"text": 5, "id": 3}\n')
    return path


def test_a_file_is_filtered(model: Path, source: Path, tmp_path: Path) -> None:
    output, rejects = tmp_path / "out.jsonl", tmp_path / "rejects.jsonl"
    said = ok("filter", "-m", model, source, "-o", output, "--max-perplexity", 6, "--rejects", rejects, "--id", "id").output
    assert "1 of 2" in said.replace("\n", " ") or "stay" in said
    (row,) = map(json.loads, output.read_text().splitlines())
    assert list(row) == ["text", "id", *COLUMNS]
    assert json.loads(rejects.read_text())["id"] == "3"


def test_numbers_are_json(model: Path, source: Path, tmp_path: Path) -> None:
    said = json.loads(ok("score", "-m", model, source, "-o", tmp_path / "out.jsonl", "--json").stdout)
    assert (said["records"], said["documents"], said["stay_documents"], said["problems"]) == (3, 2, 2, {"no text": 1})


def test_a_page_says_what_became_of_the_documents(model: Path, source: Path, tmp_path: Path) -> None:
    ok("filter", "-m", model, source, "-o", tmp_path / "out.jsonl", "--max-perplexity", 6, "--html", tmp_path / "page.html")
    assert "in.jsonl:2" in (tmp_path / "page.html").read_text()


def test_standard_input_and_output(model: Path, source: Path) -> None:
    done = ok("filter", "-m", f"m={model}", "-", "--format", "jsonl", "-o", "-", stdin=source.read_bytes())
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]
    assert "records" in done.stderr or "documents" in done.stderr


def test_a_folder_by_shards_and_again(model: Path, source: Path, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.part.jsonl").write_bytes(source.read_bytes())
    command = ("filter", "-m", model, str(tmp_path / "*.part.jsonl"), "-o", f"{tmp_path}/out/", "--json")
    parts = [json.loads(ok(*command, "--shard", f"{number}/2").stdout) for number in (1, 2)]
    assert [part["files"] for part in parts] == [2, 1]
    assert "holds other work: rules: max_perplexity is" in refused(*command, "--max-perplexity", 6)
    whole = json.loads(ok(*command, "--threads", 1).stdout)
    assert (whole["files"], whole["files_before"], whole["records"]) == (3, 3, 9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--errors", "fail"], "in.jsonl:3: field 'text' holds a number, not a string"),
        (["--max-perplexity", "0"], "max-perplexity"),
        (["--keep", "p70..p10", "--percentiles", "p.json"], "the first percentile has to be below the second"),
        (["--keep", "70"], "is not a range of percentiles"),
        (["--buckets", "p33"], "are not two percentiles"),
        (["--shard", "1/2"], "give -o a folder"),
        (["--shard", "3/2"], "shard 3/2"),
        (["--format", "tsv"], "is written as tsv, not as jsonl"),
        (["--by", "id"], "--by chooses a model by a value"),
        (["--judged-by", "x"], "the rules name model 'x'"),
        (["-m", "nowhere"], "nowhere"),
    ],
)
def test_what_is_refused(model: Path, source: Path, tmp_path: Path, options: list[str], message: str) -> None:
    assert message in refused("filter", "-m", model, source, "-o", tmp_path / "out.jsonl", *options)
    assert not (tmp_path / "out.jsonl").exists()


def test_names_of_files_drive_no_terminal(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31mred\u202e.jsonl"
    path.write_text('{"text": "a"}\n{"x": "\\u001b[31m"}\n')
    said = ok("filter", "-m", model, path, "-o", tmp_path / "out.jsonl")
    assert "\x1b" not in said.output + said.stderr
    assert "\x1b" not in refused("filter", "-m", model, path, "-o", tmp_path / "out.jsonl", "--errors", "fail")


def test_an_example_of_each_outcome_is_printed(model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a b\na\nb\nzzz\nzz zz\nz z z\n", encoding="utf-8")
    told = ("filter", "-m", model, tmp_path / "in.txt", "-o", tmp_path / "out.txt", "--lines", "--max-perplexity", 6)
    quiet, whole = ok(*told).stdout, ok(*told, "-v").stdout
    assert 1 <= quiet.count("# in.txt:") + quiet.count("/in.txt:") <= 2 < whole.count("/in.txt:")
