"""llama.cpp as an engine: one context at a time, and what is kept of it used again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy
from lmgauge.errors import ModelFileError
from lmgauge.models.network.engine import Job, Progress
from lmgauge.models.network.gguf.network import GgufNetwork, log_sum_exp

# Tokens of a context that are shown together where whole distributions are asked for. A context is cut into such parts from
# its beginning, so that what is computed depends on nothing but the context, and its full parts can be kept.
_PART = 32
_ROWS = 8  # distributions at a time


class GgufEngine:
    """Scores jobs one after another, showing no token twice that the network still holds.

    Args:
        network: the file, loaded.
        policy: what each prediction sees.
    """

    carries_state = False
    # What is shown at a time, and so the rounding, depends on nothing but the text.
    segment_by_segment = True
    # Products of other shapes round in another order, and the activations of quantized layers are rounded to eight bits.
    tolerance = 2e-2

    def __init__(self, network: GgufNetwork, policy: ContextPolicy) -> None:
        self._network, self._policy = network, policy
        self.progress: Progress = lambda tokens: None
        self._held = np.zeros(0, np.int32)  # full parts of the context that the network holds, for log_distribution

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Compute with this number of threads from now on.

        Args:
            count: threads of the processor.
        """
        self._network.set_threads(count)
        yield

    def score(self, jobs: Sequence[Job]) -> list[NDArray[np.float64]]:
        """Return the natural log-probabilities of each job's targets, float64 [predicted] each.

        Raises:
            ModelFileError: the network gives NaN.
            UsageError: a context does not fit into the memory.
        """
        return [self._of_job(job) for job in jobs]

    def _of_job(self, job: Job) -> NDArray[np.float64]:
        logprob = self._network.logprob(self._new(job), job.targets.astype(np.int32))
        if np.isnan(logprob).any():
            raise self._gives_nan(f"in segment {job.segment + 1}")
        self.progress(len(logprob))
        return logprob

    def _new(self, job: Job) -> NDArray[np.int32]:
        """Make the network ready for a job, and return what it has not been shown yet, int32 [n]."""
        network, known = self._network, job.known
        if not known or network.holder is not job.stream:
            known = 0
            network.begin(self._policy.length or len(job.ids) if job.stream is not None else len(job.ids))
            network.holder = job.stream
        return job.ids[known:].astype(np.int32)

    def distributions(
        self, jobs: Sequence[Job], rows: NDArray[np.int64], wanted: NDArray[np.bool_]
    ) -> Iterator[tuple[NDArray[np.float32], None]]:
        """Yield natural log-probabilities of all tokens at the targets of jobs, a part at a time; see `Engine`.

        Args:
            jobs: in the order of the events.
            rows: int64 [vocabulary], the network's id of each token; -1 for none.
            wanted: bool [targets of all jobs], which of them to look at.

        Raises:
            ModelFileError: the network gives NaN.
            UsageError: a context does not fit into the memory.
        """
        seen = 0
        for job in jobs:
            for logits in self._network.logits(self._new(job), len(job.targets)):
                chosen = np.flatnonzero(wanted[seen : seen + len(logits)])
                seen += len(logits)
                for at in range(0, len(chosen), _ROWS):
                    some = logits[chosen[at : at + _ROWS]]
                    logprob = (some - log_sum_exp(some)[:, None].astype(np.float32))[:, np.maximum(rows, 0)]
                    logprob[:, rows < 0] = -np.inf
                    if np.isnan(logprob[:, -1]).any():
                        raise self._gives_nan(f"in segment {job.segment + 1}")
                    yield logprob, None
            self.progress(len(job.targets))

    def log_distribution(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the natural log-probabilities of all that may follow, float64 [rows of the output layer].

        Args:
            ids: int64 [n], n > 0, what the network is shown.

        Raises:
            ModelFileError: the network gives NaN.
        """
        logprob = self._after(ids.astype(np.int32))
        if np.isnan(logprob).any():
            raise self._gives_nan("after some context")
        return logprob

    def _after(self, sequence: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return log-probabilities of what follows a context, float64 [rows of the output layer]."""
        network, full = self._network, (len(sequence) - 1) // _PART * _PART
        held = self._held if network.holder is self else self._held[:0]
        shared = min(len(held), full)
        same = np.flatnonzero(held[:shared] != sequence[:shared])
        shared = (int(same[0]) if len(same) else shared) // _PART * _PART
        if network.holder is not self or len(sequence) > network.room or not network.rewind(shared):
            shared = 0
            network.begin(len(sequence))
            network.holder = self
        for at in range(shared, full, _PART):
            network.logprob(sequence[at : at + _PART], sequence[:0])
        self._held = sequence[:full].copy()
        return network.log_distribution(sequence[full:])

    def _gives_nan(self, where: str) -> ModelFileError:
        return ModelFileError(
            f"{self._network.path}: gives NaN {where}; the file is damaged, or was quantized from weights that were"
        )
