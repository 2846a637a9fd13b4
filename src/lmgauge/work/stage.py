"""What a stage is, what a task of it does and how its errors come back, and what runs stages.

An example, the sum of squares in parts. The tasks of the first stage make an array each; the one task of the second reads
them all:

    >>> import numpy as np
    >>> def square(read, number, scale):
    ...     yield scale * read(f"part/{number}") ** 2
    >>> def add(read, number, parts):
    ...     yield np.array([sum(int(read(f"squared/{i}").sum()) for i in range(parts))])
    >>> squares = Stage("square", 2, square, 10, needs=lambda i: [f"part/{i}"], makes=lambda i: [f"squared/{i}"])
    >>> total = Stage("add", 1, add, 2, needs=lambda i: ["squared/0", "squared/1"], makes=lambda i: ["total"])
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from numpy.typing import NDArray

from lmgauge.errors import LmgaugeError
from lmgauge.threads import go_on
from lmgauge.work.countdown import Countdown
from lmgauge.work.manifest import decode_facts

T = TypeVar("T")
Array = NDArray[Any]
Read = Callable[[str], Array]
"""Returns an array by its name. A task may only ask for what its stage says that it needs."""


@dataclass(frozen=True)
class Task:
    """A task, apart from the stage that it is of, so that it can be sent to another process or machine."""

    stage: str  # what it is a part of, for errors
    number: int  # of the task in its stage
    work: Callable[..., Any]
    settings: Any
    needs: Sequence[str] = ()  # the names of the arrays that the task may read
    makes: Sequence[str] = ()  # the names of the arrays that it yields

    def __str__(self) -> str:
        return f"stage {self.stage}, task {self.number}"


@dataclass(frozen=True)
class Stage:
    """Tasks that do not depend on each other."""

    name: str  # of the stage, once in a piece of work, such as `count`
    tasks: int
    # called with what reads arrays, the number of the task, and the settings; yields what the task makes, in the order of
    # `makes`. It is a function of a module, as it may run in another process.
    work: Callable[[Read, int, Any], Iterator[Array]]
    settings: Any  # what all tasks of the stage know; small, and can be pickled
    needs: Callable[[int], Sequence[str]]  # the names of the arrays that a task may read, by its number
    makes: Callable[[int], Sequence[str]]  # the names of the arrays that it yields, by its number
    drops: Sequence[str] = ()  # the names of arrays that no later stage reads, see `Engine.drop`
    title: str = ""  # what the stage does, to say while it runs, such as `counting`; else its name

    def task(self, number: int) -> Task:
        """Return a task."""
        needs, makes = list(self.needs(number)), list(self.makes(number))
        # A task that ran twice would read what it made itself.
        if replaced := set(needs) & set(makes):
            raise ValueError(f"stage {self.name} makes {min(replaced)}, which it reads")
        return Task(self.name, number, self.work, self.settings, needs, makes)


class Engine(ABC):
    """Runs stages, and holds the arrays between them."""

    workers: int  # how many tasks run at a time
    notes: MutableMapping[tuple[str, int | None], Any]  # tasks that are done and, by None, stages, and what came of them
    place = Path("memory")  # where that is noted

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027 - one that holds nothing but arrays has nothing to close
        """End what runs tasks."""

    @abstractmethod
    def write(self, name: str, array: Array) -> None:
        """Hold an array that the program itself made."""

    @abstractmethod
    def read(self, name: str) -> Array:
        """Return an array.

        Raises:
            KeyError: there is none of this name.
        """

    @abstractmethod
    def drop(self, names: Sequence[str]) -> None:
        """Forget arrays: `a` is `a` and what stands below it, such as `a/0/1`; names that are not there do not matter."""

    @abstractmethod
    def _do(self, stage: Stage, numbers: Sequence[int]) -> Generator[int]:
        # Do tasks of a stage, and yield the number of each when its arrays are whole.
        ...

    def _explained(self) -> AbstractContextManager[None]:
        # What says of errors in the block how to go on.
        return nullcontext()

    def run(self, stage: Stage) -> None:
        """Run the tasks of a stage that no earlier run did; then drop what no later stage reads.

        Raises:
            LmgaugeError: what a task raised; or there is no room for what it made.
        """
        # Whoever listens to progress hears how many tasks are done, and about how many seconds the others will take.
        if self.is_finished(stage.name):
            return
        rest = [number for number in range(stage.tasks) if (stage.name, number) not in self.notes]
        countdown = Countdown(stage.title or stage.name, stage.tasks, stage.tasks - len(rest))
        with self._explained():
            with closing(self._do(stage, rest)) as done:
                for number in done:
                    # A note is never about something that is missing. A task that was not noted runs again, and replaces
                    # what it had made.
                    self.notes[stage.name, number] = None
                    countdown.step()
            self.drop(stage.drops)
            self.notes[stage.name, None] = None

    def is_finished(self, name: str) -> bool:
        """Return True if the stage of this name is done, or what `once` makes."""
        return (name, None) in self.notes

    def once(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """Return what the program itself makes under this name: `make` is called unless an earlier run did.

        Args:
            name: not that of a stage.
            kind: what it is: a dataclass of JSON's types.
            make: makes it; arrays that it writes are there for later stages.
        """
        if self.is_finished(name):
            return decode_facts(self.notes[name, None], kind, self.place)
        made = make()
        with self._explained():
            self.notes[name, None] = asdict(cast(Any, made))
        return made


def made_arrays(task: Task, read: Read) -> Iterator[Array]:
    """Do the work of a task, and yield what it makes in the order of `makes`; nothing here holds on to an array."""
    needs = frozenset(task.needs)

    def _checked(name: str) -> Array:
        if name not in needs:
            raise KeyError(f"stage {task.stage} reads {name}, which it does not say that it needs")
        go_on()
        return read(name)

    count = 0
    for array in task.work(_checked, task.number, task.settings):
        go_on()
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


def below(name: str, names: Iterable[str]) -> list[str]:
    """Return those of some names that are this one, or stand below it."""
    return [each for each in names if each == name or each.startswith(f"{name}/")]


def failure(task: Task, error: Exception) -> LmgaugeError:
    """Return what to raise for an error of a task: the same, if it is one for the user, else one that names the stage."""
    if isinstance(error, LmgaugeError):
        return error
    return LmgaugeError(f"{task}: {type(error).__name__}: {error}")


def sent_failure(task: Task, error: Exception) -> LmgaugeError:
    """Return what to send to another process for an error of a task, where it is handled: its traceback is a note."""
    shown = failure(task, error)
    shown.add_note(traceback.format_exc())
    return shown
