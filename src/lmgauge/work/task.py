"""A task, apart from the stage that it is of, so that it can be sent to another process or machine; and its errors."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lmgauge.errors import LmgaugeError
from lmgauge.threads import go_on
from lmgauge.work.array_folder import ArrayFolder
from lmgauge.work.stage import Array, Read, Stage

R = TypeVar("R")


@dataclass(frozen=True)
class Call(Generic[R]):
    """A task: a function of a module and what it is called with, as it may be sent to another process."""

    stage: str  # what it is a part of, for errors
    number: int  # of the task in its stage
    work: Callable[[int, Any], R]
    settings: Any

    def __call__(self) -> R:
        return self.work(self.number, self.settings)

    def __str__(self) -> str:
        return f"stage {self.stage}, task {self.number}"


@dataclass(frozen=True)
class Task:
    """What one call of the work of a stage needs to know."""

    stage: str
    number: int  # of the task in its stage
    work: Callable[[Read, int, Any], Iterator[Array]]
    settings: Any
    needs: Sequence[str]  # the names of the arrays that the task may read
    makes: Sequence[str]  # the names of the arrays that it yields

    def __str__(self) -> str:
        return f"stage {self.stage}, task {self.number}"

    @classmethod
    def of(cls, stage: Stage, number: int) -> Task:
        """Return a task of a stage."""
        needs, makes = list(stage.needs(number)), list(stage.makes(number))
        # A task that ran twice would read what it made itself.
        if replaced := set(needs) & set(makes):
            raise ValueError(f"stage {stage.name} makes {min(replaced)}, which it reads")
        return cls(stage.name, number, stage.work, stage.settings, needs, makes)


def made_arrays(task: Task, read: Read) -> Iterator[Array]:
    """Do the work of a task, and yield what it makes in the order of `makes`; nothing here holds on to an array."""
    needs = frozenset(task.needs)

    def _checked(name: str) -> Array:
        if name not in needs:
            raise KeyError(f"stage {task.stage} reads {name}, which it does not say that it needs")
        return read(name)

    count = 0
    for array in task.work(_checked, task.number, task.settings):
        count += 1  # enumerate would hold on to the array while the next one is made
        if count > len(task.makes):
            break
        yield array
        del array
    if count != len(task.makes):
        more = "more" if count > len(task.makes) else "fewer"
        raise ValueError(f"stage {task.stage} makes {more} arrays than the {len(task.makes)} that it says")


def make_arrays(task: Task, read: Read, write: Callable[[str, Array], object]) -> None:
    """Do the work of a task, and write each array that it makes under its name as soon as it is there."""
    names = iter(task.makes)
    for array in made_arrays(task, read):
        write(next(names), array)
        del array


def failure(task: Call[Any] | Task, error: Exception) -> LmgaugeError:
    """Return what to raise for an error of a task: the same, if it is one for the user, else one that names the stage."""
    if isinstance(error, LmgaugeError):
        return error
    return LmgaugeError(f"{task}: {type(error).__name__}: {error}")


class TaskError(Exception):
    """An error of a task on its way from another process: unlike some errors, it can be pickled."""

    def __init__(self, kind: type[LmgaugeError], message: str, trace: str) -> None:
        super().__init__(kind, message, trace)
        self._kind, self._message, self._trace = kind, message, trace

    @classmethod
    def of(cls, task: Call[Any] | Task, error: Exception) -> TaskError:
        """Return an error of a task; call it where the error is handled."""
        shown = failure(task, error)
        return cls(type(shown), str(shown), traceback.format_exc())

    def error(self) -> LmgaugeError:
        """Return the error for the user, with the other process's traceback as a note."""
        # Not by its constructor, which may take other arguments than a message.
        error = self._kind.__new__(self._kind, self._message)
        error.args = (self._message,)  # which those of the operating system do not set
        error.add_note(self._trace)
        return error


def do_task(number: int, settings: tuple[Task, ArrayFolder]) -> int:
    """Do a task on arrays of a folder, and return by how many bytes the files grew.

    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> def double(read, number, settings):
    ...     yield 2 * read("a")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     arrays = ArrayFolder(Path(folder))
    ...     growth = arrays.write("a", np.array([1, 2]))
    ...     growth += do_task(0, (Task("double", 0, double, None, ["a"], ["b"]), arrays))
    ...     arrays.read("b").tolist(), growth == arrays.total_size()
    ([2, 4], True)
    """
    (task, arrays), growth = settings, 0

    def _read(name: str) -> Array:
        go_on()
        return arrays.read(name)

    def _write(name: str, array: Array) -> None:
        nonlocal growth
        go_on()
        growth += arrays.write(name, array)

    make_arrays(task, _read, _write)
    return growth
