"""The simplest engine: one task after another, all arrays in memory. For small work, and to hold others against."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from lmgauge.work.engine import Engine, make_arrays, stored_in
from lmgauge.work.executor import Task


class MemoryEngine(Engine):
    """Runs stages in this thread."""

    def _do(self, tasks: Sequence[Task]) -> Generator[int]:
        for task in tasks:
            assert self.arrays.held.keys() >= {*stored_in(task.taken)}  # as an engine needs it that sends them along
            make_arrays(task, self.arrays.read, self.arrays.write)
            yield task.number
