"""What of some work is done, and what came of it: a line of a file each, kept as soon as it is known."""

from __future__ import annotations

import errno
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from lmgauge.base.decoding import decode
from lmgauge.base.files import OutputError, regular
from lmgauge.base.json_text import to_json


class DiskFullError(OutputError):
    """Raised when there is no room for an array; what was written of it is removed."""


def unwritten(path: Path, error: OSError) -> OutputError:
    """Return what to raise where a file cannot be written.

    >>> unwritten(Path("arrays/0.npy"), OSError(errno.ENOSPC, "No space left on device"))
    DiskFullError('arrays/0.npy: the disk is full')
    >>> unwritten(Path("arrays/0.npy"), OSError(errno.EACCES, "Permission denied"))
    OutputError('arrays/0.npy: cannot be written: Permission denied')
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(f"{path}: the disk is full")
    return OutputError(f"{path}: cannot be written: {error.strerror or error}")


_Note: Any = tuple[tuple[str | int | None, ...], Any]
"""A key, and what came of it."""


class Notes(dict[Any, Any]):
    """What is done by its key, a tuple, and what came of it, all of which JSON can hold: a line each, with its sum."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        super().__init__(self._stored())

    def _stored(self) -> Iterator[tuple[tuple[Any, ...], Any]]:
        # A line that a killed run began to write, or that was changed, says nothing.
        with suppress(FileNotFoundError), open(self._path, "rb", opener=regular) as file:
            for line in file:
                line = line.removesuffix(b"\n")
                if line[:9] == _sum_of(line[9:]):
                    yield decode(line[9:], _Note, self._path, "a note of what is done", "remove it and start again")

    def __setitem__(self, key: tuple[Any, ...], value: Any) -> None:
        self.write(key, value)
        super().__setitem__(key, value)

    def write(self, key: tuple[Any, ...], value: Any) -> None:
        """Note something for a later run, and not in memory."""
        line = to_json([key, value], indent=None).encode()
        try:
            self._file = self._file or open(self._path, "ab")  # noqa: SIM115 - until `close`
            self._file.write(b"\n" + _sum_of(line) + line)  # a line on which a killed run stopped ends here
            self._file.flush()
        except OSError as error:
            raise unwritten(self._path, error) from error

    def close(self) -> None:
        """Close the file, which stays."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def clear(self) -> None:
        """Forget all."""
        self.close()
        self._path.unlink(missing_ok=True)
        super().clear()


def _sum_of(line: bytes) -> bytes:
    return b"%08x " % zlib.crc32(line)
