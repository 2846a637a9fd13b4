"""A training that is under way, followed by the file it writes: curves that grow."""

from __future__ import annotations

import math
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmgauge.errors import ModelFileError
from lmgauge.evaluation.run_folder import EVALUATION_FILE
from lmgauge.files import regular
from lmgauge.json_text import from_json
from lmgauge.models.network.tokens import history_of
from lmgauge.models.training.progress_file import PROGRESS_FILE

MOST_POINTS = 2_000
"""Points of a curve that an answer has; of more, every second one is left out, and so on."""
_LONGEST_READ = 1 << 22
_PART_OF_NAME = ".training"


def progress_file_of(path: Path) -> Path | None:
    """Return the file that a training writes which a path names; None if it names none."""
    beside = path.with_name(f"{path.name}{_PART_OF_NAME}") if path.name else path
    for folder in (path, beside):
        if (folder / PROGRESS_FILE).is_file():
            return folder / PROGRESS_FILE
    return None


def runs_of(path: Path) -> list[Path]:
    """Return the run folders that a callback keeps in the folder it was given, by name."""
    try:
        return sorted(folder for folder in path.iterdir() if (folder / EVALUATION_FILE).is_file())
    except OSError:
        return []


def epochs_of(path: Path) -> list[dict[str, int | float]]:
    """Return the figures per epoch that a finished model of ours has in its config.json; empty if there are none."""
    try:
        return history_of(path)
    except ModelFileError:
        return []


@dataclass
class Curve:
    """Points of one figure, in the order of steps."""

    steps: list[float]
    values: list[float]


class Follower:
    """Reads what a training has written since it was last asked."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset, self._inode = path, 0, 0
        self._lock = threading.Lock()
        self.curves: dict[str, Curve] = {}
        self.lines, self.updated, self.is_gone = 0, 0.0, False

    def read(self) -> None:
        """Read the lines that are complete; a file that is gone leaves what was read."""
        with self._lock:
            try:
                with open(self._path, "rb", opener=regular) as file:
                    state = os.fstat(file.fileno())
                    if state.st_size < self._offset or state.st_ino != self._inode:  # begun anew
                        self._offset, self._inode = 0, state.st_ino
                        self.curves = {}
                    file.seek(self._offset)
                    data = file.read(_LONGEST_READ)
            except OSError:
                self.is_gone = True
                return
            self.is_gone = False
            complete = data.rfind(b"\n") + 1
            self._offset += complete or (len(data) if len(data) == _LONGEST_READ else 0)
            for line in data[:complete].splitlines():
                self._add(line)

    def _add(self, line: bytes) -> None:
        try:
            entry = from_json(line)
        except ValueError:
            return
        if not isinstance(entry, dict):
            return
        figures = {name: float(value) for name, value in entry.items() if _is_number(value)}
        step = figures.pop("step", None)
        if step is None:
            return
        self.updated = figures.pop("time", self.updated)
        self.lines += 1
        for name, value in figures.items():
            curve = self.curves.setdefault(name, Curve([], []))
            while curve.steps and curve.steps[-1] >= step:  # resumed from before
                curve.steps.pop()
                curve.values.pop()
            curve.steps.append(step)
            curve.values.append(value)

    def answer(self) -> dict[str, Any]:
        """Return the curves as plain values, thinned where there are too many points for a page."""
        self.read()
        return {
            "curves": {name: _thinned(curve) for name, curve in self.curves.items()},
            "updated": self.updated,
            "is_gone": self.is_gone,
        }


def _thinned(curve: Curve) -> dict[str, list[float]]:
    stride = max(1, math.ceil(len(curve.steps) / MOST_POINTS))
    last = len(curve.steps) - 1
    chosen = [i for i in range(len(curve.steps)) if (last - i) % stride == 0]
    return {"x": [curve.steps[i] for i in chosen], "y": [curve.values[i] for i in chosen]}


def _is_number(value: Any) -> bool:
    # A whole number beyond all floats has no float.
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
