"""Scores that are kept as soon as they are known, so that a killed run need not start anew."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.errors import InputError
from lmgauge.base.files import OutputError, digest, reason_of
from lmgauge.models.network.engine import Job
from lmgauge.work.manifest import Notes


class Journal:
    """A file of scores, each found by what was scored: a record cut off by a kill, or of another model, is never taken."""

    # Several threads may use it.

    def __init__(self, path: Path, model: str) -> None:
        self._model, self._open, self._lock = model, True, Lock()
        self.taken = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._notes = Notes(path)
        except OSError as error:
            raise OutputError(f"{path}: cannot keep finished work: {reason_of(error)}") from error
        try:
            self.scores = sum(map(len, map(_scores, self._notes.values())))
        except (TypeError, ValueError) as error:
            raise InputError(f"{path}: holds something else than scores; remove it and start again") from error

    def get(self, job: Job) -> NDArray[np.float64] | None:
        """Return the scores of a job, float64 [predicted] in nats; None if they are not known."""
        if not self._open or (stored := self._notes.get(self._key(job))) is None:
            return None
        entry = _scores(stored)
        if len(entry) != len(job.targets):
            return None
        with self._lock:
            self.taken += len(entry)
        return entry

    def put(self, job: Job, logprob: NDArray[np.float64]) -> None:
        """Write the scores of a job."""
        # logprob: float64 [predicted], nats.
        with self._lock:
            if self._open:
                self._notes.write(self._key(job), b64encode(logprob.astype("<f8").tobytes()).decode())
                self.scores += len(logprob)

    def close(self) -> None:
        """Close the file, which stays; nothing more is taken from it or put into it."""
        self._open = False
        self._notes.close()

    def _key(self, job: Job) -> tuple[str]:
        shown, last = (np.ascontiguousarray(ids, "<i8").data for ids in (job.ids, job.targets[-1:]))
        return (digest(self._model, len(job.targets).to_bytes(8, "little"), shown, last)[:32],)


def _scores(stored: str) -> NDArray[np.float64]:
    return np.frombuffer(b64decode(stored), "<f8").astype(np.float64)
