"""One task of a stage, apart from the stage, so that it can be sent to another process or machine."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lmgauge.errors import LmgaugeError
from lmgauge.stages.array_folder import ArrayFolder
from lmgauge.stages.stage import Array, Read, Stage


@dataclass(frozen=True)
class Task:
    """What one call of the work of a stage needs to know.

    Attributes:
        stage: the name of the stage.
        number: of the task in its stage.
        work: as in `Stage`.
        settings: as in `Stage`.
        needs: the names of the arrays that the task may read.
        makes: the names of the arrays that it yields.
    """

    stage: str
    number: int
    work: Callable[[Read, int, Any], Iterator[Array]]
    settings: Any
    needs: Sequence[str]
    makes: Sequence[str]

    @classmethod
    def of(cls, stage: Stage, number: int) -> Task:
        """Return a task of a stage.

        Raises:
            ValueError: it would replace an array that it reads: where it is begun a second time, it would read another.

        Example:
            >>> stage = Stage("double", 2, print, None, needs=lambda i: [f"in/{i}"], makes=lambda i: [f"out/{i}"])
            >>> task = Task.of(stage, 1)
            >>> task.needs, task.makes
            (['in/1'], ['out/1'])
        """
        needs, makes = list(stage.needs(number)), list(stage.makes(number))
        if replaced := set(needs) & set(makes):
            raise ValueError(f"stage {stage.name} makes {min(replaced)}, which it reads")
        return cls(stage.name, number, stage.work, stage.settings, needs, makes)


def made_arrays(task: Task, read: Read) -> Iterator[Array]:
    """Do the work of a task, and yield what it makes in the order of `makes`; nothing here holds on to an array.

    Raises:
        KeyError: the work reads an array that the stage does not say that it needs: on other machines it would not be there.
        ValueError: it makes more or fewer arrays than the stage says.

    Example:
        On one machine every array is at hand; a task may read only those that it announces nevertheless:

        >>> import numpy as np
        >>> def total(read, number, settings):
        ...     yield read("a") + read("b")
        >>> arrays = {"a": np.array([1, 2]), "b": np.array([3, 4])}
        >>> list(made_arrays(Task("add", 0, total, None, needs=["a", "b"], makes=["sum"]), arrays.__getitem__))
        [array([4, 6])]
        >>> list(made_arrays(Task("add", 0, total, None, needs=["a"], makes=["sum"]), arrays.__getitem__))
        Traceback (most recent call last):
        KeyError: 'stage add reads b, which it does not say that it needs'
    """
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
    """Do the work of a task, and write each array that it makes under its name as soon as it is there.

    Raises:
        KeyError, ValueError: as `made_arrays`.
    """
    names = iter(task.makes)
    for array in made_arrays(task, read):
        write(next(names), array)
        del array


def failure(task: Task, error: Exception) -> LmgaugeError:
    """Return what to raise for an error of a task: the same, if it is one for the user, else one that names the stage.

    Args:
        task: that failed.
        error: what it raised.

    Example:
        >>> failure(Task("count", 3, print, None, [], []), IndexError("row 7"))
        LmgaugeError('stage count, task 3: IndexError: row 7')
    """
    if isinstance(error, LmgaugeError):
        return error
    return LmgaugeError(f"stage {task.stage}, task {task.number}: {type(error).__name__}: {error}")


class TaskError(Exception):
    """An error of a task on its way from another process: unlike some errors, it can be pickled.

    Args:
        kind: the class of the error for the user.
        message: what it says.
        trace: where it was raised.
    """

    def __init__(self, kind: type[LmgaugeError], message: str, trace: str) -> None:
        super().__init__(kind, message, trace)
        self._kind, self._message, self._trace = kind, message, trace

    @classmethod
    def of(cls, task: Task, error: Exception) -> TaskError:
        """Return an error of a task; call it where the error is handled."""
        shown = failure(task, error)
        return cls(type(shown), str(shown), traceback.format_exc())

    def error(self) -> LmgaugeError:
        """Return the error for the user, with the other process's traceback as a note."""
        error = self._kind.__new__(self._kind, self._message)
        error.args = (self._message,)  # which those of the operating system do not set
        error.add_note(self._trace)
        return error


def do_task(task: Task, arrays: ArrayFolder, check: Callable[[], None] = lambda: None) -> int:
    """Do a task on arrays of a folder, and return by how many bytes the files grew.

    Args:
        task: what to do.
        arrays: what it reads and writes.
        check: called before each array is read or written; may raise to end the task.

    Raises:
        Exception: what the task raises.

    Example:
        >>> import tempfile, numpy as np
        >>> from pathlib import Path
        >>> def double(read, number, settings):
        ...     yield 2 * read("a")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     arrays = ArrayFolder(Path(folder))
        ...     growth = arrays.write("a", np.array([1, 2]))
        ...     growth += do_task(Task("double", 0, double, None, ["a"], ["b"]), arrays)
        ...     arrays.read("b").tolist(), growth == arrays.total_size()
        ([2, 4], True)
    """
    growth = 0

    def _read(name: str) -> Array:
        check()
        return arrays.read(name)

    def _write(name: str, array: Array) -> None:
        nonlocal growth
        check()
        growth += arrays.write(name, array)

    make_arrays(task, _read, _write)
    return growth
