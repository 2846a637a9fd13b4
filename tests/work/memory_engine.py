"""The simplest engine: one task after another, all arrays in memory. For small work, and to hold others against."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from lmgauge.work.engine import Array, Engine, Stored, make_arrays, stored_in
from lmgauge.work.task import Task


class MemoryEngine(Engine):
    """Runs stages in this thread."""

    workers = 1

    def __init__(self) -> None:
        self.arrays: dict[Stored, Array] = {}
        self.notes = {}

    def read(self, stored: Stored) -> Array:
        """Return an array."""
        return self.arrays[stored]

    def _write(self, stored: Stored, array: Array) -> None:
        self.arrays[stored] = array

    def _remove(self, stored: Stored) -> None:
        self.arrays.pop(stored, None)

    def _do(self, tasks: Sequence[Task]) -> Generator[int]:
        for task in tasks:
            assert self.arrays.keys() >= {*stored_in(task.taken)}  # as an engine needs it that sends them along
            make_arrays(task, self.read, self._write)
            yield task.number
