"""The simplest engine: one task after another, all arrays in memory. For small work, and to hold others against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lmgauge.work.stage import Array, Stage
from lmgauge.work.task import Task, make_arrays

T = TypeVar("T")


class MemoryEngine:
    """Runs stages in this thread."""

    workers = 1

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._made: dict[str, Any] = {}

    def write(self, name: str, array: Array) -> None:
        """Hold an array that the program itself made."""
        self._arrays[name] = array

    def read(self, name: str) -> Array:
        """Return an array."""
        return self._arrays[name]

    def drop(self, names: Sequence[str]) -> None:
        """Forget arrays; names that are not there do not matter."""
        for name in names:
            self._arrays.pop(name, None)

    def run(self, stage: Stage) -> None:
        """Run all tasks of a stage; then drop what no later stage reads."""
        for number in range(stage.tasks):
            make_arrays(Task.of(stage, number), self.read, self.write)
        self.drop(stage.drops)

    def once(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """Return what `make` does, which is called once."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made
