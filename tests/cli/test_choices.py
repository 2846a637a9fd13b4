"""`lmgauge pairs` and `lmgauge multiple-choice` as users and pipes meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choices")
    text = lmgauge.Corpus.from_strings(["the cat sits", "the cats sit", "a dog sits", "which pet sits a dog"])
    for name, order in (("three", 3), ("one", 1)):
        lmgauge.train("witten-bell", text, order=order).save(folder / name)
    (folder / "pairs.tsv").write_text("the cat sits\tthe cat sit\tnumber\nthe cats sit\tthe cats sits\tnumber\n")
    question = {"question": "which pet sits", "choices": [" the cat", " a dog"], "answer": "B"}
    (folder / "questions.jsonl").write_text(json.dumps(question) + "\n")
    return folder


def test_pairs_as_people_and_programs_read_them(folder: Path) -> None:
    models = ["-m", folder / "three", "-m", folder / "one"]
    shown = ok("pairs", *models, folder / "pairs.tsv").stdout
    for words in ("three", "number", "McNemar", "each of 2 pairs is taken as independent"):
        assert words in shown
    result = json.loads(ok("pairs", *models, folder / "pairs.tsv", "--json").stdout)
    assert result["accuracies"][0]["accuracy"] == 1.0
    assert result["mean_over_groups"]["three"]["raw"] == 1.0


def test_rows_take_the_place_of_the_table(folder: Path) -> None:
    lines = ok("multiple-choice", "-m", folder / "three", folder / "questions.jsonl", "-o", "-").stdout.splitlines()
    assert lines[0].split("\t")[:3] == ["model", "id", "group"]
    assert lines[1].split("\t")[3:5] == ["1", "1"]


def test_mistakes(folder: Path) -> None:
    assert "no field 'x'" in refused("pairs", "-m", folder / "one", folder / "questions.jsonl", "--good", "x")
    assert "Missing option" in refused("pairs", folder / "pairs.tsv")
    assert "no field 'right'" in refused(
        "multiple-choice", "-m", folder / "one", folder / "questions.jsonl", "--answer", "right"
    )
