"""Writing files so that nothing half-written is ever left under its final name; reading those that a stranger chose."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from lmgauge.base.errors import InputError, LmgaugeError, UsageError
from lmgauge.base.remote.addresses import PathLike, is_remote, shown_name
from lmgauge.base.remote.stores import store_of
from lmgauge.base.temporaries import HeldError, exchange, hold_lock, temporary_beside

STANDARD_STREAM = "-"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_ADDRESS = re.compile(r"^(s3a?|gc?s|hf|https?|az|abfss?|adl|memory|file):/+(?=.)")


class OutputError(LmgaugeError, OSError):
    """Raised when a file or folder cannot be written: the disk is full, no permission, or something is in the way."""

    path: Path | None = None  # what could not be written, where that is known


def reason_of(error: Exception) -> str:
    """Return why a file cannot be read, in a few words."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, PermissionError):
        return "permission denied: this user may not read it"
    return getattr(error, "strerror", None) or str(error).partition("\n")[0]


def local_path(path: PathLike) -> Path:
    """Return a path at which the system can look, be something there or not.

    >>> local_path("a" * 5000)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    lmgauge.base.errors.InputError: 'aaa...': File name too long
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        name = shown_name(path)
        raise InputError(f"{name if len(name) < 300 else f'{name[:100]}...'!r}: {reason_of(error)}") from error
    return Path(path)


@contextmanager
def naming(path: PathLike, temporaries: Sequence[Path] = ()) -> Iterator[None]:
    """Let errors of the operating system in a block name what it writes, and never one of the temporaries of that."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        if isinstance(error, OutputError):  # it names a path already: one of the temporaries, or what lies elsewhere
            place = error.path
            cause = error.__cause__ if place is not None and any(map(place.is_relative_to, temporaries)) else None
        elif not isinstance(error, OSError | LmgaugeError) and (number := _OS_ERROR.search(str(error))):
            cause = OSError(int(number[1]), os.strerror(int(number[1])))
        if not isinstance(cause, OSError) or isinstance(cause, BrokenPipeError):
            raise
        said = f"cannot be written: {cause.strerror or cause}"
        if cause.errno == errno.ENOSPC:
            said = "the disk is full; nothing of it was left behind. Free some space or write elsewhere"
        explained = OutputError(f"{path}: {said}")
        explained.path = None if is_remote(path) else Path(path)
        raise explained from cause


def refuse_replacing(outputs: Mapping[str, PathLike | None], inputs: Iterable[PathLike]) -> None:
    """Refuse outputs that would replace what the same command reads, or each other."""
    read = [os.fspath(path) for path in inputs]
    named = {name: path for name, path in outputs.items() if path is not None and str(path) != STANDARD_STREAM}
    written = [(name, path if is_remote(path) else local_path(path)) for name, path in named.items()]
    for number, (name, target) in enumerate(written):
        shown = f"{name} {shown_name(target)}"
        for source in read:
            if _replaces(target, source):
                what = "standard input" if source == STANDARD_STREAM else shown_name(source)
                raise UsageError(f"{shown} would replace what this command reads ({what}); choose another name")
        for other, earlier in written[:number]:
            nested = not is_remote(target) and (_holds(earlier, target) or _holds(target, earlier))
            if nested or _replaces(target, earlier):
                raise UsageError(f"{other} {shown_name(earlier)} and {shown} would replace each other; choose another name")


def _replaces(target: PathLike, source: PathLike) -> bool:
    # True if writing the target changes the source, or a file of that folder.
    if is_remote(target) or is_remote(source):
        return shown_name(target).rstrip("/") == shown_name(source).rstrip("/")
    if source == STANDARD_STREAM:
        return _same_file(target, 0)
    outer, inner = (target, source) if os.path.isdir(target) else (source, target)
    nested = os.path.isdir(outer) and os.path.exists(inner)  # or no link needs to be followed
    return (nested and _holds(outer, inner)) or _same_file(target, source)


def _same_file(target: PathLike, other: PathLike | int) -> bool:
    try:
        return os.path.samestat(os.stat(target), os.stat(other))
    except (OSError, ValueError):  # one of them is not there, or its name cannot be one
        return False


def _holds(folder: PathLike, path: PathLike) -> bool:
    # True if a path lies in a folder, or is it.
    inner = Path(os.path.realpath(path))
    return Path(os.path.realpath(folder)) in (inner, *inner.parents)


