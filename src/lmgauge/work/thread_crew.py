"""Threads that do tasks on arrays of a folder. Kernels release the GIL, so that threads do not wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable
from contextlib import closing

from lmgauge.errors import LmgaugeError
from lmgauge.threads import map_as_done
from lmgauge.work.array_folder import ArrayFolder
from lmgauge.work.task import Task, do_task, failure


class _StoppedError(Exception):
    """Raised in a task that need not go on, as another one failed."""


class ThreadCrew:
    """Does tasks in threads of this process."""

    def __init__(self, arrays: ArrayFolder, workers: int) -> None:
        self._arrays, self._workers = arrays, workers

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[int, int]]:
        """Do tasks, and yield their numbers as they are done, and by how many bytes the files grew."""
        # If one fails, or the caller closes the iterator, those at work end when they next read or write an array.
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
