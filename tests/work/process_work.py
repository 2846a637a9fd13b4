"""What tasks of tests do in other processes; a light module, as each of them imports it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from lmgauge.base.errors import MissingExtraError
from lmgauge.base.files import writing
from lmgauge.base.threads import map_in_order
from lmgauge.work.engine import Array, Read
from lmgauge.work.manifest import DiskFullError


def report(taken: None, read: Read) -> Iterator[Array]:
    """Say which process this is, and how many threads do what the task gives away; not so fast that one does all."""
    time.sleep(0.2)
    yield np.array([os.getpid(), len(set(map_in_order(lambda _: threading.get_ident(), range(2), 2)))])


def fail(taken: tuple[int, str], read: Read) -> Iterator[Array]:
    """Fail in a task of which another one is at work for a minute."""
    number, how = taken
    yield np.array([os.getpid()])
    if number == 1:
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "exit":
            os._exit(7)
        raise {
            "extra": MissingExtraError("icu4py", extra="icu"),
            "full": DiskFullError("no room"),
            "bug": ZeroDivisionError("division by zero"),
        }[how]
    time.sleep(60)
    yield np.array([0])


def wait_long(number: int, read: Read) -> Iterator[Array]:
    """Say which process this is, and go on for a minute."""
    yield np.array([os.getpid()])
    time.sleep(60)


def write_long(number: int, read: Read) -> Iterator[Array]:
    """Have a file half-written for a minute."""
    with writing(f"half{number}"):
        Path("arrays", f"begun{number}").touch()
        time.sleep(60)
    yield np.array([0])


def power(number: int, exponent: int) -> tuple[dict[str, int], int]:
    """Return a power, and which process computed it; not so fast that one does all."""
    time.sleep(0.2)
    return {"power": number**exponent}, os.getpid()


def rest(number: int, folder: str) -> int:
    """Return the number of the task: at once for the first two that run, whichever they are, for the others very late."""
    for name in ("first", "second"):
        with suppress(FileExistsError):
            Path(folder, name).touch(exist_ok=False)
            return number
    time.sleep(600)
    return number
