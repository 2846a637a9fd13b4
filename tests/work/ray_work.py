"""What tasks of tests do on Ray; a light module, as each process of the cluster imports it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lmgauge.base.errors import MissingExtraError
from lmgauge.base.threads import map_in_order
from lmgauge.work.engine import NEW, Array, Engine, Read, Stored
from lmgauge.work.executor import Task
from lmgauge.work.ray_engine import _do

PARTS, ROWS = 6, 50_000
"""An array has 400 KB: so large that it lies on one machine, and is lost with it."""


def spread(taken: tuple[str, int, Stored], read: Read) -> Iterator[Array]:
    """Deal rows to the parts; note the run, and let task 2 kill its process when it runs for the first time."""
    log, number, start = taken
    if log.endswith("ray"):
        wait_for_two_machines(Path(log), number)
        if number == 2 and not Path(log + ".killed").exists():
            Path(log + ".killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    for part in range(PARTS):
        yield np.arange(ROWS, dtype=np.int64) * (part + 1) + int(read(start)[number])


def wait_for_two_machines(log: Path, number: int) -> None:
    """Note the task and its machine; then wait until some task runs on another one, so that both will hold arrays."""
    import ray

    machine = ray.get_runtime_context().get_node_id()
    with log.open("a") as file:
        file.write(f"{number} {machine}\n")
    ends = time.monotonic() + 30
    while len({line.split()[1] for line in log.read_text().splitlines()}) < 2 and time.monotonic() < ends:
        time.sleep(0.05)


def with_a_broken_pipe(tasks: Mapping[int, Task], number: int, *arrays: Array) -> Iterator[Any]:
    """Do a task; before, task 2 fails once as Ray does in a process that outlives its machine."""
    task = tasks[number]
    failed = Path(f"{task.taken[0]}.{task.stage}.{number}")
    if number == 2 and not failed.exists():
        failed.touch()
        raise OSError("Broken pipe")
    yield from _do(tasks, number, *arrays)


def gather(taken: tuple[str, int, list[Stored]], read: Read) -> Iterator[Array]:
    """Add what the tasks before dealt to this part."""
    log, number, parts = taken
    if log.endswith("ray"):
        wait_for_two_machines(Path(log + ".gather"), number)
    total = np.zeros(ROWS, dtype=np.int64)
    for part in parts:
        total += read(part)
    yield total


def run_stages(engine: Engine, log: Path) -> list[int]:
    """Run two stages that exchange all with all, and one that adds up; return the sum, and the last of each part."""
    start = engine.write("start", np.arange(6))
    dealt = engine.run("spread", spread, [(str(log), i, start) for i in range(PARTS)], [NEW] * PARTS)
    sums = engine.run("gather", gather, [(str(log), i, [own[i] for own in dealt]) for i in range(PARTS)], NEW)
    engine.drop(dealt, start)
    (total,) = engine.run("total", add, [sums], NEW)
    return [int(engine.read(total)[0]), *(int(engine.read(part)[-1]) for part in sums)]


def add(parts: list[Stored], read: Read) -> Iterator[Array]:
    """Add all sums."""
    yield np.array([sum(int(read(part).sum()) for part in parts)])


def fail(how: str, read: Read) -> Iterator[Array]:
    """Make one array of two, and fail."""
    yield np.array([len(list(map_in_order(lambda _: 0, range(2), 2)))])
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise MissingExtraError("regex", extra="translation") if how == "extra" else ZeroDivisionError("division by zero")
