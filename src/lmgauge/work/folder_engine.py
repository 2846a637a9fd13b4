"""The engine for one machine: arrays lie in files of a folder, and tasks run in threads or processes, a few at a time."""

# The folder says what work it is (`manifest`) and what of it is done, a line each, so that a run that was killed, or for
# which the disk was too small, can be resumed; one run at a time goes on with it. Where the machine itself fails, files that
# it had not written yet may be missing or too short, which reading them notices.

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from lmgauge.errors import UsageError
from lmgauge.files import OutputError, locking
from lmgauge.memory import size_in_words
from lmgauge.threads import thread_count
from lmgauge.work.array_folder import ArrayFolder, DiskFullError, unwritten
from lmgauge.work.engine import Engine
from lmgauge.work.manifest import Manifest, described, read_manifest, refuse_other, unfinished, write_manifest
from lmgauge.work.notes import Notes

ARRAYS = "arrays"
_WORK, _FINISHED, _LOCK = "work.json", "finished.log", "lock"
_OURS = {ARRAYS, _WORK, _FINISHED, _LOCK}


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
            there, free = map(size_in_words, (self.arrays.total_size(), shutil.disk_usage(self.place).free))
            raise OutputError(
                f"{self.place}: the disk is full: {there} of temporary files are there, {free} are free; "
                "free some space, then continue with --resume (resume=True)"
            ) from error
