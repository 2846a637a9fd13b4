"""What a stage is, and what runs it.

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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

T = TypeVar("T")
Array = NDArray[Any]
Read = Callable[[str], Array]
"""Returns an array by its name. A task may only ask for what its stage says that it needs."""


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
    drops: Sequence[str] = ()  # the names of arrays that no later stage reads
    title: str = ""  # what the stage does, to say while it runs, such as `counting`; else its name


class Engine(Protocol):
    """Runs stages, and holds the arrays between them."""

    workers: int  # how many tasks run at a time

    def write(self, name: str, array: Array) -> None:
        """Hold an array that the program itself made."""

    def read(self, name: str) -> Array:
        """Return an array.

        Raises:
            KeyError: there is none of this name.
        """

    def drop(self, names: Sequence[str]) -> None:
        """Forget arrays; names that are not there do not matter."""

    def run(self, stage: Stage) -> None:
        """Run all tasks of a stage, unless an earlier run did; then drop what no later stage reads.

        Raises:
            LmgaugeError: what a task raised; or there is no room for what it made.
        """

    def once(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """Return what the program itself makes under this name: `make` is called unless an earlier run did.

        Args:
            name: not that of a stage.
            kind: what it is: a dataclass of JSON's types.
            make: makes it; arrays that it writes are there for later stages.
        """
