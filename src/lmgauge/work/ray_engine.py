"""The engine for several machines: tasks of Ray, and arrays in the memory of its machines."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

from lmgauge.errors import LmgaugeError, UsageError
from lmgauge.threads import be_worker, thread_count
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored, made_arrays, stored_in
from lmgauge.work.executor import Task, sent_failure
from lmgauge.work.ray_connection import LOCAL, abandon, asked, lifelines, ray_at, refuse_unanswered

S = TypeVar("S")
T = TypeVar("T")

_RETRIES = 5
_SECONDS_BETWEEN_LOOKS = 5.0
_SECONDS_TO_FETCH = 600.0
_SECONDS_WITHOUT_CORES = 600.0


class RayEngine(Engine):
    """Runs stages as tasks of Ray, which does again what is lost with a process or a machine."""

    # An array is what a task returned; if the machine that holds it dies, the tasks that made it run once more. So what the
    # program itself wrote stays until the block ends, also when it is dropped.
    # workers: for `local`, how many tasks run at a time, by default one for each core; a cluster has its own number.

    def __init__(self, address: str = LOCAL, *, workers: int | None = None, store_bytes: int | None = None) -> None:
        super().__init__()
        self._sources: list[Any] = []
        with ExitStack() as stack:
            self._ray = stack.enter_context(ray_at(address, thread_count(workers), store_bytes))
            self._lifelines = {} if address == LOCAL else {"the head of the cluster": address}
            self._lifelines = self._call("joining", lifelines, self._ray, address)
            self.workers = int(self._call("joining", self._ray.cluster_resources).get("CPU", 1))
            self._stack = stack.pop_all()
        self._had_cores = time.monotonic()

    def close(self) -> None:
        """Let go of all arrays, and of Ray."""
        self.remove()
        self._stack.close()

    def remove(self) -> None:
        """Let go of all arrays."""
        self.arrays.held.clear()
        self._sources.clear()

    def write(self, name: str, array: Array) -> Stored:
        """Send an array that the program itself made; what is held here is a reference to it."""
        with self._explained():
            return super().write(name, self._source(array))

    def _source(self, value: object) -> Any:
        reference = self._call("sending an array", self._ray.put, value)
        self._sources.append(reference)
        return reference

    def read(self, stored: Stored) -> Array:
        """Return an array, which cannot be written to."""
        return self._get(super().read(stored), f"array {stored.name}")  # type: ignore[no-any-return]

    def _get(self, reference: Any, what: str) -> Any:
        with self._explained(what):
            self._wait([reference], what)
            try:
                return self._call(what, self._ray.get, reference, timeout=_SECONDS_TO_FETCH)
            except self._ray.exceptions.GetTimeoutError:  # it may come from far: only that nobody answers is an error
                return self._get(reference, what)

    @contextmanager
    def _explained(self, what: str = "the cluster") -> Iterator[None]:
        exceptions = self._ray.exceptions
        try:
            yield
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, LmgaugeError):
                raise error.cause from None
            raise LmgaugeError(f"{what}: {type(error.cause).__name__}: {error.cause}") from error
        except exceptions.RayError as error:
            reason = next(iter(str(error).splitlines()), "")
            raise LmgaugeError(f"{what}: Ray: {type(error).__name__}: {reason}") from error

    def _wait(self, references: list[Any], what: str) -> tuple[list[Any], list[Any]]:
        # Wait until one of them is there, or can be known to fail; return those, and the others.
        while True:
            done, waiting = self._call(what, self._ray.wait, references, timeout=_SECONDS_BETWEEN_LOOKS, fetch_local=False)
            if done:
                return done, waiting
            if self._call(what, self._ray.cluster_resources).get("CPU"):
                self._had_cores = time.monotonic()
            elif time.monotonic() - self._had_cores > _SECONDS_WITHOUT_CORES:  # Ray itself waits for ever for new machines
                raise LmgaugeError(f"{what}: the cluster has no core left; all its machines were lost")

    def _call(self, what: str, call: Callable[..., T], *arguments: Any, **options: Any) -> T:
        # Without its head or its process on this machine Ray waits for ever, or ends the program unsaid: whether they are
        # there is looked at before each call, and while it goes on.
        self._look(what)
        answer = asked(call, *arguments, **options)
        while not wait([answer], _SECONDS_BETWEEN_LOOKS).done:
            self._look(what)
        return answer.result()

    def _look(self, what: str) -> None:
        for lost, address in self._lifelines.items():
            try:
                refuse_unanswered(address)
            except UsageError as error:
                abandon(self._ray)
                raise LmgaugeError(f"{what}: {lost} was lost: {error}") from error

    def _do(self, tasks: Sequence[Task]) -> Generator[int]:
        # Once for all tasks: Ray runs a task again only if its arguments have less than 100 KB each.
        common = self._source({task.number: task for task in tasks})
        begun = {self._submit(task, common): task for task in tasks}
        waiting, retries = list(begun), _RETRIES
        try:
            while waiting:
                done, waiting = self._wait(waiting, f"stage {tasks[0].stage}")
                for receipt in done:
                    task = begun.pop(receipt)
                    try:
                        self._get(receipt, str(task))
                    except LmgaugeError as error:
                        # Ray's own: its process outlived its machine by a moment. What a task raises has no cause.
                        if not (retries and isinstance(getattr(error.__cause__, "cause", None), OSError)):
                            raise
                        retries -= 1
                        # Its results get new references; tasks that come later ask for these by name.
                        again = self._submit(task, common)
                        begun[again] = task
                        waiting.append(again)
                    else:
                        yield task.number
        except BaseException:
            cancelled = [asked(self._ray.cancel, receipt, force=True) for receipt in waiting]
            wait(cancelled, _SECONDS_BETWEEN_LOOKS)
            raise

    def _submit(self, task: Task, common: Any) -> Any:
        # Two at least: Ray takes an iterator as the one value of a task that returns one.
        count = max(2, len(task.makes) + 1)
        options = {"num_cpus": 1, "num_returns": count, "max_retries": _RETRIES, "scheduling_strategy": "SPREAD"}
        # A task gets its arrays as arguments, and does not ask for them: on a machine with one core, a task that waited for
        # a lost array kept the core from the task that makes it again.
        arrays = [self.arrays.read(stored) for stored in stored_in(task.taken)]
        references = self._call(str(task), self._ray.remote(**options)(_do).remote, common, task.number, *arrays)
        self.arrays.held.update(zip(task.makes, references, strict=False))
        return references[-1]

    def results(self, stage: str, title: str, work: Callable[[int, S], T], settings: S, tasks: int) -> Iterator[T]:
        """Run tasks, and yield what each returns, in order, when all are done."""
        for stored in self.run(stage, _result, [partial(work, number, settings) for number in range(tasks)], NEW, title):
            result: Any = self.read(stored)
            yield deepcopy(result)  # what lies in Ray's store cannot be written to
            self.drop(stored)


def run_tasks(
    stage: str, title: str, work: Callable[[int, S], T], settings: S, tasks: int, *, workers: int | None, ray: str | None
) -> Iterator[T]:
    """Yield what each task returns, in order: computed as it is asked for, in processes, or on a cluster of Ray."""
    with Engine(workers or 1, processes=True) if ray is None else RayEngine(ray, workers=workers) as engine:
        yield from engine.results(stage, title, work, settings, tasks)


def _result(call: Callable[[], Any], read: Read) -> Iterator[Any]:
    yield call()


def _do(tasks: Mapping[int, Task], number: int, *arrays: Array) -> Iterator[Any]:
    # Do a task in a process of Ray: yield what it makes, and a receipt at the end.
    be_worker()
    task = tasks[number]
    own = dict(zip(stored_in(task.taken), arrays, strict=True))
    del arrays
    try:
        for array in made_arrays(task, own.__getitem__):
            yield array
            del array
    except Exception as error:
        raise sent_failure(task, error) from None
    if not task.makes:
        yield None
    yield True
