"""What can be cut into shards: the interface that an evaluation, an overlap and a task metric have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

P = TypeVar("P")


class Work(Protocol[P]):
    """A job that is ready to run: models are loaded, files are there."""

    kind: str
    inputs: list[str]  # paths of what it reads, which no output may replace

    def made_of(self) -> Any:
        """Return model, text and settings as a dataclass: equal if, and only if, two shards are of one job.

        The text is read for its digest, unless all pieces were taken.
        """

    def pieces(self) -> Iterable[tuple[int, P]]:
        """Yield all pieces of the work in order, each with the number of its unit, which is of one shard."""

    def compute(self, own: Iterator[P]) -> Iterator[object]:
        """Yield what comes of the pieces of a shard, in order: a dataclass for each, or one for all.

        Raises:
            LmgaugeError: a text or a model cannot be used.
        """

    def facts(self) -> Any:
        """Return what `merge` must know besides, as a dataclass, once all is computed."""


class Job(Protocol):
    """What is to be computed, before anything is loaded: it can be sent to another machine."""

    def prepare(self) -> Work[Any]:
        """Load what is needed.

        Raises:
            LmgaugeError: something is missing, or this job cannot be cut.
        """
