"""Arrays as files of a folder, each under its name once it is whole: `.npy` as NumPy writes it, without pickle."""

# Behind each stands a sum of its name and bytes, which a run that is resumed looks at: kernels trust the arrays of earlier
# stages, and a disk may fail between two runs.

from __future__ import annotations

import errno
import io
import os
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np

from lmgauge._kernels import _native
from lmgauge.errors import InputError
from lmgauge.files import OutputError, reason_of, regular
from lmgauge.work.engine import Array, Arrays, Stored

_SUFFIX, _UNFINISHED = ".npy", ".unfinished"
_AGAIN = "remove the folder and start again without --resume"
_SUM_BYTES = 8
_LARGEST_PIECE = 1 << 30  # systems write and read at most 2 GB at a time


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


class ArrayFolder(Arrays):
    """Reads and writes arrays; several threads and processes may use one folder at the same time."""

    def __init__(self, folder: Path, *, checking: bool = True) -> None:
        self._folder, self._checking = folder, checking

    def write(self, stored: Stored, array: Array) -> None:
        """Write an array, in the place of one of that name."""
        # [2, 3] of uint32: a header of 128 bytes, 24 of data, 8 of the sum.
        array = np.asarray(array, order="C")
        if array.dtype.kind not in "biufc":
            raise ValueError(f"array {stored.name} is of {array.dtype}, not of numbers")
        path = self._path(stored)
        unfinished = path.with_suffix(_UNFINISHED)
        opening = io.BytesIO()
        np.lib.format.write_array_header_1_0(opening, np.lib.format.header_data_from_array_1_0(array))
        header, data = opening.getvalue(), array.reshape(-1).view(np.uint8).data
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(unfinished, "wb", buffering=0) as file:
                _write_all(file, memoryview(header))
                _write_all(file, data)
                _write_all(file, memoryview(_sum_of(stored.name, header, data)))
            # The name appears when all bytes are written: a task that is killed leaves no array that could be taken for
            # whole.
            os.replace(unfinished, path)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            raise unwritten(path, error) from error

    def read(self, stored: Stored) -> Array:
        """Return an array, read into memory."""
        path = self._path(stored)
        try:
            with open(path, "rb", buffering=0, opener=regular) as file:
                return _read_array(file, path, stored.name if self._checking else None)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {reason_of(error)}; {_AGAIN}") from error

    def remove(self, stored: Stored) -> None:
        """Remove an array, if there is one of this name."""
        self._path(stored).unlink(missing_ok=True)

    def total_size(self) -> int:
        """Return the size of all files, in bytes."""
        return sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())

    def remove_unfinished(self) -> None:
        """Remove what tasks that were killed had not finished writing."""
        for path in self._folder.rglob(f"*{_UNFINISHED}"):
            path.unlink(missing_ok=True)

    def _path(self, stored: Stored) -> Path:
        return self._folder / f"{stored.name}{_SUFFIX}"


def _write_all(file: io.FileIO, data: memoryview) -> None:
    while data.nbytes:
        data = data[file.write(data[:_LARGEST_PIECE]) :]


def _sum_of(name: str, header: bytes, data: memoryview) -> bytes:
    # The name is part of the sum: two files that were exchanged are noticed, too.
    of_data = _native.checksum_bytes(np.frombuffer(data, np.uint8)) if data.nbytes else 0
    return (of_data ^ zlib.crc32(name.encode() + header)).to_bytes(_SUM_BYTES, "little")


def _read_array(file: io.FileIO, path: Path, name: str | None) -> Array:
    # Array of an open file; with a name its bytes must be those that were written, before NumPy looks at them.
    # Not by `np.fromfile`, which says nothing of a disk that fails.
    whole = np.empty(os.fstat(file.fileno()).st_size, np.uint8)
    rest = whole.data
    while rest.nbytes and (count := file.readinto(rest[:_LARGEST_PIECE])):
        rest = rest[count:]
    # 8 bytes, the length of the header in 2, the header, the numbers, the sum.
    begin = 10 + int.from_bytes(whole[8:10].tobytes(), "little")
    header, data, stored = whole[:begin].tobytes(), whole[begin:-_SUM_BYTES], whole[-_SUM_BYTES:].tobytes()
    try:
        if name is not None and stored != _sum_of(name, header, data.data):
            raise ValueError("its bytes are not those that were written")
        shape, _, dtype = np.lib.format.read_array_header_1_0(io.BytesIO(header[8:]))
        array: Array = data.view(dtype).reshape(shape)
        return array
    except ValueError as error:
        raise InputError(f"{path}: damaged: {error}; {_AGAIN}") from error
