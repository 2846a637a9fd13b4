"""Optimizers and learning rates: the schedules of the papers, and when to stop."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from lmgauge.models.training.settings import NeuralTrainingSettings

_LAST_SHARE = 0.01  # of the learning rate, at the end of a cosine
_BETAS = (0.9, 0.99)


def make_optimizer(model: nn.Module, settings: NeuralTrainingSettings) -> torch.optim.Optimizer:
    """Return the optimizer of a model's parameters; weight decay acts on matrices, not on biases and gains."""
    # model: the network; parameters of shape [n, m] are matrices.
    parameters = list(model.parameters())
    if settings.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=settings.learning_rate, fused=True)
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=_BETAS, fused=True)


@dataclass
class LearningRate:
    """The learning rate as a run goes on, and what it has seen of the validation perplexity."""

    settings: NeuralTrainingSettings
    updates: int  # of the whole run, for the cosine
    best: float = math.inf
    best_epoch: int = -1  # epoch it was measured after, from 0
    idle: int = 0  # epochs since one lowered the perplexity enough
    falling: bool = False  # whether the schedule halve has begun to act
    factor: float = 1.0  # what the schedule halve has come to

    def at(self, epoch: int, update: int) -> float:
        """Return the learning rate of an update."""
        chosen, peak = self.settings, self.settings.learning_rate
        if chosen.schedule == "decay":
            return peak * chosen.decay ** max(epoch + 1 - chosen.decay_after, 0)
        if chosen.schedule == "halve":
            return peak * self.factor
        if chosen.schedule == "constant":
            return peak
        if update < chosen.warmup:
            return peak * (update + 1) / chosen.warmup
        done = min(1.0, (update - chosen.warmup) / max(1, self.updates - chosen.warmup))
        return peak * (_LAST_SHARE + (1 - _LAST_SHARE) * 0.5 * (1 + math.cos(math.pi * done)))

    def see(self, epoch: int, perplexity: float) -> bool:
        """Take in the validation perplexity after an epoch."""
        enough = perplexity < self.best * (1 - self.settings.improvement)
        lowest = perplexity < self.best
        if lowest:
            self.best, self.best_epoch = perplexity, epoch
        if self.settings.schedule == "halve":
            # Mikolov et al. 2010, section 2: from the first epoch without significant improvement on, each halves the rate.
            counts = self.falling
            self.falling = self.falling or not enough
            if self.falling:
                self.factor *= self.settings.decay
            self.idle = self.idle + 1 if counts and not enough else 0
        else:
            self.idle = 0 if enough else self.idle + 1
        return lowest

    @property
    def exhausted(self) -> bool:
        """Return True if patience has run out."""
        return bool(self.settings.patience) and self.idle >= self.settings.patience

    def state(self) -> dict[str, Any]:
        """Return what to keep, as JSON values."""
        state = asdict(self)
        del state["settings"], state["updates"]
        return state | {"best": None if math.isinf(self.best) else self.best}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from what was stored."""
        vars(self).update(state, best=math.inf if state["best"] is None else state["best"])