@contextmanager
def writing(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a binary file that appears under `path` when the block ends well, and not at all when it does not."""
    # A link stays, and what it names is written; a pipe or a device is written to as the block goes on. To an address, the
    # bytes are sent as the block goes on, in parts that nobody sees before the last.
    if is_remote(path):
        with naming(shown_name(path)), store_of(os.fspath(path)).uploading() as file:
            yield file
        return
    named = Path(path)
    with naming(named):
        if named.exists() and not named.is_file():
            with named.open("wb") as file:
                yield file
            return
        target = _destination(named)
        with temporary_beside(target, folder=False) as temporary:
            with temporary.open("w+b") as file:
                yield file
            os.replace(temporary, target)


@contextmanager
def writing_or_printing(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a binary file as `writing` does, or standard output under the name `-`."""
    if os.fspath(path) == STANDARD_STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with writing(path) as file:
            yield file


@contextmanager
def writing_directory(path: PathLike, *, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Make a folder that appears under `path`, whole, when the block ends well; one of the same kind is replaced."""
    named = Path(path)
    temporaries: list[Path] = []
    with naming(named, temporaries):
        target = _destination(named)
        refuse_other_folder(named, is_ours=is_ours)
        with making_parents(target), temporary_beside(target, folder=True) as temporary:
            temporaries.append(temporary)
            yield temporary
            try:
                os.replace(temporary, target)
            except OSError:
                if not target.exists():
                    raise
                refuse_other_folder(named, is_ours=is_ours)  # what came there meanwhile
                exchange(temporary, target)


def refuse_other_folder(path: PathLike, *, is_ours: Callable[[Path], bool]) -> None:
    """Refuse a path at which `writing_directory` would find something else; for long work, before it is begun."""
    target = _destination(Path(path))
    if target.exists() and not (target.is_dir() and (not any(target.iterdir()) or is_ours(target))):
        raise InputError(f"{Path(path)}: exists and was not written by lmgauge as such a folder; choose another name")


def _destination(named: Path) -> Path:
    # Where a path leads: a link is followed, so that what is written does not take the link's own place.
    address, several = _ADDRESS.subn(r"\1://", named.as_posix())  # as a path it has lost a slash
    if several:
        raise OutputError(f"{shown_name(address)}: this is written to local paths only")
    if not local_path(named).is_symlink():
        return named
    if not named.exists():
        raise OutputError(f"{named}: is a link to {os.readlink(named)}, which does not exist; remove the link, or make that")
    return Path(os.path.realpath(named))


def is_special(path: PathLike) -> bool:
    """Return True for what is there and is neither a folder nor a file of a disk: a pipe, a device, a part of /proc."""
    # Reading it may wait without end, or have none. A user may name one; a folder from elsewhere may not hold or name one.
    try:
        seen = os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return False
    return not (stat.S_ISREG(seen.st_mode) or stat.S_ISDIR(seen.st_mode)) or seen.st_dev in _devices_of_system()


@cache
def _devices_of_system() -> set[int]:
    return {os.stat(folder).st_dev for folder in ("/proc", "/sys") if os.path.ismount(folder)}


def regular(path: str, flags: int) -> int:
    """Open a file in a folder from elsewhere, or one that such a folder names: the `opener` of `open`."""
    if is_special(path):
        raise OSError(errno.EINVAL, "is a pipe or a device, not a file of a disk", path)
    return os.open(path, flags)


def read_regular(path: PathLike, most: int = 1 << 30) -> bytes:
    """Return the bytes of a file in a folder from elsewhere."""
    with open(path, "rb", opener=regular) as file:
        if os.fstat(file.fileno()).st_size <= most:
            return file.read()  # told how many bytes at most, it would take memory for as many
    raise OSError(errno.EFBIG, f"has more than the {most >> 20:,} MiB that such a file may have", os.fspath(path))


def folder_named(name: str) -> str:
    """Return a name as that of one folder inside another: without separators, a drive's colon, dots in front."""
    return re.sub(r"[/\\:\0]|^\.+", "_", name) or "_"


@contextmanager
def making_parents(target: Path) -> Iterator[None]:
    """Make the folders that lead to a target; those made are removed again if the block fails and nothing is in them."""
    made = [folder for folder in local_path(target).parents if not folder.exists()]
    try:
        with naming(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def locking(path: Path, work: Path) -> Iterator[None]:
    """Hold the lock of a file in the block, so that no other run does the same work; a run that was killed holds none."""
    # Where there are no locks, hold nothing.
    # work: the file or folder that is made.
    try:
        with naming(path.parent):
            lock = _lock_of(path)
    except HeldError as error:
        raise UsageError(f"{work}: another run is working there; wait for it, or name another") from error
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _lock_of(path: Path) -> int | None:
    # Descriptor that holds the lock of the file under this name, which a run that ends may remove meanwhile.
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            path.touch()
            lock = hold_lock(path, wait=False)
            if _same_file(path, path if lock is None else lock):
                return lock
            if lock is not None:
                os.close(lock)


# -- SHA-256: what texts, vocabularies, models and files are known by; the one module that makes it ---------------------
def digest(*parts: object) -> str:
    """Return the SHA-256 of parts one after another: bytes as they are, strings in UTF-8, all else as JSON, keys sorted.

    >>> digest("ab", b"c") == digest("abc"), digest({"b": 1, "a": 2}) == digest('{"a": 2, "b": 1}')
    (True, True)
    """
    return growing_digest(*parts).hexdigest()


def growing_digest(*parts: object) -> hashlib._Hash:
    """Return the SHA-256 of parts, as `digest` takes them, to which more is added by `update`."""
    return _added(hashlib.sha256(), parts)


def file_sha256(path: str | os.PathLike[str], *parts: object) -> str:
    """Return the SHA-256 of the bytes of a file of a disk, and of parts after them."""
    with open(path, "rb", opener=regular) as file:
        return _added(hashlib.file_digest(file, "sha256"), parts).hexdigest()


def _added(whole: hashlib._Hash, parts: Iterable[object]) -> hashlib._Hash:
    for part in parts:
        if not isinstance(part, bytes | memoryview):
            part = (part if isinstance(part, str) else json.dumps(part, sort_keys=True, default=str)).encode()
        whole.update(part)
    return whole
