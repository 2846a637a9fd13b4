"""A network in several processes: what one would score in turn, group after group, is shared out among them.

The scores of a group depend on its jobs and on the number of threads, not on which process computes them: each loads the
same weights and forms the same batches. So the numbers are those of one process with as many threads, bit for bit. The
process that asks computes, too, which keeps its copy of the weights at work; further ones start with the second group.

    with N processes: [this one: tokens, groups, every Nth group or so, rows] <-> [N - 1 workers: jobs in, scores out]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import UsageError
from lmgauge.base.threads import OfProcess, map_beside, map_in_order, pool
from lmgauge.models.network.engine import Engine, Job
from lmgauge.models.network.options import ScoringOptions
from lmgauge.work.executor import Task, Worker, end, result_of, started

if TYPE_CHECKING:
    from lmgauge.models.network.model import NetworkModel

T = TypeVar("T")
Scores = list[NDArray[np.float64]]
Load = Callable[[ScoringOptions], "NetworkModel"]


def workers_for(model: NetworkModel, load: Load, options: ScoringOptions) -> Workers | None:
    """Return the processes that compute beside this one; None where the options ask for one."""
    # options: of all of them, so exact that each computes alike.
    others = options.places[1:]
    if not others:
        return None
    if model.context_policy.runs_on:
        raise UsageError(
            f"{model.label}: its context spans the whole text, so one process has to compute it: leave out "
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


class Workers:
    """Processes that have the model of this one, started when they are first needed."""

    # label: of the model, which theirs must have.

    def __init__(self, load: Load, options: Sequence[ScoringOptions], label: str) -> None:
        self._load, self._options, self._label = load, options, label
        self._workers: OfProcess[list[Worker]] = OfProcess(list)

    def share(self, threads: int) -> int:
        """Return the threads of each process, so that all together have this many."""
        return max(1, threads // (1 + len(self._options)))

    def score(self, engine: Engine, groups: Iterable[tuple[T, Sequence[Job]]], threads: int) -> Iterator[tuple[T, Scores]]:
        """Yield the scores of groups of jobs, in order; a bounded number of groups is on its way."""
        # A thread waits for each process; those of this one are computed in one and the same thread, which torch is fast in.
        own = self.share(threads)
        if not self._workers.value:
            with _main_hidden():
                self._workers.value = [started() for _ in self._options]
        free = [None, *zip(self._workers.value, self._options, strict=True)]

        def scored(group: tuple[T, Sequence[Job]]) -> tuple[T, Scores]:
            other, jobs = free.pop(0), group[1]
            try:
                if other is None:
                    return group[0], pool(1).submit(_computed, engine, jobs, own).result()
                return group[0], self._of_other(*other, engine, jobs, own)
            finally:
                free.append(other)

        finished = False
        try:
            yield from map_in_order(scored, groups, len(free))
            finished = True
        finally:
            if not finished:  # an error, Ctrl-C, or nobody wants the rest
                self.kill()

    def _of_other(
        self, worker: Worker, options: ScoringOptions, engine: Engine, jobs: Sequence[Job], threads: int
    ) -> Scores:
        journal = engine.journal
        scores: list[Any] = [None if journal is None else journal.get(job) for job in jobs]
        wanted = [number for number, known in enumerate(scores) if known is None]
        asked = (self._load, options, self._label, [jobs[number] for number in wanted], threads)
        made = worker.result(result_of, Task("scoring", 0, _score, asked)) if wanted else []
        for number, own in zip(wanted, made, strict=True):
            scores[number] = own
            engine.progress(len(own))
            if journal is not None:
                journal.put(jobs[number], own)
        return scores

    def kill(self) -> None:
        """End the processes at once; a later call starts new ones."""
        workers, self._workers.value = self._workers.value, []
        end(workers)


@contextmanager
def _main_hidden() -> Iterator[None]:
    # They need nothing of the main module, so it is hidden: a script needs no `if __name__ == "__main__"`.
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


# -- in a worker --------------------------------------------------------------------------------------------------------
_engines: list[Engine] = []


def _score(number: int, asked: tuple[Load, ScoringOptions, str, Sequence[Job], int]) -> Scores:
    load, options, label, jobs, threads = asked
    if not _engines:
        model = load(options)
        if model.label != label:
            raise UsageError(f"another process has loaded {model.label}, and this one {label}: was the model replaced?")
        _engines.append(model.engine)
    return _computed(_engines[0], jobs, threads)
