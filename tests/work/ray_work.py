"""What tasks of tests do on Ray; a light module, as each process of the cluster imports it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lmgauge.errors import MissingExtraError
from lmgauge.threads import run_workers
from lmgauge.work.ray_engine import _do
from lmgauge.work.stage import Array, Read, Stage

PARTS, ROWS = 6, 50_000
"""An array has 400 KB: so large that it lies on one machine, and is lost with it."""


def spread(read: Read, number: int, log: str) -> Iterator[Array]:
    """Deal rows to the parts; note the run, and let task 2 kill its process when it runs for the first time."""
    if log.endswith("ray"):
        wait_for_two_machines(Path(log), number)
        if number == 2 and not Path(log + ".killed").exists():
            Path(log + ".killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    for part in range(PARTS):
        yield np.arange(ROWS, dtype=np.int64) * (part + 1) + int(read("start")[number])


def wait_for_two_machines(log: Path, number: int) -> None:
    """Note the task and its machine; then wait until some task runs on another one, so that both will hold arrays."""
    import ray

    machine = ray.get_runtime_context().get_node_id()
    with log.open("a") as file:
        file.write(f"{number} {machine}\n")
    ends = time.monotonic() + 30
    while len({line.split()[1] for line in log.read_text().splitlines()}) < 2 and time.monotonic() < ends:
        time.sleep(0.05)


def with_a_broken_pipe(stage: Stage, number: int, *arrays: Array) -> Iterator[Any]:
    """Do a task; before, task 2 fails once as Ray does in a process that outlives its machine."""
    failed = Path(f"{stage.settings}.{stage.name}.{number}")
    if number == 2 and not failed.exists():
        failed.touch()
        raise OSError("Broken pipe")
    yield from _do(stage, number, *arrays)


def gather(read: Read, number: int, log: str) -> Iterator[Array]:
    """Add what the tasks before dealt to this part."""
    if log.endswith("ray"):
        wait_for_two_machines(Path(log + ".gather"), number)
    total = np.zeros(ROWS, dtype=np.int64)
    for part in range(PARTS):
        total += read(f"spread/{part}/{number}")
    yield total


def stages(log: Path) -> list[Stage]:
    """Two stages that exchange all with all, and one that adds up."""
    every = [f"spread/{part}/{number}" for part in range(PARTS) for number in range(PARTS)]
    sums = [f"gather/{number}" for number in range(PARTS)]
    return [
        Stage("spread", PARTS, spread, str(log), lambda i: ["start"], lambda i: every[i * PARTS : i * PARTS + PARTS]),
        Stage("gather", PARTS, gather, str(log), lambda i: every[i::PARTS], lambda i: [sums[i]], drops=[*every, "start"]),
        Stage("total", 1, add, None, lambda i: sums, lambda i: ["total"]),
    ]


def add(read: Read, number: int, settings: None) -> Iterator[Array]:
    """Add all sums."""
    yield np.array([sum(int(read(f"gather/{part}").sum()) for part in range(PARTS))])


def fail(read: Read, number: int, how: str) -> Iterator[Array]:
    """Make one array of two, and fail."""
    yield np.array([len(run_workers(lambda _: 0, 2))])
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise MissingExtraError("regex", extra="translation") if how == "extra" else ZeroDivisionError("division by zero")
