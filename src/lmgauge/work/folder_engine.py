"""The engine for one machine: arrays lie in files of a folder, and tasks run in threads or processes, a few at a time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from lmgauge.files import OutputError
from lmgauge.memory import size_in_words
from lmgauge.threads import thread_count
from lmgauge.work.array_folder import ArrayFolder, DiskFullError
from lmgauge.work.countdown import Countdown
from lmgauge.work.executor import ProcessCrew, ThreadCrew
from lmgauge.work.manifest import decode_facts
from lmgauge.work.stage import Array, Stage
from lmgauge.work.task import Call, Task, do_task
from lmgauge.work.work_record import ARRAYS, WorkRecord

T = TypeVar("T")


class FolderEngine:
    """Runs stages whose arrays are files: memory holds only what the tasks at work read and make."""

    # What is done is noted, so that a run that was killed, or for which the disk was too small, can be resumed. Leaving the
    # block leaves the folder as it is; `remove` removes it when the work has come to its end.
    # workers: how many tasks run at a time, in threads.

    def __init__(
        self,
        folder: str | os.PathLike[str],
        work: Mapping[str, Any],
        *,
        workers: int = 1,
        processes: bool = False,
        resume: bool = False,
    ) -> None:
        self.workers = thread_count(workers)
        self._record = WorkRecord(Path(folder), work, resume=resume)
        # Sums are looked at only in a resumed run: what this run wrote it can trust, and sums cost time.
        self._arrays = ArrayFolder(self._record.folder / ARRAYS, checking=resume)
        self._arrays.remove_unfinished()
        self._bytes = self.peak_bytes = self._arrays.total_size()
        self._crew = (ProcessCrew if processes else ThreadCrew)(self.workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, and let other runs use the folder, which stays as it is."""
        self._crew.close()
        self._record.close()

    def remove(self) -> None:
        """Remove the arrays, and what is noted of the work."""
        self._record.remove()
        self._bytes = 0

    def write(self, name: str, array: Array) -> None:
        """Hold an array that the program itself made."""
        with self._explained():
            self._grow(self._arrays.write(name, array))

    def read(self, name: str) -> Array:
        """Return an array, read into memory."""
        return self._arrays.read(name)

    def drop(self, names: Sequence[str]) -> None:
        """Remove arrays; names that are not there do not matter."""
        for name in names:
            self._bytes -= self._arrays.remove(name)

    def run(self, stage: Stage) -> None:
        """Run the tasks of a stage that no earlier run did; then drop what no later stage reads."""
        # Whoever listens to progress hears how many tasks are done, and about how many seconds the others will take.
        if self.is_finished(stage.name):
            return
        rest = [number for number in range(stage.tasks) if not self._record.is_done(stage.name, number)]
        countdown = Countdown(stage.title or stage.name, stage.tasks, stage.tasks - len(rest))
        calls = (Call(stage.name, number, do_task, (Task.of(stage, number), self._arrays)) for number in rest)
        with self._explained(), closing(self._crew.run(calls)) as done:
            for number, growth in done:
                self._grow(growth)
                # After its arrays are whole, so that a note is never about something that is missing. A task that was not
                # noted runs again, and replaces what it had made.
                self._record.note(stage.name, number)
                countdown.step()
        self.drop(stage.drops)
        with self._explained():
            self._record.note(stage.name)

    def is_finished(self, name: str) -> bool:
        """Return True if an earlier run did the stage of this name, or what `once` made."""
        return self._record.is_done(name)

    def once(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """Return what the program itself makes under this name, in this run or an earlier one."""
        if self.is_finished(name):
            return decode_facts(self._record.value(name), kind, self._record.folder)
        made = make()
        with self._explained():
            self._record.note(name, value=asdict(cast(Any, made)))
        return made

    def _grow(self, growth: int) -> None:
        self._bytes += growth
        self.peak_bytes = max(self.peak_bytes, self._bytes)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        # Say of a full disk how much is there, and how to go on; whatever ends a run leaves no unfinished file.
        try:
            yield
        except BaseException as error:
            self._arrays.remove_unfinished()
            if not isinstance(error, DiskFullError):
                raise
            folder = self._record.folder
            there, free = map(size_in_words, (self._arrays.total_size(), shutil.disk_usage(folder).free))
            raise OutputError(
                f"{folder}: the disk is full: {there} of temporary files are there, {free} are free; "
                "free some space, then continue with --resume (resume=True)"
            ) from error
