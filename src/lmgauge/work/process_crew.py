"""Processes that do tasks on arrays of a folder: for tasks that hold the GIL."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType

from lmgauge.errors import LmgaugeError
from lmgauge.threads import be_worker
from lmgauge.work.array_folder import ArrayFolder
from lmgauge.work.task import Task, TaskError, do_task

_GRACE_SECONDS = 3.0


@dataclass(frozen=True)
class _Worker:
    process: BaseProcess
    connection: Connection

    def send(self, task: Task) -> Task:
        try:
            self.connection.send(task)
        except BrokenPipeError:
            raise self._ended(task) from None
        return task

    def answer(self, task: Task) -> int:
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            raise self._ended(task) from None
        if isinstance(answer, TaskError):
            raise answer.error()
        return int(answer)

    def _ended(self, task: Task) -> LmgaugeError:
        # What to say of a process that ended before it answered.
        self.process.join(10)
        code = self.process.exitcode
        if code is not None and code < 0:
            how = f"was killed by signal {-code}, perhaps for lack of memory"
        else:
            how = f'ended with exit code {code}; a script that trains in processes needs `if __name__ == "__main__":`'
        return LmgaugeError(f"stage {task.stage}, task {task.number}: its process {how}")


class ProcessCrew:
    """Does tasks in other processes, which start at the first task and wait for more until `close`."""

    def __init__(self, arrays: ArrayFolder, workers: int) -> None:
        self._arrays, self._count = arrays, workers
        self._workers: list[_Worker] = []

    def run(self, tasks: Iterable[Task]) -> Generator[tuple[int, int]]:
        """Do tasks, and yield their numbers as they are done, and by how many bytes the files grew."""
        # If one fails, or the caller closes the iterator before its end, the processes are ended.
        rest = iter(tasks)
        at_work: dict[Connection, tuple[_Worker, Task]] = {}
        try:
            for number, task in enumerate(islice(rest, self._count)):
                if number == len(self._workers):
                    self._workers.append(_start(self._arrays))
                worker = self._workers[number]
                at_work[worker.connection] = worker, worker.send(task)
            while at_work:
                ready = wait(list(at_work))
                for connection in [each for each in at_work if each in ready]:
                    worker, task = at_work.pop(connection)
                    growth = worker.answer(task)
                    for following in islice(rest, 1):
                        at_work[worker.connection] = worker, worker.send(following)
                    yield task.number, growth
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the processes, whatever they are at; they have some seconds to remove what is half-written."""
        for worker in self._workers:
            worker.process.terminate()
        end = time.monotonic() + _GRACE_SECONDS
        for worker in self._workers:
            worker.process.join(max(0.0, end - time.monotonic()))
            worker.process.kill()
            worker.process.join()
            worker.connection.close()
        self._workers = []


def _start(arrays: ArrayFolder) -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, arrays), daemon=True, name="lmgauge")
    with _interrupts_held():
        process.start()
    theirs.close()
    return _Worker(process, ours)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    # Hold Ctrl-C back in the block; a process started there never gets it: the one that started it ends it.
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it would start with the first process, and let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection, arrays: ArrayFolder) -> None:
    # Do tasks until there are no more; end with the process that started this one, even if that was killed.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGTERM, _leave)
    be_worker()
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        try:
            growth = do_task(task, arrays)
        except Exception as error:
            connection.send(TaskError.of(task, error))
            raise SystemExit(1) from error
        connection.send(growth)


def _leave(number: int, frame: FrameType | None) -> None:
    # End this process as if its work had failed, so that nothing half-written stays.
    raise SystemExit(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
