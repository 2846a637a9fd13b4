"""The engine for one machine: arrays lie in files of a folder, and tasks run in threads or processes, a few at a time."""

# The folder says what work it is (`manifest`) and what of it is done, a line each, so that a run that was killed, or for
# which the disk was too small, can be resumed; one run at a time goes on with it. Where the machine itself fails, files that
# it had not written yet may be missing or too short, which reading them notices.

from __future__ import annotations

import io
import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import OutputError, locking, reason_of, regular
from lmgauge.base.memory import format_bytes
from lmgauge.base.threads import thread_count
from lmgauge.work.engine import Array, Arrays, Engine, Stored
from lmgauge.work.manifest import (
    DiskFullError,
    Manifest,
    Notes,
    described,
    read_manifest,
    refuse_other,
    unfinished,
    unwritten,
    write_manifest,
)

ARRAYS = "arrays"
_WORK, _FINISHED, _LOCK = "work.json", "finished.log", "lock"
_OURS = {ARRAYS, _WORK, _FINISHED, _LOCK}
_SUFFIX, _UNFINISHED = ".npy", ".unfinished"
_AGAIN = "remove the folder and start again without --resume"
_SUM_BYTES = 8
_LARGEST_PIECE = 1 << 30  # systems write and read at most 2 GB at a time


class FolderEngine(Engine):
    """Runs stages whose arrays are files: memory holds only what the tasks at work read and make."""

    # Leaving the block leaves the folder as it is; `remove` removes it when the work has come to its end.
    # workers: how many tasks run at a time, in threads.

    arrays: ArrayFolder
    notes: Notes

    def __init__(
        self,
        folder: str | os.PathLike[str],
        work: Mapping[str, Any],
        *,
        workers: int = 1,
        processes: bool = False,
        resume: bool = False,
    ) -> None:
        self.place = Path(folder)
        # Sums are looked at only in a resumed run: what this run wrote it can trust, and sums cost time.
        super().__init__(thread_count(workers), ArrayFolder(self.place / ARRAYS, checking=resume), processes=processes)
        with ExitStack() as stack:
            try:
                self._open(stack, work, resume=resume)
            except OSError as error:
                if isinstance(error, OutputError):
                    raise
                raise unwritten(self.place, error) from error
            self.arrays.remove_unfinished()
            self._stack = stack.pop_all()

    def _open(self, stack: ExitStack, work: Mapping[str, Any], *, resume: bool) -> None:
        # Begin the work in the folder, or go on with it.
        self.place.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in self.place.iterdir() if not path.name.startswith(f".{_WORK}.")}  # of a killed run
        if self._earlier() is None and names - _OURS:
            raise UsageError(f"{self.place}: holds other files; name a folder that is empty or does not exist yet")
        stack.enter_context(locking(self.place / _LOCK, self.place))
        earlier, self.notes = self._earlier(), Notes(self.place / _FINISHED)
        if resume and earlier is not None:
            refuse_other(self.place, earlier.made_of, described(work))
            return
        if earlier is not None and self.notes:
            stages = sum(task is None for _, task in self.notes)
            done = f"stages done: {stages}, tasks done: {len(self.notes) - stages}"
            raise unfinished(self.place, done)
        self._clear()
        write_manifest(self.place / _WORK, "stages", work)

    def _earlier(self) -> Manifest | None:
        return read_manifest(self.place / _WORK) if (self.place / _WORK).exists() else None

    def _clear(self) -> None:
        self.notes.clear()  # first: nothing is done of which the arrays may be gone
        shutil.rmtree(self.place / ARRAYS, ignore_errors=True)

    def close(self) -> None:
        """End the workers, and let other runs use the folder, which stays as it is."""
        super().close()
        self.notes.close()
        self._stack.close()

    def remove(self) -> None:
        """Remove what is there of the work, and the folder, if nothing else is in it."""
        self._clear()
        for name in (_WORK, _LOCK):
            (self.place / name).unlink(missing_ok=True)
        with suppress(OSError):  # somebody put a file of their own there
            self.place.rmdir()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        # Say of a full disk how much is there, and how to go on; whatever ends a run leaves no unfinished file.
        try:
            yield
        except BaseException as error:
            self.arrays.remove_unfinished()
            if not isinstance(error, DiskFullError):
                raise
            there, free = map(format_bytes, (self.arrays.total_size(), shutil.disk_usage(self.place).free))
            raise OutputError(
                f"{self.place}: the disk is full: {there} of temporary files are there, {free} are free; "
                "free some space, then continue with --resume (resume=True)"
            ) from error


# -- arrays as files ----------------------------------------------------------------------------------------------------
# Each under its name once it is whole: `.npy` as NumPy writes it, without pickle. Behind each stands a sum of its name and
# bytes, which a run that is resumed looks at: kernels trust the arrays of earlier stages, and a disk may fail between runs.
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
