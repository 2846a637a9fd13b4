"""A folder of unfinished work: what work it is, what of it is done, and that one run at a time goes on with it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from lmgauge.errors import UsageError
from lmgauge.files import OutputError, locking, read_regular, writing
from lmgauge.json_text import from_json, to_json
from lmgauge.stages.array_folder import unwritten
from lmgauge.version import __version__

ARRAYS = "arrays"
_WORK, _FINISHED, _LOCK = "work.json", "finished.jsonl", "lock"
_OURS = {ARRAYS, _WORK, _FINISHED, _LOCK}


class WorkRecord:
    """Opens a folder for some work, to begin it or to resume it."""

    # It outlives a run that is killed. Where the machine itself fails, files that it had not written yet may be missing or
    # too short, which reading them notices.

    def __init__(self, folder: Path, work: Mapping[str, Any], *, resume: bool) -> None:
        self.folder = folder
        self._done: set[tuple[str, int | None]] = set()
        self._stack = ExitStack()
        self._made = not folder.exists()
        with self._stack:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                names = {path.name for path in folder.iterdir() if not path.name.startswith(f".{_WORK}.")}  # of a killed run
                if self._earlier() is None and names - _OURS:
                    raise UsageError(f"{folder}: holds other files; name a folder that is empty or does not exist yet")
                self._stack.enter_context(locking(folder / _LOCK, f"{folder}: another run is using this folder"))
                self._open({**work, "lmgauge": __version__}, resume)
            except OSError as error:
                if isinstance(error, OutputError):
                    raise
                raise unwritten(folder, error) from error
            self._stack = self._stack.pop_all()

    def _open(self, work: Mapping[str, Any], resume: bool) -> None:
        description = json.loads(to_json(work))
        earlier = self._earlier()
        self._done = set(self._notes())
        self._made = self._made or (earlier is not None and bool(earlier.get("made")))
        if resume and earlier is not None:
            self._refuse_other(earlier.get("work"), description)
            return
        if earlier is not None and self._done:
            stages = sum(task is None for _, task in self._done)
            done = f"stages done: {stages}, tasks done: {len(self._done) - stages}"
            raise UsageError(
                f"{self.folder}: holds the unfinished work of an earlier run ({done}); "
                "continue it with --resume (resume=True), or remove the folder to start again"
            )
        self._done = set()
        self._clear()
        with writing(self.folder / _WORK) as file:
            file.write(to_json({"work": description, "made": self._made}).encode())

    def _earlier(self) -> dict[str, Any] | None:
        # What is there of an earlier run: the work, and whether that run made the folder.
        try:
            record = from_json(read_regular(self.folder / _WORK))
        except FileNotFoundError:
            return None
        except ValueError:
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("work"), dict):
            raise UsageError(f"{self.folder / _WORK}: was not written by lmgauge; name another folder")
        return record

    def _refuse_other(self, earlier: Any, work: dict[str, Any]) -> None:
        for key in {**earlier, **work}:
            if earlier.get(key) != work.get(key):
                there, here = (json.dumps(each.get(key))[:100] for each in (earlier, work))
                raise UsageError(
                    f"{self.folder}: holds other work: {key} is {there} there, and {here} here; "
                    "run it with the same options to resume it, or name another folder"
                )

    def _notes(self) -> Iterator[tuple[str, int | None]]:
        # Stages and tasks that are done; a line that a killed run began to write says nothing.
        path = self.folder / _FINISHED
        with suppress(FileNotFoundError):
            text = read_regular(path)
            whole = text.rfind(b"\n") + 1
            if whole < len(text):
                os.truncate(path, whole)
            for line in text[:whole].splitlines():
                with suppress(ValueError, TypeError):
                    stage, task = from_json(line)
                    yield str(stage), task if task is None else int(task)

    def is_done(self, stage: str, task: int | None = None) -> bool:
        """Return True if it is noted that a task is done, or with None the whole stage."""
        return (stage, task) in self._done

    def note(self, stage: str, task: int | None = None) -> None:
        """Note that a task is done, or with None the whole stage."""
        path = self.folder / _FINISHED
        try:
            with open(path, "ab") as file:
                file.write(to_json([stage, task], indent=None).encode() + b"\n")
        except OSError as error:
            raise unwritten(path, error) from error
        self._done.add((stage, task))

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
