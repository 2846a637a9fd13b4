"""A network in several processes: what one would score in turn, group after group, is shared out among them.

The scores of a group depend on its jobs and on the number of threads, not on which process computes them: each loads the
same weights and forms the same batches. So the numbers are those of one process with as many threads, bit for bit. The
process that asks computes, too, which keeps its copy of the weights at work; further ones start with the second group.

    with N processes: [this one: tokens, groups, every Nth group or so, rows] <-> [N - 1 workers: jobs in, scores out]
"""

from __future__ import annotations

import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from multiprocessing import get_context, parent_process
from os import _exit
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import LmgaugeError, UsageError
from lmgauge.models.network.engine import Engine, Job
from lmgauge.models.network.options import ScoringOptions
from lmgauge.threads import OfProcess, map_beside

if TYPE_CHECKING:
    from lmgauge.models.network.model import NetworkModel

T = TypeVar("T")
Scores = list[NDArray[np.float64]]
Load = Callable[[ScoringOptions], "NetworkModel"]

_AHEAD = 2  # groups that a worker has: the one that it computes, and the next


def workers_for(model: NetworkModel, load: Load, options: ScoringOptions) -> Workers | None:
    """Return the processes that compute beside this one; None where the options ask for one."""
    # options: of all of them, so exact that each computes alike.
    others = options.places[1:]
    if not others:
        return None
    if model.context_policy.runs_on:
        raise UsageError(
            f"{model.label}: its context runs on over the whole text, so that one process has to compute it: leave out "
            "--processes and --devices, or choose --context sentence"
        )
    return Workers(load, [options.at(place) for place in others], model.label)


def score_in_order(
    engine: Engine, workers: Workers | None, groups: Iterable[tuple[T, Sequence[Job]]], threads: int
) -> Iterator[tuple[T, Scores]]:
    """Yield the scores of groups of jobs, in order."""
    # -> what came with each group, and of each of its jobs the log-probabilities, float64 [predicted], nats.
    source = iter(groups)
    ahead = [] if workers is None else [group for _, group in zip(range(2), source, strict=False)]
    if workers is not None and len(ahead) == 2:
        yield from workers.score(engine, chain(ahead, source), threads)
        return
    own = threads if workers is None else workers.share(threads)
    # While a GPU computes, this thread makes tokens and jobs of the next group; a processor would only share itself.
    beside = threads if engine.computes_elsewhere else 1
    yield from map_beside(lambda group: (group[0], _computed(engine, group[1], own)), chain(ahead, source), beside)


def _computed(engine: Engine, jobs: Sequence[Job], threads: int) -> Scores:
    with engine.threads(threads):
        return engine.score(jobs)


@dataclass
class _Group(Generic[T]):
    """A group on its way."""

    tag: T
    jobs: Sequence[Job]
    known: list[NDArray[np.float64] | None]  # scores that a journal had; None of the others
    asked: Future[Scores]
    worker: _Worker | None = None  # who computes them; None for this process, which scores all jobs


