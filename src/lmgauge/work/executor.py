"""What runs tasks: this thread, several, other processes, or a cluster of Ray; and how results and errors come back."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, TypeVar

from lmgauge.errors import LmgaugeError
from lmgauge.threads import StoppedError, be_worker, map_as_done
from lmgauge.work.countdown import Countdown
from lmgauge.work.task import Call, TaskError, failure

R = TypeVar("R")
S = TypeVar("S")

_GRACE_SECONDS = 3.0


def run_tasks(
    stage: str,
    title: str,
    work: Callable[[int, S], R],
    settings: S,
    tasks: int,
    *,
    workers: int | None = None,
    ray: str | None = None,
) -> Iterator[R]:
    """Yield what each task returns, in order: computed as it is asked for, in processes, or on a cluster of Ray."""
    if ray is not None:
        from lmgauge.work.ray_engine import RayEngine

        with RayEngine(ray, workers=workers) as engine:
            yield from engine.results(stage, title, work, settings, tasks)
        return
    calls = [Call(stage, number, work, settings) for number in range(tasks)]
    if workers is None or min(workers, tasks) < 2:
        yield from (call() for call in calls)
        return
    countdown, found = Countdown(title, tasks), dict[int, R]()
    with closing(ProcessCrew(workers)) as crew:
        for number, result in crew.run(calls):
            found[number] = result
            countdown.step()
    yield from (found[number] for number in range(tasks))


class ThreadCrew:
    """Does tasks in threads of this process. Kernels release the GIL, so that threads do not wait for each other."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def run(self, calls: Iterable[Call[R]]) -> Generator[tuple[int, R]]:
        """Do tasks, and yield their numbers and results as they are done."""

        # If one fails, or the caller closes the iterator, those at work end when they next ask whether to `go_on`.
        def _do(call: Call[R]) -> R:
            try:
                return call()
            except StoppedError:
                raise
            except Exception as error:
                raise failure(call, error) from error

        with closing(map_as_done(_do, calls, self._workers)) as done:
            for call, result in done:
                yield call.number, result

    def close(self) -> None:
        """Threads that have nothing to do need not be ended."""


@dataclass(frozen=True)
class _Worker:
    process: BaseProcess
    connection: Connection

    def send(self, task: Call[R]) -> Call[R]:
        try:
            self.connection.send(task)
        except BrokenPipeError:
            raise self._ended(task) from None
        return task

    def answer(self, task: Call[R]) -> R:
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            raise self._ended(task) from None
        if isinstance(answer, TaskError):
            raise answer.error()
        result: R = answer
        return result

    def _ended(self, task: Call[Any]) -> LmgaugeError:
        # What to say of a process that ended before it answered.
        self.process.join(10)
        code = self.process.exitcode
        if code is not None and code < 0:
            how = f"was killed by signal {-code}, perhaps for lack of memory"
        else:
            how = f'ended with exit code {code}; a script that trains in processes needs `if __name__ == "__main__":`'
        return LmgaugeError(f"{task}: its process {how}")


class ProcessCrew:
    """Does tasks that hold the GIL in other processes, which start at the first task and wait for more until `close`."""

    def __init__(self, workers: int) -> None:
        self._count = workers
        self._workers: list[_Worker] = []

    def run(self, calls: Iterable[Call[R]]) -> Generator[tuple[int, R]]:
        """Do tasks, and yield their numbers and results as they are done."""
        # If one fails, or the caller closes the iterator before its end, the processes are ended.
        rest = iter(calls)
        at_work: dict[Connection, tuple[_Worker, Call[R]]] = {}
        try:
            for number, task in enumerate(islice(rest, self._count)):
                if number == len(self._workers):
                    self._workers.append(_start())
                worker = self._workers[number]
                at_work[worker.connection] = worker, worker.send(task)
            while at_work:
                ready = wait(list(at_work))
                for connection in [each for each in at_work if each in ready]:
                    worker, task = at_work.pop(connection)
                    result = worker.answer(task)
                    for following in islice(rest, 1):
                        at_work[worker.connection] = worker, worker.send(following)
                    yield task.number, result
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


def _start() -> _Worker:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True, name="lmgauge")
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


def _work(connection: Connection) -> None:
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
            result = task()
        except Exception as error:
            connection.send(TaskError.of(task, error))
            raise SystemExit(1) from error
        connection.send(result)


def _leave(number: int, frame: FrameType | None) -> None:
    # End this process as if its work had failed, so that nothing half-written stays.
    raise SystemExit(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
