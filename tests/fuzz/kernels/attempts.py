"""The compiled functions as a parser of arrays: whatever they are called with, they return or refuse."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from lmgauge._kernels import _native
from tests.fuzz.kernels.changing import INTEGERS, changed
from tests.fuzz.kernels.recording import Call, functions, record
from tests.fuzz.table import Attempt

REFUSALS = (ValueError, TypeError, OverflowError, IndexError)


class RefusedError(ValueError):
    """What the function that readers call raises."""


def _refuse(reason: str, about: object) -> None:
    raise RefusedError(reason)


def prepare(folder: Path) -> Attempt:
    calls = record(folder)
    names = [*functions(), "PartitionCounter"]

    def attempt(chance: random.Random) -> str:
        name = chance.choice(names)
        try:
            if name == "PartitionCounter":
                _count_partition(chance)
            else:
                known = calls[name]
                _call(name, changed(chance.choice(known), chance, known), chance)
        except REFUSALS:
            return "refused"
        except RuntimeError as error:
            if str(error) != "stopped":
                raise
        except MemoryError:
            return "too large"
        return "returned"

    return attempt


def _call(name: str, arguments: Call, chance: random.Random) -> None:
    if name in ("read_tables", "read_kenlm"):
        arguments = (*arguments[:-1], (*arguments[-1][:-1], _refuse))
    result = getattr(_native, name)(*arguments)
    if isinstance(result, _native.Reader):
        _read(result, chance)


def _read(reader: Any, chance: random.Random) -> None:
    """Use a reader in all its ways; words, states and arrays may be anything."""
    words = ["the", "cat", "<unk>", "</s>", "<s>", "", "\ud800", "x" * 3000, "grün", "a\0b", 0, 3, -1, 1 << 70, None, b"the"]
    state = reader.begin(chance.random() < 0.5)
    for _ in range(6):
        with _refusals():
            state = reader.step(state, chance.choice(words))[1]
    sentence = " ".join(chance.choices(["the", "cat", "sat", "<unk>", "\r", "\0", "漢字"], k=chance.choice((0, 3, 50, 900))))
    for use in (
        lambda: reader.score_line(sentence),
        lambda: reader.score_lines([sentence, "", "the cat"] * chance.choice((1, 90))),
        lambda: reader.word_ids(chance.choices(words, k=3)),
        lambda: _batch(reader, state, chance),
        lambda: _as_kenlm(reader, sentence, chance.choice(words)),
    ):
        with _refusals():
            use()


def _batch(reader: Any, state: Any, chance: random.Random) -> None:
    n = chance.choice((1, 3, 20))
    cells = np.tile(reader.pack([state]), (n, 1)).reshape(n, -1)
    words = np.array([chance.choice((0, 2, 3, 5)) for _ in range(n)], np.uint32)
    arguments = changed((cells, words, np.zeros_like(cells), np.zeros(n)), chance, [])
    with _refusals():
        reader.step_batch(*arguments)
    with _refusals():
        reader.step(reader.unpack(arguments[0], chance.choice((0, 1, *INTEGERS))), "the")


def _as_kenlm(reader: Any, sentence: str, word: Any) -> None:
    calls = _native.KenlmCalls(reader)
    before, behind = _native.WrittenState(), _native.WrittenState()
    calls.BaseScore(before, "the", behind)
    calls.BeginSentenceWrite(before)
    calls.BaseScore(before, "cat", before)
    assert (before < behind) + (behind < before) + (before == behind) == 1
    calls.score(sentence.replace("\0", ""))
    calls._full_scores(sentence, True, True)
    calls._full_step(before, word, behind)


class _refusals:
    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, REFUSALS)


def _count_partition(chance: random.Random) -> None:
    order, partitions = chance.choice((2, 2, 3, 4, 0, 1, 254, 255)), chance.choice((1, 2, 3, 0))
    expected = [chance.choice((0, 1, 10, *INTEGERS)) for _ in range(chance.choice((order - 1, order - 1, order)) % 300)]
    counter = _native.PartitionCounter(order, partitions, chance.choice((0, 0, 1, partitions)), expected)
    for _ in range(3):
        size = chance.choice((0, 1, order, order + 1, order + 2, 40, 400))
        ids = np.array([1, *(chance.choice((1, 2, 3, 4, 0xFFFFFFFF)) for _ in range(size))], np.uint32)
        with _refusals():
            counter.add(ids, chance.random() < 0.8)
        level = chance.choice((2, 2, order, *INTEGERS))
        with _refusals():
            counter.take(level, *(np.zeros(counter.rows(level) + chance.choice((0, 0, 0, 1)), np.uint32) for _ in range(3)))
