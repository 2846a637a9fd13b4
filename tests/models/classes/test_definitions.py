"""Classes files: what they may say, and what is refused with its line."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lmgauge.errors import InputError, ModelFileError
from lmgauge.models.classes.definitions import ClassDefinitions, read_classes


def read(folder: Path, content: bytes | str) -> ClassDefinitions:
    path = folder / "classes.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_classes(path)


def test_probabilities_may_be_left_out_and_words_look_like_numbers(tmp_path: Path) -> None:
    text = "\ufeffDAY 0.75 Monday\r\n\n  DAY\t2.5e-1\tSunday \nONE word\nNUMBER 7\nNUMBER .5 .5\nA a\u00a0b"
    assert read(tmp_path, text).expansions == (
        ("DAY", 0.75, "Monday"),
        ("DAY", 0.25, "Sunday"),
        ("ONE", 1.0, "word"),
        ("NUMBER", 1.0, "7"),
        ("NUMBER", 0.5, ".5"),
        ("A", 1.0, "a\u00a0b"),
    )
    assert read(tmp_path, read(tmp_path, text).to_text()).expansions == read(tmp_path, text).expansions


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("A 1 a\nCITY 0.5 New York\n", r"line 2: class 'CITY' stands for 2 words in a row \('New York'\)"),
        ("CITY New York", "2 words in a row"),
        ("DAY", "line 1: class 'DAY' has no word"),
        ("DAY 1.5 Monday", "not a probability"),
        ("DAY 0 Monday", "not a probability"),
        ("DAY -1 Monday", "not a probability"),
        ("DAY 1e999 Monday", "not a probability"),
        ("DAY 0.5 <unk>", "neither classes nor words"),
        ("</s> 0.5 end", "neither classes nor words"),
        ("\n \n", "no class is defined"),
        (b"DAY 1 \xff", "not UTF-8 at byte 7"),
    ],
)
def test_refused(tmp_path: Path, content: bytes | str, message: str) -> None:
    with pytest.raises((InputError, ModelFileError), match=message):
        read(tmp_path, content)


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_classes(tmp_path / "nothing")


def test_any_bytes_are_read_or_refused(tmp_path: Path) -> None:
    draw = random.Random(17)
    pieces = [
        b"A ",
        b"0.5 ",
        b"a",
        b"\n",
        b"\t",
        b"\xff",
        b"\x00",
        b"nan ",
        b"1e5 ",
        b"<s>",
        "é".encode(),
        b"\r",
        b"+ ",
        b"- ",
    ]
    for _ in range(300):
        content = b"".join(draw.choices(pieces, k=draw.randrange(12)))
        try:
            definitions = read(tmp_path, content)
        except (InputError, ModelFileError):
            continue
        assert all(0 < p <= 1 and name and word for name, p, word in definitions.expansions)
