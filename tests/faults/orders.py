"""The orders of a fault, in memory that the shim and this program share, and the compiling of the shim."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("shim.c")
CLASSES: Final = ("read", "change", "space")
"""What a call does: reads, alters a file or folder, or alters one and needs room on the disk for it."""
MODES: Final = ("count", "kill", "tear", "once", "from", "short", "stop")
"""Count only; die before the call; die in its middle; fail once; fail from then on; do a part of it; stop (SIGSTOP)."""


class Orders(ctypes.Structure):
    """What the shim reads and counts, laid out as in `shim.c`."""

    _fields_ = (
        *((name, ctypes.c_long) for name in ("mode", "kind", "at", "error", "armed", "hits", "jump", "looks")),
        ("counts", ctypes.c_long * len(CLASSES)),
        ("folder", ctypes.c_char * 1024),
        ("log", ctypes.c_char * 1024),
        ("hit", ctypes.c_char * 256),
    )


def orders_in(path: Path) -> Orders:
    """Return the orders in a file, mapped: what one process writes, the others see."""
    if not path.exists():
        path.write_bytes(bytes(max(ctypes.sizeof(Orders), mmap.PAGESIZE)))
    with path.open("r+b") as file:
        return Orders.from_buffer(mmap.mmap(file.fileno(), 0))


def why_not() -> str | None:
    """Return why there can be no shim on this machine, or None if there can."""
    if sys.platform != "linux":
        return "the shim is loaded by LD_PRELOAD and reads /proc, which Linux has"
    if _compiler() is None:
        return "the shim is compiled here, and there is no C compiler (cc, gcc or clang)"
    return None


def _compiler() -> str | None:
    return next(
        (path for name in (os.environ.get("CC"), "cc", "gcc", "clang") if name and (path := shutil.which(name))), None
    )


def compiled(folder: Path) -> Path:
    """Return the shim, compiled into a folder.

    Raises:
        RuntimeError: it cannot be compiled.
    """
    compiler, shim = _compiler(), folder / "shim.so"
    if compiler is None:
        raise RuntimeError(why_not())
    command = [compiler, "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", str(shim), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return shim
