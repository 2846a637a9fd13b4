"""A machine on which commands run under faults."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.orders import CLASSES, MODES, compiled, orders_in

REPOSITORY = Path(__file__).resolve().parents[2]
SHELF = ("tmp", "cache")
"""Folders of a machine besides `in` and `out`: TMPDIR and the user's cache."""


@dataclass(frozen=True)
class Fault:
    """What is to happen at which call.

    Attributes:
        mode: one of `MODES`.
        kind: which calls count, one of `CLASSES`.
        at: number of the call, from 1.
        error: of the operating system, for calls that fail.
        jump: seconds by which the wall clock is wrong at every other look.
    """

    mode: str = "count"
    kind: str = "change"
    at: int = 0
    error: int = errno.ENOSPC
    jump: int = 0

    def __str__(self) -> str:
        error = f" with {errno.errorcode[self.error]}" if self.mode in ("once", "from") else ""
        return f"{self.mode}{error} at {self.kind} {self.at}"


@dataclass(frozen=True)
class Outcome:
    """What became of a command.

    Attributes:
        code: exit code; below 0 the signal that killed it, or stopped it.
        counts: calls of each class.
        hit: the call that the fault met, empty if none did.
        stdout: what it printed.
        stderr: what it complained of.
    """

    code: int
    counts: dict[str, int]
    hit: str
    stdout: str
    stderr: str


class Machine:
    """A folder with `in`, `out`, `tmp` and `cache`, and a server that runs commands in it under the shim.

    Args:
        folder: a new one, with a short name without links in it.
        modules: to load beforehand.
    """

    def __init__(self, folder: Path, modules: Sequence[str] = ()) -> None:
        self._own = folder.resolve()
        self.root = self._own / "disk"
        for name in ("in", "out", *SHELF):
            (self.root / name).mkdir(parents=True)
        self.log = self._own / "log"
        self._runs = 0
        self._streams: list[str] = []
        path = self._own / "orders"
        self._orders = orders_in(path)
        self._orders.folder = os.fsencode(self.root)
        environment = os.environ | {
            "LD_PRELOAD": str(compiled(self._own)),
            "FAULTS_ORDERS": str(path),
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-W", "ignore", "-m", "tests.faults.server", *modules]
        pipe = subprocess.PIPE
        self._server = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=REPOSITORY)
        assert self._server.stdout is not None
        if self._server.stdout.readline() != "ready\n":
            self.close()
            raise RuntimeError("the server of the fault tests did not start")

    def close(self) -> None:
        """End the server."""
        self._server.communicate()

    def run(self, arguments: Sequence[str], fault: Fault = Fault(), *, folder: str = ".", logged: bool = False) -> Outcome:
        """Run a command of lmgauge.

        Args:
            arguments: after its name.
            fault: what is to happen meanwhile.
            folder: to run it in, below the root.
            logged: write down each call of the fault's kind in `self.log`.
        """
        orders = self._orders
        orders.mode, orders.kind, orders.at = MODES.index(fault.mode), CLASSES.index(fault.kind), fault.at
        orders.error, orders.jump, orders.hits, orders.hit = fault.error, fault.jump, 0, b""
        orders.log = os.fsencode(self.log) if logged else b""
        for number in range(len(CLASSES)):
            orders.counts[number] = 0
        self.log.unlink(missing_ok=True)
        environment = {"TMPDIR": str(self.root / "tmp"), "XDG_CACHE_HOME": str(self.root / "cache"), "COLUMNS": "80"}
        self._runs += 1
        streams = {name: str(self._own / f"{name}-{self._runs % 4}") for name in ("stdout", "stderr")}
        job = {"arguments": list(arguments), "folder": str(self.root / folder), "environment": environment, **streams}
        code = self._ask(job)
        counts = dict(zip(CLASSES, orders.counts, strict=True))
        self._streams = list(streams.values()) if code == -signal.SIGSTOP else self._streams
        return Outcome(code, counts, os.fsdecode(orders.hit), *map(_read, streams.values()))

    def go_on(self) -> Outcome:
        """Let the command that was stopped go on to its end."""
        self._orders.mode = MODES.index("count")
        return Outcome(self._ask({"go_on": True}), {}, "", *map(_read, self._streams))

    def _ask(self, job: dict[str, object]) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        code: int = json.loads(self._server.stdout.readline())
        return code

    def reset(self, older: Path | None = None) -> None:
        """Bring `out`, `tmp` and `cache` back to what they were before a run.

        Args:
            older: what `out` then holds; nothing if None.
        """
        for name in ("out", *SHELF):
            shutil.rmtree(self.root / name, ignore_errors=True)
            if name == "out" and older is not None:
                shutil.copytree(older, self.root / name, symlinks=True)
            else:
                (self.root / name).mkdir()


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return all below a folder by path: the bytes of files, None for folders."""
    paths = sorted(folder.rglob("*"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in paths}
