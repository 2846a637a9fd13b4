"""Writing files so that nothing half-written is ever left under its final name."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lmgauge.errors import InputError, LmgaugeError


class OutputError(LmgaugeError, OSError):
    """Raised when a file or folder cannot be written: the disk is full, no permission, or something is in the way."""


def _explain(path: Path, error: OSError) -> OutputError:
    if error.errno == errno.ENOSPC:
        return OutputError(f"{path}: the disk is full; nothing was left behind. Free some space or write elsewhere")
    return OutputError(f"{path}: cannot be written: {error.strerror or error}")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that appears under `path` when the block ends well, and not at all when it does not.

    Raises:
        OutputError: the file cannot be written.
    """
    target = Path(path)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        if isinstance(error, (LmgaugeError, BrokenPipeError)):
            raise
        raise _explain(target, error) from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


@contextmanager
def writing_directory(path: str | os.PathLike[str], *, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """A folder that appears under `path`, whole, when the block ends well; one of the same kind is replaced.

    Args:
        path: where; folders that lead there are made.
        is_ours: whether an existing folder is of this kind; any other that is not empty is left alone.

    Raises:
        InputError: something else is in the way.
        OutputError: the folder cannot be written.
    """
    target = Path(path)
    if target.exists() and not (target.is_dir() and (not any(target.iterdir()) or is_ours(target))):
        raise InputError(f"{target}: exists and is no such folder of lmgauge's; choose another name")
    temporary: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
        yield temporary
        os.chmod(temporary, 0o777 & ~_umask())
        if target.exists():
            _exchange(temporary, target)
        else:
            os.replace(temporary, target)
        temporary = None
    except OSError as error:
        if isinstance(error, (LmgaugeError, BrokenPipeError)):
            raise
        raise _explain(target, error) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _exchange(fresh: Path, target: Path) -> None:
    """Puts a folder in the place of another; that one stays where the new one cannot take its place."""
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
    try:
        os.rename(target, aside / "old")
        try:
            os.replace(fresh, target)
        except BaseException:
            os.rename(aside / "old", target)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
