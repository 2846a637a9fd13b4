"""Files and folders in the making: locked while their writer lives, and removed by the next writer if it was killed."""

# A temporary stands beside what it is to become, under the name `.NAME.HOST-RANDOM.tmp`. Its writer holds its lock until
# the end, and the system frees the lock of a process that dies: so a leftover is told from what a living run writes,
# whatever any clock says. Where that cannot be told, as the file system has no locks or another machine made it (locks may
# be those of one machine), a leftover is removed when nothing in it was written for a week.

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_WEEK_SECONDS = 7 * 24 * 3600.0
_RANDOM = r"(?:(?P<host>[0-9a-f]{4})-)?[a-z0-9_]{8}\.(?P<kind>tmp|old)"
_SCRATCH = "lmgauge"
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_HERE = -100  # AT_FDCWD of Linux


class HeldError(Exception):
    """Raised inside this module when another run holds a lock."""


def temporary_beside(target: Path, *, folder: bool, suffix: str = ".tmp") -> AbstractContextManager[Path]:
    """Make a file or folder beside a target, to be removed at the end if it is still there under its name."""
    # It is locked while its writer lives. What killed runs left beside the target is removed, and a folder that such a run
    # had put aside and not yet replaced is put back.
    return _made(target.parent, f".{target.name}.", suffix, target, 0o777 if folder else 0o666, folder=folder)


def scratch_folder(where: str | os.PathLike[str] | None = None) -> AbstractContextManager[Path]:
    """Make a folder for files that nobody needs after the block; what killed runs left there is removed."""
    parent = Path(tempfile.gettempdir() if where is None else where)
    return _made(parent, f"{_SCRATCH}.", ".tmp", None, 0o700, folder=True)


def exchange(fresh: Path, target: Path) -> None:
    """Put a folder in the place of another, in one step where the system can; the old one is then at `fresh`, or gone."""
    if _exchanged(fresh, target):
        return
    with temporary_beside(target, folder=True, suffix=".old") as aside:
        os.rename(target, aside / "old")
        try:
            os.replace(fresh, target)
        except BaseException:
            os.rename(aside / "old", target)
            raise


def hold_lock(path: Path, *, wait: bool, folder: bool = False) -> int | None:
    """Return a descriptor that holds the lock of a file or folder until it is closed; None where there are no locks."""
    # folder: it is a folder; a file is opened for writing, which network file systems ask of who locks it.
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, (os.O_RDONLY if folder else os.O_RDWR) | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise HeldError from error
    except OSError:  # this file system has no locks
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def _made(parent: Path, prefix: str, suffix: str, target: Path | None, mode: int, *, folder: bool) -> Iterator[Path]:
    # Make a locked file or folder of a name of its own, and remove it at the end if it is still there.
    _remove_leftovers(parent, prefix, target)
    prefix += f"{_host()}-"
    while True:
        path = parent / f"{prefix}{secrets.token_hex(4)}{suffix}"
        if folder:
            path.mkdir(mode)
        else:
            path.touch(mode, exist_ok=False)
        lock = hold_lock(path, wait=True, folder=folder)
        if path.exists():
            break
        if lock is not None:  # before it was locked, another run took it for a leftover
            os.close(lock)
    try:
        yield path
    finally:
        _remove(path)
        if lock is not None:
            os.close(lock)


def _remove_leftovers(parent: Path, prefix: str, target: Path | None) -> None:
    # Remove what runs that were killed left in a folder under names with a prefix; what a living run writes stays.
    ours = re.compile(re.escape(prefix) + _RANDOM)
    with suppress(OSError):  # a folder that cannot be listed
        for path in parent.iterdir():
            match = ours.fullmatch(path.name)
            if match is None or path.is_symlink():
                continue
            try:
                lock = hold_lock(path, wait=False, folder=path.is_dir())
            except HeldError:
                continue
            if (lock is not None and match["host"] in (None, _host())) or _is_old(path):
                # A killed run may have put the old folder aside and not yet the new one in its place.
                if match["kind"] == "old" and target is not None and not target.exists():
                    with suppress(OSError):
                        os.rename(path / "old", target)
                _remove(path)
            if lock is not None:
                os.close(lock)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()


def _is_old(path: Path) -> bool:
    try:
        newest = max(each.lstat().st_mtime for each in (path, *path.rglob("*")))
    except OSError:
        return False
    return time.time() - newest > _WEEK_SECONDS


def _host() -> str:
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return f"{zlib.crc32(name.encode()) & 0xFFFF:04x}"


def _exchanged(one: Path, other: Path) -> bool:
    # Exchange two names in one step; return False where the system cannot.
    if sys.platform not in ("linux", "darwin"):
        return False
    import ctypes

    library = ctypes.CDLL(None)
    first, second = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "linux":
            return bool(library.renameat2(_HERE, first, _HERE, second, _EXCHANGE) == 0)
        return bool(library.renamex_np(first, second, _EXCHANGE) == 0)
    except AttributeError:  # an older C library
        return False
