"""What computes a network's predictions: torch or llama.cpp, behind the few methods that `NetworkModel` needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lmgauge.models.network.torch.engine import Journal

Progress = Callable[[int], None]


def unheard(tokens: int) -> None:
    """Take note of nothing: the progress of a model to which nobody listens."""


@dataclass(eq=False)
class StreamState:
    """One running context; an engine may keep here what it has computed of it."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Job:
    """Predictions to take from one showing of consecutive ids."""

    ids: NDArray[np.int64]  # int64 [shown], what the network is shown
    targets: NDArray[np.int64]  # int64 [predicted], the ids predicted from the last positions shown
    segment: int  # index of the segment, for messages
    stream: StreamState | None = None  # the running context that the ids are part of; None where a segment stands alone
    known: int = 0  # how many of the ids, from the first, the job before of the same stream has shown already
    wanted: NDArray[np.bool_] | None = None  # bool [predicted], which targets are events; None where all are


class Engine(Protocol):
    """A network that computes."""

    tolerance: float  # nats by which a row may differ when it is scored again in other company
    # True if it takes up a running context of any length where it left it, by a recurrent state. It is then shown only what
    # is new.
    carries_state: bool
    computes_elsewhere: bool  # True if this processor is free while it computes
    segment_by_segment: bool  # True if a running context is to be shown in jobs of one segment each
    progress: Progress  # is called with the number of tokens scored since the last call

    @property
    def journal(self) -> Journal | None:
        """What keeps scores as soon as they are known."""

    @property
    def log_distributions(self) -> Callable[[NDArray[np.int64]], NDArray[np.float64]] | None:
        """Log-probabilities after several contexts of one length, [k, n] -> [k, rows]; None where it has no way for that."""

    def threads(self, count: int) -> AbstractContextManager[None]:
        """Compute with this number of threads inside the `with` block."""
        # count: threads of the processor; no result depends on it but for rounding.
        ...

    def score(self, jobs: Sequence[Job]) -> list[NDArray[np.float64]]:
        """Return the log-probabilities of each job's targets, nats, float64 [predicted] each."""
        ...

    def distributions(
        self, jobs: Sequence[Job], rows: NDArray[np.int64], wanted: NDArray[np.bool_]
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Yield natural log-probabilities and probabilities of all tokens at the targets of jobs, a few at a time."""
        # jobs: in the order of the events; rows: int64 [vocabulary], the row of the output layer that predicts each token;
        # -1 for none; wanted: bool [targets of all jobs], which of them to look at.
        # -> two arrays [m, vocabulary] of NumPy or torch: m targets in order; what cannot come has -inf and 0. The second
        # is None where probabilities are not at hand. The third is what the output layer makes them of, [m, width], or None.
        ...

    def log_distribution(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the log-probabilities of all that may follow, nats, float64 [rows of the output layer]."""
        # ids: int64 [n], n > 0, what the network is shown.
        ...
