"""Log-probabilities of jobs: batch by batch, smaller where memory runs out, checked for NaN."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from lmgauge.context_policy import ContextPolicy
from lmgauge.errors import ModelFileError, UsageError
from lmgauge.models.network.engine import Job, Progress, StreamState
from lmgauge.models.network.torch.allocator import kept_pages, out_of_memory
from lmgauge.models.network.torch.batches import Batch, batches, join, tokens_at_a_time
from lmgauge.models.network.torch.checkpoint import quiet
from lmgauge.models.network.torch.journal import Journal
from lmgauge.models.network.torch.split_network import SplitNetwork
from lmgauge.models.network.torch.stepping import Stepper

# Nats by which a row may differ when it is scored again in another batch.
_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.02}
# Tokens of a stream that a recurrent network is shown at a time.
_STREAM_CHUNK = 1 << 10
# Activations of a layer that live at a time, in hidden states: input, norm, wide middle of the feed-forward part, attention.
_LIVE_STATES = 24


class TorchEngine:
    """Scores jobs with a network in batches, and carries the state of a recurrent one through a stream.

    Args:
        network: what computes.
        policy: what each prediction sees.
        batch_tokens: tokens at a time; found from the free memory if None.
        name: of the model, for messages.

    Attributes:
        split: what computes.
        journal: where scores are written as soon as they are known; None to write none.
    """

    segment_by_segment = False

    def __init__(self, network: SplitNetwork, policy: ContextPolicy, batch_tokens: int | None, name: str) -> None:
        self.split, self._name = network, name
        self.tolerance = _TOLERANCE.get(network.network.dtype, 1e-3)
        self.carries_state = network.recurrent and policy.runs_on and policy.length is None
        self._tokens = batch_tokens or tokens_at_a_time(_bytes_a_token(network), network.device)
        self.log_distribution = Stepper(network)
        self.progress: Progress = lambda tokens: None
        self.journal: Journal | None = None

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Let torch use this number of threads inside the `with` block, and as many as before afterwards.

        Args:
            count: threads of the processor.
        """
        before = torch.get_num_threads()
        # Steps of one sequence are too small to share: threads would wait for each other most of the time.
        torch.set_num_threads(1 if self.carries_state else count)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def score(self, jobs: Sequence[Job]) -> list[NDArray[np.float64]]:
        """Return the natural log-probabilities of each job's targets, float64 [predicted] each.

        Raises:
            ModelFileError: the network gives NaN.
            UsageError: one job alone does not fit into the memory.
        """
        if self.carries_state:
            return [self._carried(job) for job in jobs]
        scores: list[NDArray[np.float64] | None] = [None] * len(jobs)
        waiting = list(range(len(jobs)))
        if self.journal is not None:
            for number in waiting:
                scores[number] = self.journal.get(jobs[number])
            waiting = [number for number in waiting if scores[number] is None]
        while waiting:
            waiting = self._score_until_smaller(jobs, waiting, scores)
        return [logprob for logprob in scores if logprob is not None]

    @torch.inference_mode()
    def _carried(self, job: Job) -> NDArray[np.float64]:
        """Return the scores of what goes on where the job before of the same stream ended."""
        split, stream = self.split, job.stream or StreamState()
        parts = [np.zeros(0)]
        for at in range(0, len(job.ids), _STREAM_CHUNK):
            chunk = Job(job.ids[at : at + _STREAM_CHUNK], job.targets[at : at + _STREAM_CHUNK], job.segment)
            shown, targets = (torch.from_numpy(values).to(split.device) for values in (chunk.ids, chunk.targets))
            with split.ready():
                logprob, stream.value = split.carried(shown, targets, stream.value)
            if bool(logprob.isnan().any()):
                self._blame(chunk)
            self.progress(len(logprob))
            parts.append(np.minimum(logprob.cpu().numpy(), 0.0))
        return np.concatenate(parts)

    def _score_until_smaller(
        self, jobs: Sequence[Job], waiting: list[int], scores: list[NDArray[np.float64] | None]
    ) -> list[int]:
        """Score jobs until all are done or batches have to become smaller; returns those left."""
        tokens = self._tokens
        chosen = [jobs[number] for number in waiting]
        with quiet(), kept_pages(), self.split.ready():
            for batch in batches(chosen, tokens):
                for number, logprob in self._of_batch(chosen, batch):
                    scores[waiting[number]] = logprob
                    if self.journal is not None:
                        self.journal.put(chosen[number], logprob)
                    self.progress(len(logprob))
                if self._tokens < tokens:
                    break
        return [number for number in waiting if scores[number] is None]

    def _of_batch(self, jobs: Sequence[Job], batch: Batch) -> list[tuple[int, NDArray[np.float64]]]:
        too_large = False
        try:
            logprob = self._compute(batch)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            too_large = True
        if too_large:  # not above: the error holds the tensors of every frame that it came through
            return self._of_halves(jobs, batch)
        if np.isnan(logprob).any():
            ends = np.cumsum([len(jobs[number].targets) for number in batch.jobs])
            first = int(np.flatnonzero(np.isnan(logprob))[0])
            self._blame(jobs[batch.jobs[int(np.searchsorted(ends, first, side="right"))]])
        bounds = np.cumsum([len(jobs[number].targets) for number in batch.jobs])[:-1]
        return list(zip(batch.jobs, np.split(logprob, bounds), strict=True))

    @torch.inference_mode()
    def _compute(self, batch: Batch) -> NDArray[np.float64]:
        ids, rows, targets = (
            torch.from_numpy(values).to(self.split.device) for values in (batch.ids, batch.rows, batch.targets)
        )
        logprob: NDArray[np.float64] = self.split.log_probabilities(ids, rows, targets).cpu().numpy()
        # The log-sum-exp of rounded terms may fall a little below its largest.
        return np.minimum(logprob, 0.0)

    def _of_halves(self, jobs: Sequence[Job], batch: Batch) -> list[tuple[int, NDArray[np.float64]]]:
        """Return the batch in two halves, and all later ones no larger than these."""
        if self.split.device.type == "cuda":
            torch.cuda.empty_cache()
        if len(batch.jobs) == 1:
            raise UsageError(
                f"{self._name}: not enough memory for {batch.ids.shape[1]:,} tokens at a time (segment "
                f"{jobs[batch.jobs[0]].segment + 1}); choose a smaller --context"
            )
        middle = len(batch.jobs) // 2
        self._tokens = max(1, min(self._tokens, middle * batch.ids.shape[1]))
        halves = (batch.jobs[:middle], batch.jobs[middle:])
        return [scored for half in halves for scored in self._of_batch(jobs, join(jobs, half))]

    def _blame(self, job: Job) -> NoReturn:
        """Say where NaN comes from.

        Raises:
            ModelFileError: always.
        """
        layer = _first_layer_with_nan(self.split, job)
        raise ModelFileError(
            f"{self._name}: gives NaN in segment {job.segment + 1}, first in its layer {layer}; the weights are damaged, or "
            "the dtype is too narrow for them (--dtype float32)"
        )


