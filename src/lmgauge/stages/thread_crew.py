"""Threads that do tasks on arrays of a folder. Kernels release the GIL, so that threads do not wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from contextlib import closing

from lmgauge.errors import LmgaugeError
from lmgauge.stages.array_folder import ArrayFolder
from lmgauge.stages.task import Task, do_task, failure
from lmgauge.threads import map_as_done


class _StoppedError(Exception):
    """Raised in a task that need not go on, as another one failed."""


class ThreadCrew:
    """Does tasks in threads of this process.

    Args:
        arrays: what tasks read and write.
        workers: how many tasks are at work at a time.
    """

    def __init__(self, arrays: ArrayFolder, workers: int) -> None:
        self._arrays, self._workers = arrays, workers

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[int, int]]:
        """Do tasks, and yield their numbers as they are done, and by how many bytes the files grew.

        If one fails, or the caller closes the iterator, those at work end when they next read or write an array.

        Raises:
            LmgaugeError: what a task raised, or that it failed.

        Example:
            >>> import tempfile, numpy as np
            >>> from pathlib import Path
            >>> def square(read, number, settings):
            ...     yield np.array([number**2])
            >>> tasks = [Task("square", number, square, None, [], [f"squares/{number}"]) for number in range(3)]
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     arrays = ArrayFolder(Path(folder))
            ...     done = sorted(number for number, growth in ThreadCrew(arrays, workers=2).run(tasks))
            ...     done, [int(arrays.read(f"squares/{number}")[0]) for number in done]
            ([0, 1, 2], [0, 1, 4])
        """
        stopped = threading.Event()
        failures: list[LmgaugeError] = []

        def _check() -> None:
            if stopped.is_set():
                raise _StoppedError

        def _do(task: Task) -> int:
            try:
                return do_task(task, self._arrays, _check)
            except _StoppedError:
                raise
            except Exception as error:
                failures.append(failure(task, error))
                stopped.set()
                raise failures[-1] from error

        try:
            with closing(map_as_done(_do, tasks, self._workers)) as done:
                for task, growth in done:
                    yield task.number, growth
        except _StoppedError:
            raise failures[0] from None
        finally:
            stopped.set()

    def close(self) -> None:
        """Threads that have nothing to do need not be ended."""
