"""Figures of a training run for TensorBoard."""

from __future__ import annotations

import math
import os
from types import TracebackType

from lmgauge.errors import needing
from lmgauge.models.training.loop import TrainingEvent


class TensorBoard:
    """A folder of event files; use it in a `with` statement."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        with needing("tensorboard", extra="tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        self._writer = SummaryWriter(os.fspath(directory))

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._writer.close()

    def write(self, event: TrainingEvent) -> None:
        """Add an event's figures at the number of updates done."""
        # event: perplexity, bits per token, learning rate and tokens per second.
        figures = {
            "train/perplexity": event.perplexity,
            "train/bits_per_token": event.bits,
            "train/learning_rate": event.learning_rate,
            "train/tokens_per_second": event.tokens_per_second,
        }
        if event.valid_perplexity is not None:
            figures["valid/perplexity"] = event.valid_perplexity
            figures["valid/bits_per_token"] = math.log2(event.valid_perplexity)
        for name, value in figures.items():
            self._writer.add_scalar(name, value, event.total_update)
        if event.finished:
            self._writer.flush()
