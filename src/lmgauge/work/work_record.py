"""A folder of unfinished work: what work it is, what of it is done, and that one run at a time goes on with it."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from lmgauge.errors import UsageError
from lmgauge.files import OutputError, locking, read_regular
from lmgauge.json_text import from_json, to_json
from lmgauge.work.array_folder import unwritten
from lmgauge.work.manifest import Manifest, described, read_manifest, refuse_other, write_manifest

ARRAYS = "arrays"
_WORK, _FINISHED, _LOCK = "work.json", "finished.log", "lock"
_OURS = {ARRAYS, _WORK, _FINISHED, _LOCK}


class WorkRecord:
    """Opens a folder for some work, to begin it or to resume it."""

    # It outlives a run that is killed. Where the machine itself fails, files that it had not written yet may be missing or
    # too short, which reading them notices.

    def __init__(self, folder: Path, work: Mapping[str, Any], *, resume: bool) -> None:
        self.folder = folder
        self._done: dict[tuple[str, int | None], Any] = {}
        self._stack = ExitStack()
        made = not folder.exists()
        with self._stack:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                names = {path.name for path in folder.iterdir() if not path.name.startswith(f".{_WORK}.")}  # of a killed run
                if self._earlier() is None and names - _OURS:
                    raise UsageError(f"{folder}: holds other files; name a folder that is empty or does not exist yet")
                self._stack.enter_context(locking(folder / _LOCK, f"{folder}: another run is using this folder"))
                self._made = self._open(work, resume, made)
            except OSError as error:
                if isinstance(error, OutputError):
                    raise
                raise unwritten(folder, error) from error
            self._stack = self._stack.pop_all()

    def _open(self, work: Mapping[str, Any], resume: bool, made: bool) -> bool:
        # Begin the work, or go on with it; return whether the folder was made for it.
        earlier = self._earlier()
        self._done = dict(self._notes())
        made = made or (earlier is not None and earlier.facts == "made")
        if resume and earlier is not None:
            refuse_other(self.folder, earlier.made_of, described(work))
            return made
        if earlier is not None and self._done:
            stages = sum(task is None for _, task in self._done)
            done = f"stages done: {stages}, tasks done: {len(self._done) - stages}"
            raise UsageError(
                f"{self.folder}: holds the unfinished work of an earlier run ({done}); "
                "continue it with --resume (resume=True), or remove the folder to start again"
            )
        self._done = {}
        self._clear()
        write_manifest(self.folder / _WORK, "stages", work, "made" if made else "found")
        return made

    def _earlier(self) -> Manifest | None:
        return read_manifest(self.folder / _WORK) if (self.folder / _WORK).exists() else None

    def _notes(self) -> Iterator[tuple[tuple[str, int | None], Any]]:
        # What is done, and what came of it; a line that a killed run began to write, or that was changed, says nothing.
        path = self.folder / _FINISHED
        with suppress(FileNotFoundError):
            text = read_regular(path)
            whole = text.rfind(b"\n") + 1
            if whole < len(text):
                os.truncate(path, whole)
            for line in text[:whole].splitlines():
                if line[:9] == _sum_of(line[9:]):
                    stage, task, value = from_json(line[9:])
                    yield (stage, task), value

    def is_done(self, stage: str, task: int | None = None) -> bool:
        """Return True if it is noted that a task is done, or with None the whole stage."""
        return (stage, task) in self._done

    def value(self, stage: str) -> Any:
        """Return what was noted with a stage, as JSON has it."""
        return self._done[stage, None]

    def note(self, stage: str, task: int | None = None, value: object = None) -> None:
        """Note that a task is done, or with None the whole stage, and what came of it, which JSON can hold."""
        path, line = self.folder / _FINISHED, to_json([stage, task, value], indent=None).encode()
        try:
            with open(path, "ab") as file:
                file.write(_sum_of(line) + line + b"\n")
        except OSError as error:
            raise unwritten(path, error) from error
        self._done[stage, task] = value

    def close(self) -> None:
        """Let other runs use the folder."""
        self._stack.close()

    def remove(self) -> None:
        """Remove what is there of the work, and the folder if it was made for it."""
        self._clear()
        for name in (_WORK, _LOCK):
            (self.folder / name).unlink(missing_ok=True)
        if self._made:
            with suppress(OSError):  # somebody put a file of their own there
                self.folder.rmdir()

    def _clear(self) -> None:
        (self.folder / _FINISHED).unlink(missing_ok=True)  # first: nothing is done of which the arrays may be gone
        shutil.rmtree(self.folder / ARRAYS, ignore_errors=True)


def _sum_of(line: bytes) -> bytes:
    return b"%08x " % zlib.crc32(line)
