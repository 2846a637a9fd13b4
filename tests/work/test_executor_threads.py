"""Threads that do tasks: few at a time, and a task that asks for threads does its work itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lmgauge.base.errors import InputError
from lmgauge.base.threads import map_in_order
from lmgauge.work.engine import Array, ArrayFolder, Read, Stored, make_arrays
from lmgauge.work.executor import Crew, Task


def threads_of(begun: threading.Barrier, read: Read) -> Iterator[Array]:
    """Wait until two tasks are at work, then count the threads that do what the task gives away."""
    begun.wait(60)
    names = list(map_in_order(lambda _: threading.get_ident(), range(2), 2))
    yield np.array([len(set(names)), *names])


def test_tasks_that_ask_for_threads_do_the_work_themselves(tmp_path: Path) -> None:
    files, begun = ArrayFolder(tmp_path), threading.Barrier(2)
    tasks = [Task("s", number, threads_of, begun, [Stored(str(number))]) for number in range(2)]
    done = dict(Crew(2).run(partial(make_arrays, read=files.read, write=files.write), tasks))
    assert done == {0: None, 1: None}
    first, second = (files.read(Stored(name)).tolist() for name in "01")
    assert (first[0], second[0], first[1] != second[1]) == (1, 1, True)


def test_no_task_is_begun_once_one_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    crew, closed, begun = Crew(2), threading.Event(), list[int]()
    monkeypatch.setattr(crew, "close", closed.set)

    def fail(task: Task) -> None:
        begun.append(task.number)
        raise InputError("line 3 is bad")

    def tasks() -> Iterator[Task]:
        yield Task("s", 0, fail, None)
        assert closed.wait(60)
        yield Task("s", 1, fail, None)

    with pytest.raises(InputError, match="line 3 is bad"):
        list(crew.run(fail, tasks()))
    assert begun == [0]
