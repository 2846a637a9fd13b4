"""One pool of threads for the whole program. Kernels release the GIL; results never depend on how many threads run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from itertools import islice
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from lmgauge.base.errors import UsageError
from lmgauge.base.option_numbers import check_whole

_In = TypeVar("_In")
_Out = TypeVar("_Out")
_MOST_THREADS = 4096
_this_thread = threading.local()
_of_processes: WeakSet[OfProcess[Any]] = WeakSet()


class OfProcess(Generic[_Out]):
    """What a process does not share with its children: a forked child, or whoever unpickles it, makes it anew."""

    # Of a pool a forked child has no threads, a lock may never be opened there, and a connection has two users.

    def __init__(self, make: Callable[[], _Out]) -> None:
        self._make, self.value = make, make()
        _of_processes.add(self)

    def forget(self) -> None:
        """Make the value anew."""
        self.value = self._make()

    def __reduce__(self) -> tuple[type[OfProcess[_Out]], tuple[Callable[[], _Out]]]:
        return OfProcess, (self._make,)


def _forget_parent() -> None:
    for one in list(_of_processes):
        one.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
_pools: OfProcess[dict[int, ThreadPoolExecutor]] = OfProcess(dict)


def thread_count(threads: int | None = None) -> int:
    """Return the number of threads to use: the one asked for, else as many as this process may run on."""
    if threads is not None:
        check_whole("threads", threads, 1, _MOST_THREADS)
        return threads
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def pool(threads: int) -> ThreadPoolExecutor:
    """Return the shared executor with `threads` workers."""
    pools = _pools.value
    if threads not in pools:
        pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="lmgauge", initializer=be_worker)
    return pools[threads]


def be_worker() -> None:
    """From now on, do in this thread all that it would give to workers: it is one of several workers itself."""
    _this_thread.is_worker = True


def _alone(threads: int) -> bool:
    # Whether the work is done in this thread: a worker that waited for other workers could wait forever.
    return threads == 1 or getattr(_this_thread, "is_worker", False)


class StoppedError(Exception):
    """Raised in a worker whose work nobody waits for any more, as other work beside it failed or was interrupted."""


def go_on(seconds: float = 0.0) -> None:
    """Wait for some seconds, and raise StoppedError in a worker as soon as nobody waits for its work any more."""
    stopped: threading.Event | None = getattr(_this_thread, "stopped", None)
    if stopped is not None and stopped.wait(seconds):
        raise StoppedError
    if stopped is None and seconds:
        time.sleep(seconds)


def run_ranges(work: Callable[[int, int], _Out], size: int, threads: int) -> list[_Out]:
    """Return `work(begin, end)` of ranges that tile `0 .. size`, in order; raises what `work` raises."""
    bounds = [size * i // threads for i in range(threads + 1)]
    return list(map_in_order(lambda i: work(bounds[i], bounds[i + 1]), range(threads), threads))


def map_in_order(work: Callable[[_In], _Out], items: Iterable[_In], threads: int) -> Iterator[_Out]:
    """Yield `work(item)` of each item in order, with up to `2 * threads` items in flight; raises what `work` raises."""
    # So a long input needs bounded memory.
    yield from map(work, items) if _alone(threads) else in_flight(pool(threads), work, items, 2 * threads)


def map_beside(work: Callable[[_In], _Out], items: Iterable[_In], threads: int) -> Iterator[_Out]:
    """Yield `work(item)` of each item in order, one after the other, while the next items are made in this thread."""
    # For work that must see the items in order; with one thread, all of it is done in this one.
    yield from map(work, items) if _alone(threads) else in_flight(pool(1), work, items, 2)


def map_as_done(work: Callable[[_In], _Out], items: Iterable[_In], threads: int) -> Generator[tuple[_In, _Out]]:
    """Yield each item and `work(item)` as it is done, with `threads` items at work at a time; raises what `work` raises."""
    # Then no other item is at work any more, unless the caller stops listening.
    if _alone(threads):
        yield from ((item, work(item)) for item in items)
    else:
        yield from _given_out(pool(threads), work, items, threads, in_order=False)


def in_flight(workers: ThreadPoolExecutor, work: Callable[[_In], _Out], items: Iterable[_In], most: int) -> Iterator[_Out]:
    """Yield `work(item)` of each item in order, with up to `most` items given to the workers of an executor at a time."""
    with closing(_given_out(workers, work, items, most, in_order=True)) as done:
        yield from (result for _, result in done)


def _given_out(
    workers: ThreadPoolExecutor, work: Callable[[_In], _Out], items: Iterable[_In], most: int, *, in_order: bool
) -> Generator[tuple[_In, _Out]]:
    # Yield each item and what came of it, in order or as it is done; at the end, what waits never begins, and what began
    # does not `go_on`; what is not in order was then waited for, after an error.
    source, pools, stopped = iter(items), _pools.value, threading.Event()
    waiting: dict[Future[_Out], _In] = {}

    def run(item: _In) -> _Out:
        _this_thread.stopped = stopped
        return work(item)

    try:
        waiting.update((workers.submit(run, item), item) for item in islice(source, most))
        while waiting:
            if pools is not _pools.value:  # the threads at work are in the parent, and are waited for in vain
                fork = "this process was forked in the middle of work that threads of its parent do"
                raise UsageError(f"{fork}; begin it again here")
            for future in [next(iter(waiting))] if in_order else wait(waiting, return_when=FIRST_COMPLETED).done:
                result, item = future.result(), waiting.pop(future)
                waiting.update((workers.submit(run, following), following) for following in islice(source, 1))
                yield item, result
    except Exception:
        stopped.set()
        if not in_order:
            wait([future for future in waiting if not future.cancel()])
        raise
    finally:
        stopped.set()
        for future in waiting:
            future.cancel()
