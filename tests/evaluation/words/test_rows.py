"""Rows of words, in memory and in files, and what is said of them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.result_list import ROW_FILES

LINES = ["the cat sat", "the dog sat", "a dog ran"]
COLUMNS = [
    *("model", "text_id", "word_number", "word", "start", "end", "pieces", "surprisal", "surprisal_corrected"),
    *("entropy_before", "length", "oov", "shared", "segment"),
]


@pytest.fixture(scope="module")
def model() -> Any:
    return lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(LINES), order=2, tokenizer="character")


@pytest.mark.parametrize("ending", ROW_FILES)
def test_every_kind_of_file_has_the_same_rows(tmp_path: Path, model: Any, ending: str) -> None:
    texts = ['the "dog"\tsat', "für", ""]
    words = lmgauge.word_surprisal(model, texts=texts)
    path = tmp_path / f"words{ending}"
    lmgauge.evaluate(model, texts=texts, output=lmgauge.settings.Outputs(per_word=path))
    rows = words.to_rows()
    assert list(rows[0]) == COLUMNS
    assert [(row["word"], row["word_number"], row["start"], row["length"]) for row in rows] == [
        *(("the", 1, 0, 3), ('"dog"', 2, 4, 5), ("sat", 3, 10, 3)),
        ("für", 1, 0, 3),
    ]
    if ending == ".parquet":
        assert pq.read_table(path).to_pylist() == rows
    elif ending == ".jsonl":
        assert [json.loads(line) for line in path.read_text("utf-8").splitlines()] == rows
    else:
        with path.open(encoding="utf-8", newline="") as file:
            quoting = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if ending == ".tsv" else {}
            read = list(csv.DictReader(file, **quoting))  # type: ignore[arg-type]
        assert [{name: type(rows[0][name])(row[name]) for name in row} for row in read] == rows
    words.write_rows(path.with_stem("again"))
    assert path.with_stem("again").read_bytes() == path.read_bytes()


def test_frequencies_and_missing_figures_in_a_file(tmp_path: Path, model: Any) -> None:
    """What is missing is an empty cell in text, and null in Parquet."""
    words = lmgauge.word_surprisal(model, texts=["the cow"], train=lmgauge.Corpus.from_strings(LINES))
    assert [(row["unseen"], round(row["log_frequency"], 3)) for row in words.to_rows()] == [(0, 8.301), (1, 7.824)]
    regions = [{"id": 1, "region": "all", "text": "the cow"}]
    table = lmgauge.word_surprisal(model, texts=["the cow"], regions=regions).rows
    assert table.column_names[1:5] == ["text_id", "region_number", "region", "text"]
    assert "unseen" not in table.column_names


def test_a_region_that_cuts_a_token_is_refused() -> None:
    model = lmgauge.train("witten-bell", lmgauge.Corpus.from_strings(LINES), order=2)
    message = r"regions, row 1: region 'first' cuts the token 'the' \(bytes 0 to 3 of text '.*'\), which has one probability"
    with pytest.raises(InputError, match=message):
        lmgauge.word_surprisal(model, texts=["the cat"], regions=[{"id": 1, "region": "first", "text": "th"}])


def test_what_is_said(model: Any) -> None:
    words = lmgauge.word_surprisal(model, texts=["the cat", "a dog"], regions=[{"id": 1, "text": "the"}])
    assert (words.marking, words.texts, words.units) == ("apart", 2, 1)
    assert words.notes[-1] == "1 text without regions"
    assert "surprisal_corrected is minus log2 of a word probability, surprisal is not" in words.notes[0]
    assert words.signature.startswith("words|words:regions@")
    whole = lmgauge.word_surprisal(lmgauge.train("laplace", lmgauge.Corpus.from_strings(LINES)), texts="the cat")
    assert [row["surprisal"] for row in whole.to_rows()] == [row["surprisal_corrected"] for row in whole.to_rows()]
    assert whole.signature.startswith("words|words:whitespace|n:2|marking:whole|unit:word|context:sentence|")
    assert "tokens are words" in whole.notes[0]


def test_it_prints_and_becomes_other_things(model: Any) -> None:
    words = lmgauge.word_surprisal(model, texts=["the cat sat"] * 20)
    assert "the first 40 of 60 words" in str(words)
    assert repr(words) == f"<WordSurprisals: wb2: 60 words, {words.bits / 60:.4f} bits each>"
    assert words.to_dict()["rows"] == words.to_rows() == words.to_arrow().to_pylist()
    assert words.to_pandas().word.tolist() == ["the", "cat", "sat"] * 20
    assert words.charts == ("words",)
    assert "<table" in words._repr_html_()


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    for options, message in (
        ({"words": "icu"}, "--words is about the rows of words"),
        ({"regions": path}, "--regions is about the rows of words"),
        ({"train": [path]}, "--train is about the rows of words"),
        ({"per_word": "words.xlsx"}, r"words\.xlsx: rows are written as"),
    ):
        with pytest.raises(UsageError, match=message):
            lmgauge.settings.Outputs(tmp_path / "run", **options)  # type: ignore[arg-type]
