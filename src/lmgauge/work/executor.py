"""Tasks, and who does them on one machine: threads or processes; how results and errors come back."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, TypeVar

from lmgauge.base.errors import LmgaugeError
from lmgauge.base.progress import say_progress
from lmgauge.base.threads import StoppedError, be_worker, map_as_done

R = TypeVar("R")
S = TypeVar("S")

_GRACE_SECONDS = 3.0


@dataclass(frozen=True)
class Task:
    """A task of some stage, which can be sent to another process or machine."""

    stage: str  # what it is a part of, for errors
    number: int  # of the task in its stage
    work: Callable[..., Any]
    taken: Any  # what the work takes
    makes: Sequence[Any] = ()  # the names of the arrays that it yields, if it does

    def __str__(self) -> str:
        return f"stage {self.stage}, task {self.number}"


def failure(task: Task, error: Exception) -> LmgaugeError:
    """Return what to raise for an error of a task: the same, if it is one for the user, else one that names the stage."""
    return error if isinstance(error, LmgaugeError) else LmgaugeError(f"{task}: {type(error).__name__}: {error}")


def sent_failure(task: Task, error: Exception) -> LmgaugeError:
    """Return what to send to another process for an error of a task, where it is handled: its traceback is a note."""
    shown = failure(task, error)
    shown.add_note(traceback.format_exc())
    return shown


class Countdown:
    """Says how many tasks of a stage are done, and how long the others will take at the pace of this run."""

    # counting, 3 of 8, about 12 s left

    def __init__(self, title: str, tasks: int, done: int = 0) -> None:
        self._title, self._tasks, self._before, self._done = title, tasks, done, done
        self._began = time.monotonic()
        say_progress(f"{title}, {done} of {tasks}")

    def step(self) -> None:
        """One task more is done."""
        self._done += 1
        left = (time.monotonic() - self._began) / (self._done - self._before) * (self._tasks - self._done)
        more = f", about {rounded_time(left)} left" if self._done < self._tasks else ""
        say_progress(f"{self._title}, {self._done} of {self._tasks}{more}")


def rounded_time(seconds: float) -> str:
    """Return a time in one unit."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def result_of(task: Task) -> Any:
    """Return what a task returns that reads no arrays."""
    return task.work(task.number, task.taken)


class Crew:
    """Does tasks in threads of this process; or in other processes, for each of which a thread waits."""

    # Kernels release the GIL, so that threads do not wait for each other; processes are for tasks that hold it. They start
    # at the first tasks, and stay for more until `close`.

    def __init__(self, workers: int, *, processes: bool = False) -> None:
        self._count, self._processes = workers, processes
        self._workers: list[Worker] = []

    def run(self, do: Callable[[Task], R], tasks: Sequence[Task]) -> Generator[tuple[int, R]]:
        """Do tasks, and yield their numbers and results as they are done."""
        # If one fails, or the caller closes the iterator, threads at work end when they next ask whether to go on, and
        # processes are ended.
        failures, free = list[LmgaugeError](), list[Worker]()

        def _do(task: Task) -> R:
            try:
                if failures:  # its process was ended, or nobody would end the work of it
                    raise StoppedError
                if not self._processes:
                    return do(task)
                worker = free.pop()
                result = worker.result(do, task)
                free.append(worker)
                return result
            except Exception as error:
                failures.append(failure(task, error))
                self.close()
                raise failures[0] from error  # of the other processes it is not told how they ended

        try:
            while self._processes and len(self._workers) < min(self._count, len(tasks)):
                self._workers.append(started())
            free.extend(self._workers)
            with closing(map_as_done(_do, tasks, self._count)) as done:
                for task, result in done:
                    yield task.number, result
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the processes, whatever they are at; they have some seconds to remove what is half-written."""
        workers, self._workers = self._workers, []
        end(workers)


def task_results(
    stage: str, title: str, work: Callable[[int, S], R], settings: S, tasks: int, *, workers: int
) -> Iterator[R]:
    """Yield what each task returns, in order: computed as it is asked for where there is one worker, else in processes."""
    calls = [Task(stage, number, work, settings) for number in range(tasks)]
    if min(workers, tasks) < 2:
        yield from map(result_of, calls)
        return
    crew, countdown, found = Crew(workers, processes=True), Countdown(title, tasks), dict[int, R]()
    try:
        with closing(crew.run(result_of, calls)) as done:
            for number, result in done:
                found[number] = result
                countdown.step()
    finally:
        crew.close()
    yield from (found[number] for number in range(tasks))


@dataclass(frozen=True)
class Worker:
    """A process that does tasks, one at a time, whichever threads ask."""

    process: BaseProcess
    connection: Connection
    asked: threading.Lock = field(default_factory=threading.Lock, repr=False)  # an answer is the next one, and has no name

    def result(self, do: Callable[[Task], R], task: Task) -> R:
        """Return what comes of a task there, or raise what it raises."""
        try:
            with self.asked:
                self.connection.send((do, task))
                answer = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(10)
            code = self.process.exitcode
            if code is not None and code < 0:
                how = f"was killed by signal {-code}, perhaps for lack of memory: use fewer processes"
            else:
                how = f'ended with exit code {code}; a script that trains in processes needs `if __name__ == "__main__":`'
            raise LmgaugeError(f"{task}: its process {how}") from None
        if isinstance(answer, LmgaugeError):
            raise answer
        result: R = answer
        return result


def started() -> Worker:
    """Return a process that waits for tasks; it ends with this one."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True, name="lmgauge")
    with _interrupts_held():
        process.start()
    theirs.close()
    return Worker(process, ours)


def end(workers: Sequence[Worker]) -> None:
    """End processes, whatever they are at; they have some seconds to remove what is half-written."""
    for worker in workers:
        worker.process.terminate()
    latest = time.monotonic() + _GRACE_SECONDS
    for worker in workers:
        worker.process.join(max(0.0, latest - time.monotonic()))
        worker.process.kill()
        worker.process.join()


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
    # Do tasks until there are no more.
    _end_with_parent()
    signal.signal(signal.SIGTERM, _leave)
    be_worker()
    while True:
        try:
            do, task = connection.recv()
        except (EOFError, OSError):
            return
        try:
            result = do(task)
        except Exception as error:
            connection.send(sent_failure(task, error))
            raise SystemExit(1) from error
        connection.send(result)


def _leave(number: int, frame: FrameType | None) -> None:
    # End this process as if its work had failed, so that nothing half-written stays.
    raise SystemExit(1)


def _end_with_parent() -> None:
    # Let this process end with the one that started it, even if that is killed.
    parent = multiprocessing.parent_process()

    def _wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=_wait, daemon=True).start()