class Workers:
    """Processes that have the model of this one, started when they are first needed."""

    # label: of the model, which theirs must have.

    def __init__(self, load: Load, options: Sequence[ScoringOptions], label: str) -> None:
        self._load, self._options, self._label = load, options, label
        self._workers: OfProcess[list[_Worker]] = OfProcess(list)

    def share(self, threads: int) -> int:
        """Return the threads of each process, so that all together have this many."""
        return max(1, threads // (1 + len(self._options)))

    def score(self, engine: Engine, groups: Iterable[tuple[T, Sequence[Job]]], threads: int) -> Iterator[tuple[T, Scores]]:
        """Yield the scores of groups of jobs, in order; a bounded number of groups is on its way."""
        own = self.share(threads)
        most = 2 * _AHEAD * (1 + len(self._options))
        waiting: deque[_Group[T]] = deque()
        finished = False
        try:
            for tag, jobs in groups:
                waiting.append(self._begun(engine, tag, jobs, own))
                while waiting and (waiting[0].asked.done() or len(waiting) >= most):
                    yield self._ended(engine, waiting.popleft())
            while waiting:
                yield self._ended(engine, waiting.popleft())
            finished = True
        finally:
            if not finished:  # an error, Ctrl-C, or nobody wants the rest
                self.kill()

    def _begun(self, engine: Engine, tag: T, jobs: Sequence[Job], threads: int) -> _Group[T]:
        # Give a group to the worker with the least to do; compute it here where all have enough.
        if not self._workers.value:
            with _started_in_silence():
                self._workers.value = [_Worker(self._load, options) for options in self._options]
        worker = min(self._workers.value, key=_Worker.load)
        done: Future[Scores] = Future()
        if worker.load() >= _AHEAD:
            try:
                done.set_result(_computed(engine, jobs, threads))
            except LmgaugeError as error:  # raised when it is its turn: the first error of the text is the one that is seen
                done.set_exception(error)
            return _Group(tag, jobs, [None] * len(jobs), done)
        journal = getattr(engine, "journal", None)
        known = [None if journal is None else journal.get(job) for job in jobs]
        wanted = [job for job, scores in zip(jobs, known, strict=True) if scores is None]
        if not wanted:
            done.set_result([])
            return _Group(tag, jobs, known, done, worker)
        with _explained():
            return _Group(tag, jobs, known, worker.score(wanted, threads), worker)

    def _ended(self, engine: Engine, group: _Group[T]) -> tuple[T, Scores]:
        with _explained():
            if group.worker is not None and (label := group.worker.loaded.result()) != self._label:
                raise UsageError(f"another process has loaded {label}, and this one {self._label}: was the model replaced?")
            scores = iter(group.asked.result())
        if group.worker is None:
            return group.tag, list(scores)
        journal = getattr(engine, "journal", None)
        made = []
        for job, known in zip(group.jobs, group.known, strict=True):
            own = next(scores) if known is None else known
            if known is None:
                engine.progress(len(own))
                if journal is not None:
                    journal.put(job, own)
            made.append(own)
        return group.tag, made

    def kill(self) -> None:
        """End the processes at once; a later call starts new ones."""
        for worker in self._workers.value:
            worker.kill()
        self._workers.value = []


class _Worker:
    """One further process."""

    # It ends with this one, however this one ends.

    def __init__(self, load: Load, options: ScoringOptions) -> None:
        self._executor = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        self._under_way: list[Future[Scores]] = []
        self.loaded: Future[str] = self._executor.submit(_load, load, options)
        self._processes = list(self._executor._processes.values())

    def load(self) -> int:
        self._under_way = [future for future in self._under_way if not future.done()]
        return len(self._under_way)

    def score(self, jobs: Sequence[Job], threads: int) -> Future[Scores]:
        future = self._executor.submit(_score, jobs, threads)
        self._under_way.append(future)
        return future

    def kill(self) -> None:
        for process in self._processes:
            process.terminate()
        self._executor.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise UsageError(
            "a process that scores has ended before its work was done: it was killed, or memory ran out; use fewer "
            "(--processes, --devices)"
        ) from error


@contextmanager
def _started_in_silence() -> Iterator[None]:
    # This process hears Ctrl-C and ends them. They need nothing of the main module, so it is hidden: a script needs no `if
    # __name__ == "__main__"`.
    main = sys.modules["__main__"]
    hears = threading.current_thread() is threading.main_thread()
    before: Any = signal.signal(signal.SIGINT, signal.SIG_IGN) if hears else None
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if hears:
            signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


# -- in a worker --------------------------------------------------------------------------------------------------------
_engines: list[Engine] = []


def _load(load: Load, options: ScoringOptions) -> str:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    model = load(options)
    _engines.append(model.engine)
    return model.label


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    _exit(1)


def _score(jobs: Sequence[Job], threads: int) -> Scores:
    # Scores of jobs in this worker; nothing where loading failed, of which the other future tells.
    return _computed(_engines[0], jobs, threads) if _engines else []
