"""`lmgauge spell`, and `lmgauge train --vocabulary spelled`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import ok, refused

import lmgauge

LINES = ["the cat sat on the mat", "the dog sat", "a cat  and a dog"] * 5


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in LINES))
    return tmp_path / "text.txt"


def test_training_says_what_the_speller_learned(text: Path, tmp_path: Path) -> None:
    said = ok("train", "witten-bell", text, "-o", tmp_path / "model", "--vocabulary", "spelled").stderr
    assert "spelling: learned from 8 words of 11 different characters, order 8; " in said
    assert "white space: 85 places, " in said
    content = json.loads(ok("info", tmp_path / "model", "--json").stdout)
    assert content["label"] == "wb3+spelled"
    assert content["speller"]["words"] == 8
    assert content["separators"]["kinds"] == 3
    printed = json.loads(
        ok("train", "witten-bell", text, "-o", tmp_path / "model", "--vocabulary", "spelled", "--json").stdout
    )
    assert printed["fingerprint"] == content["fingerprint"]
    assert printed["speller"] == content["speller"]


def test_training_within_memory_makes_the_same_model(text: Path, tmp_path: Path) -> None:
    options = ["--vocabulary", "spelled", "--order", 2]
    ok("train", "kneser-ney", text, "-o", tmp_path / "one", *options)
    ok("train", "kneser-ney", text, "-o", tmp_path / "two", *options, "--memory", "100M", "--resume")
    one, two = (lmgauge.load_model(tmp_path / name) for name in ("one", "two"))
    assert one.fingerprint == two.fingerprint
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "one", "two"}


@pytest.mark.parametrize("name", ["model.arpa", "model.lm.gz", "model.binary"])
def test_a_speller_needs_a_folder(text: Path, tmp_path: Path, name: str) -> None:
    said = refused("train", "witten-bell", text, "-o", tmp_path / name, "--vocabulary", "spelled")
    assert "a spelled model is a folder" in said
    assert not (tmp_path / name).exists()


def test_standard_input_is_too_short_lived_for_training(tmp_path: Path) -> None:
    said = refused("train", "witten-bell", "-", "-o", tmp_path / "model", "--vocabulary", "spelled")
    assert "reads its text twice" in said
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_way_is_found_before_training(text: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    assert "was not written by lmgauge" in refused(
        "train", "witten-bell", text, "-o", tmp_path / "mine", "--vocabulary", "spelled"
    )


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("lstm", ["--vocabulary", "closed"], "is for n-gram models"),
        ("lstm", ["--vocabulary", "spelled", "--tokenizer", "byte"], "a probability already"),
        ("transformer", ["--vocabulary", "spelled", "--tokenizer", "bpe:300"], "a probability already"),
        ("witten-bell", ["--vocabulary", "spelled", "--tokenizer", "byte"], "its tokens are bytes"),
        ("witten-bell", ["--vocabulary", "spelled", "--no-eos"], "does not predict the ends of lines"),
        ("witten-bell", ["--vocabulary", "spelled", "--normalizer", "ccnet"], "changes the text"),
    ],
)
def test_what_cannot_be_spelled_is_refused(text: Path, tmp_path: Path, kind: str, options: list[str], words: str) -> None:
    assert words in refused("train", kind, text, "-o", tmp_path / "model", *options)
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt"}


def test_both_doors_make_the_same_model(text: Path, tmp_path: Path) -> None:
    lmgauge.train("witten-bell", text).save(tmp_path / "model")
    options = ["--order", 4, "--max-count", 5]
    said = ok("spell", tmp_path / "model", "--train", text, "-o", tmp_path / "copy", *options).stderr
    assert "wb3+spelled: every text has a probability" in said
    assert "order 4" in said
    python = lmgauge.spell(tmp_path / "model", text, order=4, max_count=5)
    assert lmgauge.load_model(tmp_path / "copy").fingerprint == python.fingerprint
    printed = json.loads(ok("spell", tmp_path / "model", "--train", text, *options, "--json").stdout)
    assert printed["fingerprint"] == python.fingerprint == lmgauge.load_model(tmp_path / "model").fingerprint
    assert "--replace" in refused("spell", tmp_path / "model", "--train", text)
    ok("spell", tmp_path / "model", "--train", text, "--replace")


def test_a_text_may_come_through_a_pipe(text: Path, tmp_path: Path) -> None:
    lmgauge.train("witten-bell", text).save(tmp_path / "model")
    ok("spell", tmp_path / "model", "--train", "-", stdin=text.read_bytes())
    assert (
        lmgauge.load_model(tmp_path / "model").fingerprint
        == lmgauge.train("witten-bell", text, vocabulary="spelled").fingerprint
    )


def test_a_file_needs_a_folder_to_go_to(text: Path, tmp_path: Path) -> None:
    lmgauge.train("witten-bell", text).save(tmp_path / "model.arpa")
    assert "name a folder to write with -o" in refused("spell", tmp_path / "model.arpa", "--train", text)
    ok("spell", tmp_path / "model.arpa", "--train", text, "-o", tmp_path / "model")
    assert "no such model" in refused("spell", tmp_path / "nowhere.arpa", "--train", text)
    assert "--train" in refused("spell", tmp_path / "model")


def test_conversion_keeps_the_speller_where_there_is_room(text: Path, tmp_path: Path) -> None:
    lmgauge.train("witten-bell", text, vocabulary="spelled", output=tmp_path / "model")
    ok("convert", tmp_path / "model", tmp_path / "copy", "--reserved", "escape")
    copy = lmgauge.load_model(tmp_path / "copy")
    assert isinstance(copy, lmgauge.models.SpelledModel)
    assert copy.reserved == "escape"
    for target, options in (("model.arpa", []), ("model.binary", []), ("characters", ["--tokenizer", "character"])):
        said = ok("convert", tmp_path / "model", tmp_path / target, *options).stderr
        assert f"{target} does not" in said
        assert lmgauge.load_model(tmp_path / target).label in ("arpa3", "kenlm3", "wb3")
