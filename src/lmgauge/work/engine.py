"""Stages of tasks that make arrays out of arrays, for work larger than memory, and what runs them.

A stage is a function of one value in which arrays stand by their names (`Stored`), wherever they lie; it reads them when it
needs them, and yields what it makes. A plan is code that hands on what stages made. The sum of squares of parts:

    >>> def square(part, read):
    ...     yield read(part) ** 2
    >>> def add(parts, read):
    ...     yield sum(read(part).sum() for part in parts)
    >>> def sum_of_squares(engine, parts):
    ...     squares = engine.run("square", square, parts, NEW)
    ...     (total,) = engine.run("add", add, [squares], NEW)
    ...     engine.drop(squares)
    ...     return engine.read(total)
"""

# The folder says what work it is (`manifest`) and what of it is done, a line each, so that a run that was killed, or for
# which the disk was too small, can be resumed; one run at a time goes on with it. Where the machine itself fails, files that
# it had not written yet may be missing or too short, which reading them notices.

from __future__ import annotations

import io
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError, UsageError
from lmgauge.base.files import OutputError, locking, reason_of, regular
from lmgauge.base.memory import format_bytes, give_back
from lmgauge.base.threads import go_on, thread_count
from lmgauge.work.executor import Countdown, Crew, Task
from lmgauge.work.manifest import (
    DiskFullError,
    Manifest,
    Notes,
    decode_facts,
    described,
    read_manifest,
    refuse_other,
    unfinished,
    unwritten,
    write_manifest,
)

M = TypeVar("M")
T = TypeVar("T")
Array = NDArray[Any]


@dataclass(frozen=True)
class Stored:
    """An array that an engine holds."""

    name: str


NEW = Stored("")
"""Stands for an array in what a stage makes."""

Read = Callable[[Stored], Array]
_LARGE = 64 << 20


def stored_in(value: object) -> Iterator[Stored]:
    """Yield the arrays that stand in a value of lists, tuples, mappings and dataclasses."""
    if isinstance(value, Stored):
        yield value
    elif is_dataclass(value) or isinstance(value, list | tuple | Mapping):
        parts = value if isinstance(value, list | tuple) else (value if isinstance(value, Mapping) else vars(value)).values()
        for part in parts:
            yield from stored_in(part)


def _named(value: Any, task: str, numbers: Iterator[int]) -> Any:
    # What a task makes, with a name in the place of each `NEW`.
    if isinstance(value, Stored):
        return Stored(f"{task}/{next(numbers)}")
    if isinstance(value, list | tuple):
        return type(value)(_named(part, task, numbers) for part in value)
    if isinstance(value, Mapping):
        return {key: _named(part, task, numbers) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{name: _named(part, task, numbers) for name, part in vars(value).items()})
    return value


class Arrays:
    """Arrays by their names: these in memory, others elsewhere."""

    _freed = 0  # bytes, since memory was given back

    def __init__(self) -> None:
        self.held: dict[Stored, Any] = {}

    def write(self, stored: Stored, array: Array) -> None:
        """Hold an array, in the place of one of that name."""
        self.held[stored] = array

    def read(self, stored: Stored) -> Array:
        """Return an array."""
        return self.held[stored]  # type: ignore[no-any-return]

    def remove(self, stored: Stored) -> None:
        """Forget an array, if there is one of this name."""
        self._freed += getattr(self.held.pop(stored, None), "nbytes", 0)
        if self._freed > _LARGE:
            self._freed = 0
            give_back()


class Engine:
    """Runs stages, and holds the arrays between them: this one in memory, with tasks in threads; others elsewhere."""

    workers: int  # how many tasks run at a time
    notes: MutableMapping[tuple[str, int | None], Any]  # tasks that are done and, by None, stages, and what came of them
    place = Path("memory")  # where that is noted

    def __init__(self, workers: int = 1, arrays: Arrays | None = None, *, processes: bool = False) -> None:
        self.workers, self.notes, self.arrays = workers, {}, arrays or Arrays()
        self._crew = Crew(workers, processes=processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End what runs tasks."""
        self._crew.close()

    def write(self, name: str, array: Array) -> Stored:
        """Hold an array that the program itself made."""
        stored = Stored(name)
        with self._explained():
            self.arrays.write(stored, array)
        return stored

    def read(self, stored: Stored) -> Array:
        """Return an array."""
        return self.arrays.read(stored)

    def drop(self, *values: object) -> None:
        """Forget the arrays in some values; those that are not there do not matter."""
        for value in values:
            for stored in stored_in(value):
                self.arrays.remove(stored)

    def _explained(self) -> AbstractContextManager[None]:
        # What says of errors in the block how to go on.
        return nullcontext()

    def run(
        self, name: str, work: Callable[[T, Read], Iterator[Array]], takes: Sequence[T], makes: M, title: str = ""
    ) -> list[M]:
        """Run the tasks of a stage that no earlier run did, and return what each makes.

        Args:
            name: of the stage, once in a piece of work, such as `count`.
            work: yields the arrays; a function of a module, as it may run in another process.
            takes: what each task takes, with all arrays that it reads; can be pickled. No task depends on another.
            makes: what each task makes, with `NEW` for each array in the order in which it yields them.
            title: what the stage does, to say while it runs, such as `counting`; else its name.

        Raises:
            LmgaugeError: what a task raised; or there is no room for what it made.
        """
        made: list[M] = [_named(makes, f"{name}/{number}", count()) for number in range(len(takes))]
        tasks = [Task(name, n, work, own, list(stored_in(made[n]))) for n, own in enumerate(takes)]
        if tasks and not self.is_finished(name):
            rest = [task for task in tasks if (name, task.number) not in self.notes]
            # Whoever listens to progress hears how many tasks are done, and about how many seconds the others will take.
            countdown = Countdown(title or name, len(tasks), len(tasks) - len(rest))
            do = partial(make_arrays, read=self.arrays.read, write=self.arrays.write)
            with self._explained(), closing(self._crew.run(do, rest)) as done:
                for number, _ in done:
                    # A note is never about something that is missing. A task that was not noted runs again, and replaces
                    # what it had made.
                    self.notes[name, number] = None
                    countdown.step()
                self.notes[name, None] = None
        return made

    def is_finished(self, name: str) -> bool:
        """Return True if the stage of this name is done, or what `once` makes."""
        return (name, None) in self.notes

    def once(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """Return what the program itself makes under this name: `make` is called unless an earlier run did.

        Args:
            name: not that of a stage.
            kind: what it is: a dataclass of JSON's types.
            make: makes it; arrays that it writes are there for later stages.
        """
        if self.is_finished(name):
            return decode_facts(self.notes[name, None], kind, self.place)
        made = make()
        with self._explained():
            self.notes[name, None] = asdict(cast(Any, made))
        return made


def make_arrays(task: Task, read: Read, write: Callable[[Stored, Array], object]) -> None:
    """Do the work of a task, and write each array that it makes as soon as it is there; nothing here holds on to one."""

    def _read(stored: Stored) -> Array:
        go_on()
        return read(stored)

    made = 0
    for array in task.work(task.taken, _read):
        go_on()
        made += 1  # enumerate would hold on to the array while the next one is made
        if made > len(task.makes):
            break
        write(task.makes[made - 1], array)
        del array
    if made != len(task.makes):
        more = "more" if made > len(task.makes) else "fewer"
        raise ValueError(f"stage {task.stage} makes {more} arrays than the {len(task.makes)} that it says")


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
