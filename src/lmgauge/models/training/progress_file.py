"""What a training that is under way says of itself, for whoever looks at it: `progress.jsonl`, a line for each event.

Every line is a JSON object: `step` (updates done), `time` (seconds since 1970), and figures by name: `loss` (nats per
token), `perplexity`, `bits_per_byte`, `learning_rate`, `tokens_per_second`, and of a validation text the same after `valid_`
or, from a Trainer, after `eval_NAME_`. A training that is resumed goes on in the same file: a step that is not above the one
before says that what came after it was done anew. A training never reads the file, and goes on where it cannot be written.
"""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path

PROGRESS_FILE = "progress.jsonl"
_logger = logging.getLogger(__name__)


class ProgressFile:
    """The file of one training; use it in a `with` statement, or open and close it."""

    def __init__(self, folder: str | os.PathLike[str], *, resumed: bool = False) -> None:
        self._path = Path(folder) / PROGRESS_FILE
        self._descriptor: int | None = None
        self._resumed = resumed

    def open(self, *, resumed: bool) -> None:
        """Begin the file, or go on in it."""
        self.close()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | (0 if resumed else os.O_TRUNC)
            self._descriptor = os.open(self._path, flags, 0o666)
            if resumed:  # a line that a killed run did not finish ends here
                os.write(self._descriptor, b"\n")
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the file, which stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> ProgressFile:
        self.open(resumed=self._resumed)
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, step: int, figures: Mapping[str, float | None]) -> None:
        """Add a line, in one piece; figures that are not finite are left out."""
        if self._descriptor is None:
            return
        finite = {name: value for name, value in figures.items() if value is not None and math.isfinite(value)}
        line = json.dumps({"step": step, "time": round(time.time(), 3)} | finite) + "\n"
        try:
            os.write(self._descriptor, line.encode())
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        _logger.warning("%s: cannot be written (%s); training goes on without it", self._path, error.strerror or error)
        self.close()
