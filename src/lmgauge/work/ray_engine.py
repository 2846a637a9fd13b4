"""The engine for several machines: tasks of Ray, and arrays in the memory of its machines."""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

from lmgauge.base.errors import LmgaugeError, UsageError, needing
from lmgauge.base.threads import be_worker, thread_count
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored, made_arrays, stored_in
from lmgauge.work.executor import Task, sent_failure

S = TypeVar("S")
T = TypeVar("T")

_RETRIES = 5
_SECONDS_BETWEEN_LOOKS = 5.0
_SECONDS_TO_FETCH = 600.0
_SECONDS_WITHOUT_CORES = 600.0

LOCAL = "local"
_SECONDS_TO_ANSWER = 5.0
_SECONDS_TO_PART = 20.0
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""How HTTP/2, which Ray speaks, begins; the answer is a frame of settings as well, of type 4."""
_LAST_WORDS = """import sys; sys.stdin.read() or sys.exit(
    "lmgauge: error: the program ended while Ray worked for it: it was killed, or Ray's process on its machine was lost")"""
"""A program of its own: where the raylet dies during a call, Ray ends the caller at once, and without a word."""

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",  # every line: Ray prints what its machines say to standard output
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else a warning that this will be the default
}


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


# -- the connection -----------------------------------------------------------------------------------------------------
# A cluster is joined, or one started on this machine: quietly, at the address named, or refused within seconds.
@contextmanager
def ray_at(address: str, workers: int | None = None, store_bytes: int | None = None) -> Iterator[Any]:
    """Yield the library, connected; what was started here ends with the block."""
    # A connection that the program has already is used as it is, and stays.
    if address != LOCAL:
        refuse_unanswered(address)
    ray = library()
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        options |= {"num_cpus": workers, "object_store_memory": store_bytes, "include_dashboard": False}
    try:
        ray.init(address=address, **options)
    except (OSError, RuntimeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UsageError(f"cannot join Ray at {address}: {reason}") from error
    words = subprocess.Popen([sys.executable, "-IS", "-c", _LAST_WORDS], stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield ray
    finally:
        words.communicate(b"not needed")
        if not wait([asked(ray.shutdown)], _SECONDS_TO_PART).done:
            abandon(ray)


def asked(call: Callable[..., T], *arguments: Any, **options: Any) -> Future[T]:
    """Return what a call of Ray will return: its thread may wait for ever, and nothing waits for its end."""
    answer: Future[T] = Future()

    def _call() -> None:
        try:
            answer.set_result(call(*arguments, **options))
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=_call, daemon=True).start()
    return answer


def abandon(ray: Any) -> None:
    """Let the program end, with its own exit code, while threads of Ray wait for what is lost."""
    atexit.unregister(ray.shutdown)  # it would wait as well
    with suppress(AttributeError, TypeError):  # only glibc
        libc = ctypes.CDLL(None)
        # `_exit` gets the program's code, before what those threads use is destroyed, which is a crash or a hang.
        libc.on_exit(libc._exit, None)


def library() -> Any:
    """Return Ray, set so that it sends no usage statistics, and waits for its processes on a busy machine."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    with needing("ray", extra="ray"):
        import ray
    return ray


def lifelines(ray: Any, address: str) -> dict[str, str]:
    """Return the addresses without which a connection is of no use, by what answers there."""
    if address.startswith("ray://"):
        return {"the head of the cluster": address}
    here = ray.get_runtime_context()
    own = next(node for node in ray.nodes() if node["NodeID"] == here.get_node_id())
    raylet = f"{own['NodeManagerAddress']}:{own['NodeManagerPort']}"
    return {"the head of the cluster": here.gcs_address, "Ray's process on this machine": raylet}


def refuse_unanswered(address: str) -> None:
    """Refuse an address where nobody speaks as Ray does: Ray itself would try for minutes, and then end the program."""
    match = re.fullmatch(r"(?:ray://)?(\[[0-9a-fA-F:]+\]|[^\s:/]+):(\d{1,5})", address)
    if match is None or not 0 < int(match[2]) < 65536:
        raise UsageError(f"{address!r} is not the address of a Ray cluster; give local, host:port or ray://host:port")
    try:
        with socket.create_connection((match[1].strip("[]"), int(match[2])), timeout=_SECONDS_TO_ANSWER) as connection:
            connection.sendall(_PREFACE)
            answer = connection.recv(9)
    except OSError as error:
        raise UsageError(f"no Ray cluster answers at {address}: {error.strerror or error}") from error
    if answer[3:4] != b"\4":
        raise UsageError(f"no Ray cluster answers at {address}: something else is there")
