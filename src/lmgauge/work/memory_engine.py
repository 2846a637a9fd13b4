"""The simplest engine: one task after another, all arrays in memory. For small work, and to hold others against."""

from __future__ import annotations

from collections.abc import Sequence

from lmgauge.work.stage import Array, Stage
from lmgauge.work.task import Task, make_arrays


class MemoryEngine:
    """Runs stages in this thread."""

    workers = 1

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._finished: set[str] = set()

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
        if self.is_finished(stage.name):
            return
        for number in range(stage.tasks):
            make_arrays(Task.of(stage, number), self.read, self.write)
        self.drop(stage.drops)
        self.finish(stage.name)

    def is_finished(self, name: str) -> bool:
        """Return True if `finish` was told this name, or a stage of this name ran."""
        return name in self._finished

    def finish(self, name: str) -> None:
        """Remember that what the program itself did under this name is done."""
        self._finished.add(name)
