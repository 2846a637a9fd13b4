"""What can be cut into shards: the interface that an evaluation, an overlap and a task metric have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from lmgauge.work.shard import Shard

Write = Callable[[int, object], None]
"""Stores what came of a part of the work, by its number; parts come in order."""


class Work(Protocol):
    """A job that is ready to run: models are loaded, files are there."""

    kind: str
    inputs: list[str]  # paths of what it reads, which no output may replace

    def made_of(self) -> Mapping[str, Any]:
        """Return model, text and settings as plain values: equal if, and only if, two shards are of one job.

        The text is read for its digest, unless `compute` has read it.
        """

    def compute(self, shard: Shard, write: Write) -> Mapping[str, Any]:
        """Compute the segments of a shard and store what came of them; return what else `merge` must know, as plain values.

        Args:
            shard: which of them.
            write: stores what came of a part.

        Raises:
            LmgaugeError: a text or a model cannot be used.
        """


class Job(Protocol):
    """What is to be computed, before anything is loaded: it can be sent to another machine."""

    def prepare(self) -> Work:
        """Load what is needed.

        Raises:
            LmgaugeError: something is missing, or this job cannot be cut.
        """
