"""Stages of tasks that make arrays out of arrays, for work larger than memory, and what runs them.

A stage is a function of one value in which arrays stand by their names (`Stored`), wherever they lie; it reads them when it
needs them, and yields what it makes. A plan is code that hands on what stages made. The sum of squares of parts:

    >>> def square(part, read):
    ...     yield read(part) ** 2
    >>> def add(parts, read):
    ...     yield sum(read(part).sum() for part in parts)
    >>> def sum_of_squares(engine, parts):
    ...     squares = engine.run("square", square, parts, NEW)
    ...     (total,) = engine.run("add", add, [squares], NEW)
    ...     engine.drop(squares)
    ...     return engine.read(total)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from numpy.typing import NDArray

from lmgauge.base.memory import give_back
from lmgauge.base.threads import go_on
from lmgauge.work.executor import Countdown, Crew, Task
from lmgauge.work.manifest import decode_facts

M = TypeVar("M")
T = TypeVar("T")
Array = NDArray[Any]


@dataclass(frozen=True)
class Stored:
    """An array that an engine holds."""

    name: str


NEW = Stored("")
"""Stands for an array in what a stage makes."""

Read = Callable[[Stored], Array]
_LARGE = 64 << 20


def stored_in(value: object) -> Iterator[Stored]:
    """Yield the arrays that stand in a value of lists, tuples, mappings and dataclasses."""
    if isinstance(value, Stored):
        yield value
    elif is_dataclass(value) or isinstance(value, list | tuple | Mapping):
        parts = value if isinstance(value, list | tuple) else (value if isinstance(value, Mapping) else vars(value)).values()
        for part in parts:
            yield from stored_in(part)


def _named(value: Any, task: str, numbers: Iterator[int]) -> Any:
    # What a task makes, with a name in the place of each `NEW`.
    if isinstance(value, Stored):
        return Stored(f"{task}/{next(numbers)}")
    if isinstance(value, list | tuple):
        return type(value)(_named(part, task, numbers) for part in value)
    if isinstance(value, Mapping):
        return {key: _named(part, task, numbers) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{name: _named(part, task, numbers) for name, part in vars(value).items()})
    return value


class Arrays:
    """Arrays by their names: these in memory, others elsewhere."""

    _freed = 0  # bytes, since memory was given back

    def __init__(self) -> None:
        self.held: dict[Stored, Any] = {}

    def write(self, stored: Stored, array: Array) -> None:
        """Hold an array, in the place of one of that name."""
        self.held[stored] = array

    def read(self, stored: Stored) -> Array:
        """Return an array."""
        return self.held[stored]  # type: ignore[no-any-return]

    def remove(self, stored: Stored) -> None:
        """Forget an array, if there is one of this name."""
        self._freed += getattr(self.held.pop(stored, None), "nbytes", 0)
        if self._freed > _LARGE:
            self._freed = 0
            give_back()


class Engine:
    """Runs stages, and holds the arrays between them: this one in memory, with tasks in threads; others elsewhere."""

    workers: int  # how many tasks run at a time
    notes: MutableMapping[tuple[str, int | None], Any]  # tasks that are done and, by None, stages, and what came of them
    place = Path("memory")  # where that is noted

    def __init__(self, workers: int = 1, arrays: Arrays | None = None, *, processes: bool = False) -> None:
        self.workers, self.notes, self.arrays = workers, {}, arrays or Arrays()
        self._crew = Crew(workers, processes=processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End what runs tasks."""
        self._crew.close()

    def write(self, name: str, array: Array) -> Stored:
        """Hold an array that the program itself made."""
        stored = Stored(name)
        with self._explained():
            self.arrays.write(stored, array)
        return stored

    def read(self, stored: Stored) -> Array:
        """Return an array."""
        return self.arrays.read(stored)

    def drop(self, *values: object) -> None:
        """Forget the arrays in some values; those that are not there do not matter."""
        for value in values:
            for stored in stored_in(value):
                self.arrays.remove(stored)

    def _explained(self) -> AbstractContextManager[None]:
        # What says of errors in the block how to go on.
        return nullcontext()

    def run(
        self, name: str, work: Callable[[T, Read], Iterator[Array]], takes: Sequence[T], makes: M, title: str = ""
    ) -> list[M]:
        """Run the tasks of a stage that no earlier run did, and return what each makes.

        Args:
            name: of the stage, once in a piece of work, such as `count`.
            work: yields the arrays; a function of a module, as it may run in another process.
            takes: what each task takes, with all arrays that it reads; can be pickled. No task depends on another.
            makes: what each task makes, with `NEW` for each array in the order in which it yields them.
            title: what the stage does, to say while it runs, such as `counting`; else its name.

        Raises:
            LmgaugeError: what a task raised; or there is no room for what it made.
        """
        made: list[M] = [_named(makes, f"{name}/{number}", count()) for number in range(len(takes))]
        tasks = [Task(name, n, work, own, list(stored_in(made[n]))) for n, own in enumerate(takes)]
        if tasks and not self.is_finished(name):
            rest = [task for task in tasks if (name, task.number) not in self.notes]
            # Whoever listens to progress hears how many tasks are done, and about how many seconds the others will take.
            countdown = Countdown(title or name, len(tasks), len(tasks) - len(rest))
            do = partial(make_arrays, read=self.arrays.read, write=self.arrays.write)
            with self._explained(), closing(self._crew.run(do, rest)) as done:
                for number, _ in done:
                    # A note is never about something that is missing. A task that was not noted runs again, and replaces
                    # what it had made.
                    self.notes[name, number] = None
                    countdown.step()
                self.notes[name, None] = None
        return made

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


def make_arrays(task: Task, read: Read, write: Callable[[Stored, Array], object]) -> None:
    """Do the work of a task, and write each array that it makes as soon as it is there; nothing here holds on to one."""

    def _read(stored: Stored) -> Array:
        go_on()
        return read(stored)

    made = 0
    for array in task.work(task.taken, _read):
        go_on()
        made += 1  # enumerate would hold on to the array while the next one is made
        if made > len(task.makes):
            break
        write(task.makes[made - 1], array)
        del array
    if made != len(task.makes):
        more = "more" if made > len(task.makes) else "fewer"
        raise ValueError(f"stage {task.stage} makes {more} arrays than the {len(task.makes)} that it says")
