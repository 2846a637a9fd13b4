"""Sizes of memory in words, what is free, and how much of a file is in memory."""

# What is free is what this process may still take before the system ends it or refuses: the least of what the machine has
# left, of what the control groups of the process leave it (containers, batch systems), and of its own limits (`ulimit`).

from __future__ import annotations

import mmap
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from operator import index
from typing import TYPE_CHECKING

from lmgauge.base.errors import UsageError
from lmgauge.base.escaping import visible
from lmgauge.base.option_numbers import check_whole
from lmgauge.base.remote.addresses import PathLike, joined

if TYPE_CHECKING:
    from pathlib import Path

_SIZE = re.compile(r"(\d{1,18})(?:\.(\d{1,18}))?\s?(?:([kmgt])(b|i|ib)?|b)?", re.ASCII | re.IGNORECASE)
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4}
# Of a control group: the folder of its kind, the names of the files of its limit and use, and what may be dropped of that.
_GROUP = ("", "memory.max", "memory.current", "inactive_file ")
_OLD_GROUP = ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
_SURELY_FREE = 1 << 20  # bytes: to ask takes longer than to read them
_MOST_BYTES = 2**62  # larger limits of control groups mean none


def parse_size(size: str | int) -> int:
    """Return the bytes of a size such as 500M, 2G, 1.5GB or 2GiB."""
    # K, M, G and T are powers of 1024, as in `sort -S` and `lmplz -S`, and so are KiB, MiB, ...; kB, MB, GB and TB are
    # powers of 1000. A number alone is of bytes.
    if not isinstance(size, str):
        check_whole("a size in bytes", size, 1, _MOST_BYTES)
        return index(size)
    from fractions import Fraction

    match = _SIZE.fullmatch(size.strip())
    if match is None:
        raise UsageError(f"{visible(size[:40])!r} is not a size; write 500M, 2G (2 x 1024^3 bytes), 1.5GB or bytes")
    whole, part, unit, kind = match.groups()
    if unit is None and part is not None:
        raise UsageError(f"{size.strip()!r} is not a size: bytes are whole; write 500M, 2G or 1.5GB")
    base = 1000 if (kind or "").lower() == "b" else 1024
    count = int(Fraction(f"{whole}.{part or 0}") * base ** _POWER.get((unit or "").lower(), 0))
    if not 1 <= count <= _MOST_BYTES:
        raise UsageError(f"{visible(size[:40])} is out of range for a size in bytes; write 500M, 2G or 1.5GB")
    return count


def format_bytes(count: float) -> str:
    """Return a number of bytes with three digits, in powers of 1000."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            shown = count / size
            return f"{shown:,.0f} {unit}" if shown >= 999.5 else f"{shown:.3g} {unit}"
    return f"{count:.0f} bytes"


def free_memory(root: PathLike = "/") -> int | None:
    """Return the bytes of memory that this process may still take; None where the system does not say."""
    limits = [*_left_in_system(), *_left_in_groups(root)]
    return max(0, min(limits)) if limits else None


def resident_bytes() -> int:
    """Return the bytes of this process that are in memory."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def is_larger_than_free(path: Path, size: int) -> bool:
    """Return True if a mapped file is larger than what is free, and warn of it: it can be used, but not at full speed."""
    import logging

    if size < _SURELY_FREE or (free := free_memory()) is None or size <= free:
        return False
    needed, there = format_bytes(size), format_bytes(free)
    slow = "pages are read from disk as they are needed"
    logging.getLogger(__name__).warning("%s: %s, and %s of memory are free: %s", path, needed, there, slow)
    return True


def ask_for_huge_pages(mapped: mmap.mmap) -> None:
    """Ask for a mapped file to come into memory in huge pages, where the system has them for files."""
    # Lookups all over a file of 4-kB pages spend a third of their time on finding out where its pages are: measured with
    # 0.2 and 1.4 GB of tables on Linux 6.18. Pages that are in memory already stay as they are. For files that fit into
    # memory only: each page that is missed brings two megabytes.
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            mapped.madvise(mmap.MADV_HUGEPAGE)


def _left_in_system() -> Iterator[int]:
    # What the machine has left, and what the limits of the process leave it.
    import psutil

    with suppress(OSError, psutil.Error):  # where nothing is told, nothing is known
        yield psutil.virtual_memory().available
        process = psutil.Process()
        used = process.memory_info()
        if psutil.LINUX:
            for limit, bytes_used in ((psutil.RLIMIT_AS, used.vms), (psutil.RLIMIT_DATA, used.data)):
                soft, _ = process.rlimit(limit)
                if soft != psutil.RLIM_INFINITY:
                    yield soft - bytes_used


def _left_in_groups(root: PathLike) -> Iterator[int]:
    with suppress(OSError, ValueError), open(joined(root, "proc/self/cgroup"), "rb") as file:
        for line in file:
            _, controllers, group = os.fsdecode(line.rstrip(b"\n")).split(":", 2)
            if not controllers or "memory" in controllers.split(","):
                yield from _left_along(joined(root, "sys/fs/cgroup"), group, _OLD_GROUP if controllers else _GROUP)


def _left_along(mount: str, group: str, names: tuple[str, str, str, str]) -> Iterator[int]:
    # What is left in a group and in those around it: limit - used + what can be dropped of files read.
    # In a container the group may have a path that is not there: its own then is the mount itself.
    parts = [part for part in group.split("/") if part]
    for depth in range(0 if ".." in parts else len(parts), -1, -1):
        folder = joined(mount, names[0], *parts[:depth])
        limit, used = _number(joined(folder, names[1])), _number(joined(folder, names[2]))
        if limit is not None and used is not None and limit < _MOST_BYTES:
            yield limit - used + (_number(joined(folder, "memory.stat"), names[3]) or 0)


def _number(path: str, name: str = "") -> int | None:
    # Number in a file, in the line that begins with a name; None where there is none, such as `max`.
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        match = re.search(rf"^{name}([0-9]{{1,19}})$", file.read(), re.MULTILINE)
        return None if match is None else int(match[1])
    return None


def give_back() -> None:
    """Give memory that this process does not use any more back to the system: glibc holds on to arrays below 32 MB."""
    if sys.platform == "linux":
        import ctypes

        with suppress(AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