@torch.inference_mode()
def _first_layer_with_nan(network: SplitNetwork, job: Job) -> str:
    """Return the name of the first module whose output has a NaN; "(output)" if none has."""
    broken: list[str] = []

    def watch(name: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, inputs: Any, output: Any) -> None:
            value = output[0] if isinstance(output, tuple) else output
            if not broken and isinstance(value, torch.Tensor) and value.is_floating_point() and bool(value.isnan().any()):
                broken.append(name)

        return hook

    handles = [module.register_forward_hook(watch(name)) for name, module in network.network.named_modules() if name]
    try:
        network.network(input_ids=torch.from_numpy(job.ids)[None].to(network.device))
    finally:
        for handle in handles:
            handle.remove()
    return broken[0] if broken else "(output)"


def _bytes_a_token(network: SplitNetwork) -> int:
    """Return about what computing a token takes: activations of one layer, and its logits where all are asked for."""
    config = network.network.config.get_text_config()
    size = int(getattr(config, "hidden_size", 0) or getattr(config, "n_embd", 0) or getattr(config, "d_model", 0) or 1024)
    width = torch.finfo(network.network.dtype).bits // 8
    logits = 0 if network.output is not None else 4 * network.vocabulary_size * 4
    return _LIVE_STATES * size * width + logits
