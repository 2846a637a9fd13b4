"""The simplest engine: one task after another, all arrays in memory. For small work, and to hold others against."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from lmgauge.work.stage import Array, Engine, Stage, below, make_arrays


class MemoryEngine(Engine):
    """Runs stages in this thread."""

    workers = 1

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self.notes = {}

    def write(self, name: str, array: Array) -> None:
        """Hold an array that the program itself made."""
        self._arrays[name] = array

    def read(self, name: str) -> Array:
        """Return an array."""
        return self._arrays[name]

    def drop(self, names: Sequence[str]) -> None:
        """Forget arrays, and those below them."""
        for name in names:
            for each in below(name, self._arrays):
                del self._arrays[each]

    def _do(self, stage: Stage, numbers: Sequence[int]) -> Generator[int]:
        for number in numbers:
            make_arrays(stage.task(number), self.read, self.write)
            yield number
