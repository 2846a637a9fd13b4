"""Log-probabilities of jobs: batch by batch, smaller where memory runs out, checked for values that are no numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from lmgauge.errors import ModelFileError, UsageError
from lmgauge.models.network.torch.allocator import kept_pages, out_of_memory
from lmgauge.models.network.torch.backbone import Hidden
from lmgauge.models.network.torch.batches import Batch, Job, batches, join, tokens_at_a_time
from lmgauge.models.network.torch.checkpoint import quiet
from lmgauge.models.network.torch.journal import FinishedWork

Progress = Callable[[int], None]
# Activations of a layer that live at a time, in hidden states: input, norm, wide middle of the feed-forward part, attention.
_LIVE_STATES = 24


class Scorer:
    """Scores jobs with a network.

    Args:
        hidden: the network.
        batch_tokens: tokens at a time; found from the free memory if None.
        name: of the model, for messages.

    Attributes:
        progress: told how many tokens were scored since it was last told.
        finished: where scores are kept as soon as they are known; None to keep none.
    """

    def __init__(self, hidden: Hidden, batch_tokens: int | None, name: str) -> None:
        self._hidden, self._name = hidden, name
        self._tokens = batch_tokens or tokens_at_a_time(_bytes_a_token(hidden), hidden.device)
        self.progress: Progress = lambda tokens: None
        self.finished: FinishedWork | None = None

    def __call__(self, jobs: Sequence[Job]) -> list[NDArray[np.float64]]:
        """Natural log-probabilities of each job's targets.

        Raises:
            ModelFileError: the network gives values that are no numbers.
            UsageError: one job alone does not fit into the memory.
        """
        found: list[NDArray[np.float64] | None] = [None] * len(jobs)
        waiting = list(range(len(jobs)))
        if self.finished is not None:
            for number in waiting:
                found[number] = self.finished.get(jobs[number])
            waiting = [number for number in waiting if found[number] is None]
        while waiting:
            waiting = self._score_until_smaller(jobs, waiting, found)
        return [logprob for logprob in found if logprob is not None]

    def _score_until_smaller(
        self, jobs: Sequence[Job], waiting: list[int], found: list[NDArray[np.float64] | None]
    ) -> list[int]:
        """Scores jobs until all are done or batches have to become smaller; returns those left."""
        tokens = self._tokens
        chosen = [jobs[number] for number in waiting]
        with quiet(), kept_pages(), self._hidden.ready():
            for batch in batches(chosen, tokens):
                for number, logprob in self._of_batch(chosen, batch):
                    found[waiting[number]] = logprob
                    if self.finished is not None:
                        self.finished.put(chosen[number], logprob)
                    self.progress(len(logprob))
                if self._tokens < tokens:
                    break
        return [number for number in waiting if found[number] is None]

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
            self.blame(jobs[batch.jobs[int(np.searchsorted(ends, first, side="right"))]])
        bounds = np.cumsum([len(jobs[number].targets) for number in batch.jobs])[:-1]
        return list(zip(batch.jobs, np.split(logprob, bounds), strict=True))

    @torch.inference_mode()
    def _compute(self, batch: Batch) -> NDArray[np.float64]:
        ids, rows, targets = (
            torch.from_numpy(values).to(self._hidden.device) for values in (batch.ids, batch.rows, batch.targets)
        )
        found: NDArray[np.float64] = self._hidden.log_probabilities(ids, rows, targets).cpu().numpy()
        # The log-sum-exp of rounded terms may fall a little below its largest.
        return np.minimum(found, 0.0)

    def _of_halves(self, jobs: Sequence[Job], batch: Batch) -> list[tuple[int, NDArray[np.float64]]]:
        """The batch in two halves, and all later ones no larger than these."""
        if self._hidden.device.type == "cuda":
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

    def blame(self, job: Job) -> NoReturn:
        """Says where values that are no numbers come from.

        Raises:
            ModelFileError: always.
        """
        layer = first_layer_without_numbers(self._hidden, job)
        raise ModelFileError(
            f"{self._name}: gives NaN in segment {job.segment + 1}, first in its layer {layer}; the weights are damaged, or "
            "the dtype is too narrow for them (--dtype float32)"
        )


@torch.inference_mode()
def first_layer_without_numbers(hidden: Hidden, job: Job) -> str:
    """The name of the first module whose output has a NaN; "(output)" if none has."""
    found: list[str] = []

    def watch(name: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, inputs: Any, output: Any) -> None:
            value = output[0] if isinstance(output, tuple) else output
            if not found and isinstance(value, torch.Tensor) and value.is_floating_point() and bool(value.isnan().any()):
                found.append(name)

        return hook

    handles = [module.register_forward_hook(watch(name)) for name, module in hidden.network.named_modules() if name]
    try:
        hidden.network(input_ids=torch.from_numpy(job.ids)[None].to(hidden.device))
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else "(output)"


def _bytes_a_token(hidden: Hidden) -> int:
    """About what computing a token takes: activations of one layer, and its logits where all are asked for."""
    config = hidden.network.config.get_text_config()
    size = int(getattr(config, "hidden_size", 0) or getattr(config, "n_embd", 0) or getattr(config, "d_model", 0) or 1024)
    width = torch.finfo(hidden.network.dtype).bits // 8
    logits = 0 if hidden.output is not None else 4 * hidden.vocabulary_size * 4
    return _LIVE_STATES * size * width + logits
