"""`lmgauge eval --per-word`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("words")
    (path / "in.txt").write_text("the cat sat\nthe dog\n", encoding="utf-8")
    (path / "regions.tsv").write_text("text_id\tregion\ttext\n1\tnoun phrase\tthe cat\n2\t\tthe dog\n", encoding="utf-8")
    (path / "cut.csv").write_text("text_id,start,end\n1,0,5\n", encoding="utf-8")
    lmgauge.train("witten-bell", path / "in.txt", order=2).save(path / "wb2")
    lmgauge.train("witten-bell", path / "in.txt", order=2, tokenizer="character").save(path / "chars")
    return path


def test_rows_on_standard_output(folder: Path) -> None:
    result = ok("eval", "-m", folder / "chars", folder / "in.txt", "--per-word", "-", "--train", folder / "in.txt")
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert lines[0][:5] == ["model", "text_id", "word_number", "word", "start"]
    assert lines[0][-4:] == ["unseen", "oov", "shared", "segment"]
    assert [line[3] for line in lines[1:]] == ["the", "cat", "sat", "the", "dog"]
    assert "note: words: white space is a token of its own" in result.stderr


def test_a_file_beside_the_table(folder: Path, tmp_path: Path) -> None:
    result = ok(
        "eval",
        "-m",
        folder / "wb2",
        folder / "in.txt",
        "--regions",
        folder / "regions.tsv",
        "--per-word",
        tmp_path / "r.csv",
    )
    assert "perplexity" in result.stdout
    assert "its tokens are words" in result.stdout.replace("\n", " ")
    lines = (tmp_path / "r.csv").read_text("utf-8").splitlines()
    assert lines[0].startswith('"model","text_id","region_number","region","text","start","end","pieces","surprisal"')
    assert [line.split(",")[3:5] for line in lines[1:]] == [['"noun phrase"', '"the cat"'], ['"1"', '"the dog"']]


def test_words_by_icu(folder: Path) -> None:
    pytest.importorskip("icu4py")
    result = ok("eval", "-m", folder / "chars", "--words", "icu", "--per-word", "-", "-", stdin=b"the cat, sat\n")
    assert [line.split("\t")[3] for line in result.stdout.splitlines()[1:]] == ["the", "cat", ",", "sat"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--per-word", "r.csv", "--regions", "cut.csv"], "cut.csv, line 2: region '1' cuts the token ' cat'"),
        (["--per-word", "r.csv", "--regions", "no.csv"], "'no.csv': no such file"),
        (["--per-word", "regions.tsv", "--regions", "regions.tsv"], "would replace"),
        (
            ["--per-word", "r.csv", "--words", "syllables"],
            "words 'syllables': choose whitespace, treebank, icu, or icu:<locale>",
        ),
        (["--per-word", "r.xlsx"], "r.xlsx: rows are written as .parquet, .csv, .tsv, .jsonl"),
        (["--words", "icu"], "--words is about the rows of words: name a file for them (--per-word)"),
        (
            ["--per-word", "-", "--json"],
            "--per-word does not go with --json: both are standard output",
        ),
    ],
)
def test_what_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str) -> None:
    monkeypatch.chdir(folder)
    assert message in refused("eval", "-m", "wb2", "in.txt", *options).replace("\n", " ")
    assert not (folder / "r.csv").exists()


def test_a_score_table_has_no_words(folder: Path) -> None:
    assert "is for models" in refused("eval", "--scores", folder / "x.parquet", "--per-word", "-")


STIMULI = "item\tcondition\tsentence\n1\tplain\tthe cat sat\n1\tgarden path\tthe dog\n2\tplain\tthe dog sat\n"


def _columns(lines: list[str], *names: str) -> list[tuple[str, ...]]:
    rows = [line.split("\t") for line in lines]
    return [tuple(row[rows[0].index(name)] for name in names) for row in rows[1:]]


def test_conditions_of_an_item_stay_apart(folder: Path, tmp_path: Path) -> None:
    """Every psycholinguist's file: two texts have one id, and a column says which is which."""
    (tmp_path / "stimuli.tsv").write_text(STIMULI, encoding="utf-8", newline="\n")
    options = ("--field", "sentence", "--id", "item", "--keep", "condition")
    rows = {name: tmp_path / f"{name}.tsv" for name in ("word", "segment", "token")}
    files = [part for name, path in rows.items() for part in (f"--per-{name}", path)]
    result = ok("eval", "-m", folder / "wb2", "-m", folder / "chars", tmp_path / "stimuli.tsv", *options, *files, "-v")
    assert "1 record with the id of an earlier one: tell rows apart by segment" in " ".join(result.stdout.split())
    words = _columns(rows["word"].read_text("utf-8").splitlines(), "model", "segment", "word_number", "text_id", "condition")
    assert len(set(words)) == len({row[:3] for row in words}) == 16
    assert [row[1:] for row in words[2:6]] == [
        *(("0", "3", "1", "plain"), ("1", "1", "1", "garden path")),
        *(("1", "2", "1", "garden path"), ("2", "1", "2", "plain")),
    ]
    for name in ("segment", "token"):
        pairs = set(_columns(rows[name].read_text("utf-8").splitlines(), "segment", "condition"))
        assert pairs == {("0", "plain"), ("1", "garden path"), ("2", "plain")}


def test_keep_without_rows_or_with_a_taken_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "the cat", "word": "a"}\n', encoding="utf-8")
    text = ("-m", folder / "wb2", tmp_path / "in.jsonl", "--keep", "word")
    assert "keep is for rows" in refused("eval", *text)
    assert "rows have a column 'word' of their own" in refused("eval", *text, "--per-word", tmp_path / "w.tsv")
    plain = ("-m", folder / "wb2", folder / "in.txt", "--keep", "word", "--per-word", tmp_path / "w.tsv")
    assert "lines of text have no field 'word'" in refused("eval", *plain)
