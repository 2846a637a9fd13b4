"""A task is held to what its stage says that it reads and makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from tests.work.memory_engine import MemoryEngine

from lmgauge.errors import InputError, LmgaugeError
from lmgauge.work.stage import Array, Read, Stage, Task, failure, made_arrays


def two(read: Read, number: int, settings: None) -> Iterator[Array]:
    yield np.array([number])
    yield read("a")


STAGE = Stage("two", 1, two, None, needs=lambda i: ["a"], makes=lambda i: ["b", "c"])


@pytest.mark.parametrize(("makes", "problem"), [("b", "more arrays than the 1"), ("bcd", "fewer arrays than the 3")])
def test_a_task_makes_what_its_stage_says(makes: str, problem: str) -> None:
    engine = MemoryEngine()
    engine.write("a", np.array([1]))
    with pytest.raises(ValueError, match=problem):
        engine.run(replace(STAGE, makes=lambda i: list(makes)))


def test_a_task_reads_what_its_stage_says() -> None:
    engine = MemoryEngine()
    engine.write("a", np.array([1]))
    with pytest.raises(KeyError, match="stage two reads a, which it does not say"):
        engine.run(replace(STAGE, needs=lambda i: ["z"]))


def test_a_task_does_not_replace_what_it_reads() -> None:
    with pytest.raises(ValueError, match="stage two makes a, which it reads"):
        replace(STAGE, makes=lambda i: ["a"]).task(0)


def test_arrays_are_not_held_while_the_next_one_is_made() -> None:
    alive: list[int] = []

    class Counted(np.ndarray):
        def __del__(self) -> None:
            alive.pop()

    def work(read: Read, number: int, settings: None) -> Iterator[Array]:
        for _ in range(3):
            alive.append(1)
            assert len(alive) == 1
            yield np.zeros(1).view(Counted)

    names = ["a", "b", "c"]
    count = 0
    for array in made_arrays(Task("s", 0, work, None, [], names), lambda name: np.zeros(0)):
        count += array.size + 1
        del array
    assert (count, alive) == (6, [])


def test_errors_for_the_user_stay_and_others_name_the_stage() -> None:
    task = STAGE.task(0)
    error = InputError("train.txt:3: not UTF-8")
    assert failure(task, error) is error
    other = failure(task, ZeroDivisionError("division by zero"))
    assert type(other) is LmgaugeError
    assert str(other) == "stage two, task 0: ZeroDivisionError: division by zero"
