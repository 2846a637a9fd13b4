"""Scores that are kept as soon as they are known, so that a killed run need not start anew."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from lmgauge.files import OutputError
from lmgauge.models.network.engine import Job

_KEY_BYTES = 16
_HEAD = np.dtype([("key", f"V{_KEY_BYTES}"), ("count", "<u4")])


class Journal:
    """A file of scores, each found by what was scored: a record cut off by a kill, or of another model, is never taken."""

    def __init__(self, path: Path, model: str) -> None:
        self._model = hashlib.sha256(model.encode())
        self._path, self._open = path, True
        self.taken = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            content = path.read_bytes() if path.exists() else b""
            self._known, whole = _read(content)
            self.scores = sum(map(len, self._known.values()))
            self._file: BinaryIO = path.open("r+b" if content else "wb")
            self._file.truncate(whole)
            self._file.seek(whole)
        except OSError as error:
            raise OutputError(f"{path}: cannot keep finished work: {error.strerror or error}") from error

    def get(self, job: Job) -> NDArray[np.float64] | None:
        """Return the scores of a job, float64 [predicted] in nats; None if they are not known."""
        entry = self._known.get(self._key(job))
        if entry is None or len(entry) != len(job.targets):
            return None
        self.taken += len(entry)
        return entry

    def put(self, job: Job, logprob: NDArray[np.float64]) -> None:
        """Write the scores of a job."""
        # logprob: float64 [predicted], nats.
        if not self._open:
            return
        head = np.array([(self._key(job), len(logprob))], _HEAD)
        body = logprob.astype("<f8").tobytes()
        try:
            self._file.write(head.tobytes() + body + hashlib.sha256(body).digest()[:_KEY_BYTES])
            self._file.flush()
        except OSError as error:
            raise OutputError(f"{self._path}: cannot keep finished work: {error.strerror or error}") from error
        self.scores += len(logprob)

    def close(self) -> None:
        """Close the file, which stays; nothing more is taken from it or put into it."""
        self._open = False
        self._known = {}
        with contextlib.suppress(OSError):
            self._file.close()

    def _key(self, job: Job) -> bytes:
        digest = self._model.copy()
        digest.update(len(job.targets).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(job.ids, "<i8").data)
        digest.update(np.ascontiguousarray(job.targets[-1:], "<i8").data)
        return digest.digest()[:_KEY_BYTES]


def _read(content: bytes) -> tuple[dict[bytes, NDArray[np.float64]], int]:
    # Whole records of a file, and where they end.
    known: dict[bytes, NDArray[np.float64]] = {}
    at = 0
    while at + _HEAD.itemsize <= len(content):
        head = np.frombuffer(content, _HEAD, 1, at)[0]
        begin = at + _HEAD.itemsize
        end = begin + 8 * int(head["count"])
        body = content[begin:end]
        if content[end : end + _KEY_BYTES] != hashlib.sha256(body).digest()[:_KEY_BYTES]:
            break
        known[head["key"].tobytes()] = np.frombuffer(body, "<f8").astype(np.float64)
        at = end + _KEY_BYTES
    return known, at
