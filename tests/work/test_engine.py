"""A task makes what its stage says, and holds on to nothing; arrays are found in what a task takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from lmgauge.base.errors import InputError, LmgaugeError
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored, make_arrays, stored_in
from lmgauge.work.executor import Task, failure


def two(taken: Stored, read: Read) -> Iterator[Array]:
    yield np.array([1])
    yield read(taken)


@pytest.mark.parametrize(("makes", "problem"), [(1, "more arrays than the 1"), (3, "fewer arrays than the 3")])
def test_a_task_makes_what_its_stage_says(makes: int, problem: str) -> None:
    engine = Engine()
    stored = engine.write("a", np.array([1]))
    with pytest.raises(LmgaugeError, match=problem):
        engine.run("two", two, [stored], [NEW] * makes)


@dataclass(frozen=True)
class Made:
    one: Stored
    others: dict[int, tuple[Stored]]


def test_what_a_stage_makes_is_handed_on() -> None:
    engine = Engine()
    stored = engine.write("a", np.array([5]))
    made = engine.run("two", two, [stored] * 2, Made(NEW, {3: (NEW,)}))
    assert [engine.read(own.others[3][0]).tolist() for own in made] == [[5], [5]]
    engine.drop(made)
    assert list(engine.arrays.held) == [stored]


@dataclass(frozen=True)
class Taken:
    first: Stored
    others: dict[int, list[Stored]]
    settings: Any = "text"


def test_arrays_are_found_wherever_they_stand() -> None:
    a, b, c = map(Stored, "abc")
    assert list(stored_in((Taken(a, {2: [b], 3: []}), 7, None, [c]))) == [a, b, c]


def test_arrays_are_not_held_while_the_next_one_is_made() -> None:
    alive: list[int] = []

    class Counted(np.ndarray):
        def __del__(self) -> None:
            alive.pop()

    def work(taken: None, read: Read) -> Iterator[Array]:
        for _ in range(3):
            alive.append(1)
            assert len(alive) == 1
            yield np.zeros(1).view(Counted)

    sizes: list[int] = []
    task = Task("s", 0, work, None, ["a", "b", "c"])
    make_arrays(task, lambda stored: np.zeros(0), lambda name, array: sizes.append(array.size))
    assert (sizes, alive) == ([1, 1, 1], [])


def test_errors_for_the_user_stay_and_others_name_the_stage() -> None:
    task = Task("two", 0, two, Stored("a"))
    error = InputError("train.txt:3: not UTF-8")
    assert failure(task, error) is error
    other = failure(task, ZeroDivisionError("division by zero"))
    assert type(other) is LmgaugeError
    assert str(other) == "stage two, task 0: ZeroDivisionError: division by zero"
