"""Writing files so that nothing half-written is ever left under its final name."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lmgauge.errors import InputError, LmgaugeError, UsageError

STANDARD_STREAM = "-"


class OutputError(LmgaugeError, OSError):
    """Raised when a file or folder cannot be written: the disk is full, no permission, or something is in the way."""


def _explain(path: Path, error: OSError) -> OutputError:
    if error.errno == errno.ENOSPC:
        return OutputError(f"{path}: the disk is full; nothing was left behind. Free some space or write elsewhere")
    return OutputError(f"{path}: cannot be written: {error.strerror or error}")


def refuse_replacing(
    outputs: Mapping[str, str | os.PathLike[str] | None], inputs: Iterable[str | os.PathLike[str]]
) -> None:
    """Refuse outputs that would replace what the same command reads, or each other.

    Args:
        outputs: files and folders to write, by the words that name them in a message; None and `-` are not files.
        inputs: files and folders to read; `-` is standard input, and what is not there, such as an address, is ignored.

    Raises:
        UsageError: an output is an input, is a file in an input folder, is a folder that holds an input, or is or holds
            another output.
    """
    targets = [(name, Path(path)) for name, path in outputs.items() if path is not None and str(path) != STANDARD_STREAM]
    read = [os.fspath(path) for path in inputs]
    for number, (name, target) in enumerate(targets):
        for source in read:
            piped = source == STANDARD_STREAM
            nested = _holds(target, source) or (target.is_file() and _holds(source, target))
            if _same_file(target, 0 if piped else source) or (nested and not piped):
                what = "standard input" if piped else source
                raise UsageError(f"{name} {target} would replace what this command reads ({what}); choose another name")
        for other, earlier in targets[:number]:
            first, second = Path(os.path.realpath(earlier)), Path(os.path.realpath(target))
            if first == second or first in second.parents or second in first.parents or _same_file(target, earlier):
                raise UsageError(f"{other} {earlier} and {name} {target} would replace each other; choose another name")


def _same_file(target: Path, other: str | os.PathLike[str] | int) -> bool:
    try:
        return os.path.samestat(os.stat(target), os.stat(other))
    except (OSError, ValueError):  # one of them is not there, or its name cannot be one
        return False


def _holds(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> bool:
    """Return True if both are there, and the second is somewhere in the first."""
    if not (os.path.isdir(folder) and os.path.exists(path)):
        return False
    return Path(os.path.realpath(folder)) in Path(os.path.realpath(path)).parents


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
