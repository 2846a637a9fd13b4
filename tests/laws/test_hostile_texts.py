"""The work that a text makes grows with its length, whatever is in it.

Timings decide no test, so work is counted: calls of functions in Python and of those that are compiled, and what is copied
out of strings and arrays, of a text and of one four times as long. `benchmarks/hostile_texts.py` has the texts, and times.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import tasks
from lmgauge.text.overlap.find import WholeDuplicates
from lmgauge.text.overlap.token_stream import StreamEncoder, WholeText

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "tests" / "data" / "pud.en.txt"
SIZE, TIMES = 400, 4
MOST = 4.6  # what grows with the length is four times as much, and what is read once more falls on it
SQUARES = (
    *("blanks between letters", "blanks and tabs", "no-break spaces", "spaces of all kinds", "carriage returns", "newlines"),
    *("one letter", "letters, no pattern", "letters and blanks", "letters on lines", "one known word", "digits"),
    *("quotation marks", "combining marks", "emoji joined", "scripts mixed", "prose on one line", "invalid UTF-8"),
)
"""Of the benchmark's texts those with long runs, or much of one thing."""


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[int], bytes]]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    known: dict[str, Callable[[int], bytes]] = importlib.import_module("hostile_texts").TEXTS
    return {name: known[name] for name in SQUARES}


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, those that are compiled among them."""
    number = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return number


def _trained(**options: Any) -> Any:
    return lmgauge.train("witten-bell", TRAINING, **{"order": 2, "reserved": "escape", "threads": 1, **options})


MODELS: dict[str, Callable[[], Any]] = {
    "words": _trained,
    "treebank": lambda: _trained(tokenizer="treebank"),
    "characters": lambda: _trained(tokenizer="character"),
    "bytes": lambda: _trained(tokenizer="byte"),
    "spelled": lambda: _trained(vocabulary="spelled", min_count=2),
    "treebank, spelled": lambda: _trained(tokenizer="treebank", vocabulary="spelled"),
    "cache": lambda: lmgauge.cache(_trained(vocabulary="spelled"), weight=0.1),
    "mixture": lambda: lmgauge.mix([_trained(), _trained(order=1)], weights=[0.5, 0.5]),
}


@pytest.mark.parametrize("kind", MODELS)
def test_calls_of_a_model_grow_with_the_length_of_a_text(
    kind: str, texts: dict[str, Callable[[int], bytes]], tmp_path: Path
) -> None:
    model, path = MODELS[kind](), tmp_path / "text.txt"

    def score() -> None:
        list(model.score(lmgauge.Corpus.from_files([path], errors="replace"), threads=1))

    path.write_bytes(TRAINING.read_bytes()[:SIZE])
    score()  # what is made once
    for name, text in texts.items():
        work = []
        for size in (SIZE, TIMES * SIZE):
            path.write_bytes(text(size))
            work.append(calls(score))
        assert work[1] <= MOST * work[0], name


@pytest.mark.parametrize("measure", [tasks.bleu, tasks.chrf, tasks.ter, tasks.wer, tasks.cer])
def test_calls_of_a_task_grow_with_the_length_of_a_text(
    measure: Callable[..., object], texts: dict[str, Callable[[int], bytes]]
) -> None:
    measure(hypotheses=["a b"], references=["b a"], threads=1)  # what is imported and made once
    for name, text in texts.items():
        work = []
        for size in (SIZE, TIMES * SIZE):
            lines = text(size).decode(errors="replace").replace("\r", " ").split("\n")
            lines[0] += "x"  # a text that is all blank is refused
            turned = [line[len(line) // 2 :] + line[: len(line) // 2] for line in lines]
            work.append(calls(lambda: measure(hypotheses=turned, references=lines, threads=1)))  # noqa: B023
        assert work[1] <= MOST * work[0], name


class CopiedString(str):
    """Text that counts how many characters are copied out of it."""

    copied = 0

    def __getitem__(self, key: Any) -> str:
        part = super().__getitem__(key)
        CopiedString.copied += len(part)
        return part


class CopiedArray(np.ndarray[Any, Any]):
    """An array that counts how many cells are taken out of it."""

    copied = 0

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        CopiedArray.copied += np.size(part)
        return part


def test_white_space_is_spelled_without_being_copied_for_each_character() -> None:
    separators = _trained(vocabulary="spelled").separators
    CopiedString.copied = 0
    separators._chain(CopiedString(" " * SIZE))
    assert not CopiedString.copied


def test_equal_lines_are_compared_once() -> None:
    copied = []
    for size in (SIZE, TIMES * SIZE):
        test = lmgauge.Corpus.from_strings(["a"] * size)
        encoder = StreamEncoder("word", folded=False)
        whole = WholeText(test, encoder)
        encoder.finish()
        duplicates = WholeDuplicates(whole)
        duplicates._segments = duplicates._segments.view(CopiedArray)
        CopiedArray.copied = 0
        block = next(iter(test))
        duplicates.add(block, duplicates.candidates(block))
        assert duplicates.matches.all()
        copied.append(CopiedArray.copied)
    assert copied[1] <= MOST * copied[0]


def test_a_token_behind_much_white_space_is_found_in_one_step() -> None:
    encoder = StreamEncoder("word", folded=False)
    work = []
    for size in (SIZE, TIMES * SIZE):
        block = encoder(next(iter(lmgauge.Corpus.from_strings(["a" + " " * size + "b"]))))
        work.append(calls(lambda: block.token_places(np.array([0, 1]))))  # noqa: B023
        assert [places.tolist() for places in block.token_places(np.array([0, 1]))] == [[0, 0], [0, size + 1]]
    assert work[1] == work[0]
