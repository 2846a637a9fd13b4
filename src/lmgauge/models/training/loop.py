"""The loop: windows, updates, validation, checkpoints. It knows neither texts nor the folder of the finished model."""

# Validation is exact: float32 log-softmax, float64 sums, each token once.

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lmgauge.base.errors import InputError, LmgaugeError, ModelFileError
from lmgauge.models.network.torch.output_layer import OutputLayer
from lmgauge.models.network.torch.runtime import exact_float32, out_of_memory
from lmgauge.models.training import checkpoints as stored
from lmgauge.models.training.data import Window, WindowSource
from lmgauge.models.training.networks import IGNORED, mixed_precision, output_loss
from lmgauge.models.training.settings import RECURRENT, NeuralTrainingSettings
from lmgauge.work.manifest import described, refuse_other

_STREAM_WINDOW = 512
_SIDE_BY_SIDE = 64


def perplexity_of(nats: float, events: float) -> float:
    """Return exp(nats / events); infinite where that is beyond a float."""
    try:
        return math.exp(nats / events)
    except OverflowError:
        return math.inf


@torch.inference_mode()
def validate(model: Any, ids: NDArray[np.int64], settings: NeuralTrainingSettings) -> tuple[float, int]:
    """Return the surprise at a text, by the context policy the model is trained for."""
    # A recurrent model reads a stream from its beginning to its end in one go, a Transformer in windows one after another,
    # as `lmgauge eval` does without a stride.
    # ids: int64 [n], as in training.
    training = model.training
    model.eval()
    device = next(model.parameters()).device
    head = model.get_output_embeddings()
    layer = OutputLayer(head.weight, head.bias)
    nats, events, state = 0.0, 0, None
    with _one_thread(device, settings), exact_float32(device):
        for window in _windows(ids, settings):
            options = {"use_cache": False} if settings.kind == "transformer" else {"state": None if window.fresh else state}
            output = model.base_model(window.inputs.to(device), **options)
            state = getattr(output, "state", None)
            counted = (window.targets != IGNORED).to(device)
            surprises = -layer.log_probabilities(output.last_hidden_state[counted], window.targets.to(device)[counted])
            nats += float(surprises.sum(dtype=torch.float64))
            events += int(counted.sum())
    model.train(training)
    return nats, events


@contextmanager
def _one_thread(device: torch.device, settings: NeuralTrainingSettings) -> Iterator[None]:
    # Read a running text with one thread: on a busy machine those that share its small steps wait for each other.
    # Measured with an LSTM of 200 units on two cores: 11 ms for 512 steps with one thread, with two 5,600 ms.
    before = torch.get_num_threads()
    if device.type == "cpu" and settings.kind in RECURRENT and settings.context == "stream":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _windows(ids: NDArray[np.int64], settings: NeuralTrainingSettings) -> Iterator[Window]:
    stream, last = torch.from_numpy(ids), len(ids) - 1
    if settings.context == "sentence":
        yield from WindowSource(ids, replace(settings, batch_size=_SIDE_BY_SIDE)).windows(0)
    elif settings.kind == "transformer":
        whole = last // settings.steps * settings.steps
        inputs, targets = (stream[shift : shift + whole].view(-1, settings.steps) for shift in (0, 1))
        for side_by_side in zip(inputs.split(_SIDE_BY_SIDE), targets.split(_SIDE_BY_SIDE), strict=True):
            yield Window(*side_by_side, fresh=True)
        if whole < last:
            yield Window(stream[None, whole:-1], stream[None, whole + 1 :], fresh=True)
    else:
        yield from WindowSource(ids, replace(settings, batch_size=1, steps=_STREAM_WINDOW)).windows(0)


_LOOK_EVERY = 25  # updates from one look at the sums to the next: on a GPU each look waits for it


class TrainingFailedError(LmgaugeError, ArithmeticError):
    """Raised when a loss or a parameter is no longer finite."""


@dataclass(frozen=True)
class TrainingEvent:
    """Where a run is, every few updates and after each epoch."""

    epoch: int
    epochs: int
    update: int
    updates: int
    total_update: int
    perplexity: float  # of the training text in this epoch so far, with dropout
    tokens_per_second: float  # since the run began or was resumed
    seconds_left: float  # for all epochs that there may be
    learning_rate: float
    valid_perplexity: float | None = None  # after an epoch with a validation text, exact; None otherwise
    best_perplexity: float | None = None
    finished: bool = False  # whether an epoch has just ended

    @property
    def bits(self) -> float:
        """Return bits per token of the training text in this epoch so far."""
        return math.log2(self.perplexity) if self.perplexity > 0 else 0.0


Watch = Callable[[TrainingEvent], None]


@dataclass
class Loop:
    """A run: a model, its text, and how far it has come."""

    model: Any  # a causal model on its device
    source: WindowSource  # the windows of the training text
    valid: NDArray[np.int64] | None  # int64 [n], ids of the validation text, or None
    settings: NeuralTrainingSettings
    folder: stored.CheckpointFolder
    made_of: dict[str, Any]  # digests of the texts, the tokenizer and the vocabulary
    watch: Watch = lambda event: None  # is called with where the run is
    checkpoint_every: int = 0  # updates from one checkpoint to the next, besides those after each epoch; 0 for none
    epoch: int = 0
    update: int = 0
    total_update: int = 0
    history: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.device = next(self.model.parameters()).device
        self.optimizer = make_optimizer(self.model, self.settings)
        self.rate = LearningRate(self.settings, self.settings.epochs * self.source.count(0))
        self.dtype = torch.bfloat16 if self.settings.precision == "bfloat16" else torch.float32
        self.carried: tuple[Tensor, ...] | None = None
        self.sums = torch.zeros(2, dtype=torch.float64, device=self.device)  # nats and tokens of the epoch
        self._tokens = 0.0  # of finished epochs since the run began here
        self._began = time.monotonic()
        self._before = 0.0  # tokens of this epoch that another run has done
        self._seconds_before = 0.0

    @property
    def seconds(self) -> float:
        """Return seconds since the run began, the time it lay still not counted."""
        return time.monotonic() - self._began + self._seconds_before

    def run(self) -> None:
        """Train to the end, or until patience runs out."""
        try:
            while self.epoch < self.settings.epochs and not self.rate.exhausted(self.epoch):
                self._run_epoch()
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            raise InputError(
                f"not enough memory for batches of {self.settings.batch_size} sequences of {self.settings.steps} tokens; "
                "use a smaller --batch-size or --steps"
            ) from error

    def _run_epoch(self) -> None:
        self.model.train()
        updates = self.source.count(self.epoch)
        for window in self.source.windows(self.epoch, self.update):
            self._step(window)
            self.update += 1
            self.total_update += 1
            if self.total_update % _LOOK_EVERY == 0:
                self._look(updates)
            due = self.checkpoint_every and self.total_update % self.checkpoint_every == 0
            if due and self.update < updates:  # the end of an epoch writes its own
                self.save()
        self._end_epoch(updates)

    def _step(self, window: Window) -> None:
        nats = self._nats(window)
        counts = (window.targets != IGNORED).sum(1).double()
        (nats / float((counts > 0).sum() if self.settings.sum_over_steps else counts.sum())).backward()
        rate = self.rate.at(self.epoch, self.total_update) * self._clip()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.sums += torch.stack((nats.detach().double(), counts.sum().to(self.device)))

    def _clip(self) -> float:
        # Shorten gradients that are too long; return what to multiply the learning rate by instead, if anything.
        longest = self.settings.clip_norm
        if not longest:
            return 1.0
        if self.device.type != "cpu" or self.settings.optimizer != "sgd":
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), longest)
            return 1.0
        # A step of plain SGD is as long as gradient times rate: a pass over all gradients is saved.
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        return min(1.0, longest / (float(torch.nn.utils.get_total_norm(gradients)) + 1e-6))

    def _nats(self, window: Window) -> Tensor:
        inputs, targets = window.inputs.to(self.device), window.targets.to(self.device)
        head = self.model.get_output_embeddings()
        if self.settings.kind == "transformer":
            options: dict[str, Any] = {"use_cache": False}
        else:
            options = {"state": None if window.fresh else self.carried}
        with mixed_precision(self.settings, self.device):
            output = self.model.base_model(inputs, **options)
        if self.settings.kind != "transformer":
            self.carried = tuple(tensor.detach() for tensor in output.state)
        states = output.last_hidden_state.flatten(0, 1)
        return output_loss(states, head.weight, head.bias, targets.flatten(), self.dtype)

    def _look(self, updates: int, valid: float | None = None, finished: bool = False) -> None:
        nats, tokens = self.sums.tolist()
        perplexity = perplexity_of(nats, max(tokens, 1.0))
        self._refuse_divergence(perplexity, valid)
        seconds = time.monotonic() - self._began
        here = self._tokens + tokens - self._before
        done = self.total_update / max(1, self.settings.epochs * updates)
        per_second = here / seconds if seconds > 0 else 0.0
        left = (1 / done - 1) * (seconds + self._seconds_before) if done > 0 else math.inf
        best = None if math.isinf(self.rate.best) else self.rate.best
        self.watch(
            TrainingEvent(
                epoch=self.epoch,
                epochs=self.settings.epochs,
                update=self.update,
                updates=updates,
                total_update=self.total_update,
                perplexity=perplexity,
                tokens_per_second=per_second,
                seconds_left=left,
                learning_rate=self.rate.at(self.epoch, max(0, self.total_update - 1)),
                valid_perplexity=valid,
                best_perplexity=best,
                finished=finished,
            )
        )

    def _refuse_divergence(self, *perplexities: float | None) -> None:
        if not all(perplexity is None or math.isfinite(perplexity) for perplexity in perplexities):
            raise TrainingFailedError(
                f"the loss or a parameter is not finite in epoch {self.epoch + 1}, update {self.update}: training has "
                "diverged; use a lower --learning-rate or a smaller --clip-norm"
            )

    def _check(self) -> tuple[float, float]:
        nats, tokens = self.sums.tolist()
        self._refuse_divergence(perplexity_of(nats, max(tokens, 1.0)), None if finite(self.model) else math.nan)
        return nats, tokens

    def _end_epoch(self, updates: int) -> None:
        nats, tokens = self._check()
        entry = {"epoch": self.epoch + 1, "perplexity": perplexity_of(nats, tokens)}
        rate = self.rate.at(self.epoch, max(0, self.total_update - 1))
        valid = None
        if self.valid is not None:
            valid = perplexity_of(*validate(self.model, self.valid, self.settings))
            self._refuse_divergence(valid)
            entry["valid_perplexity"] = valid
            if self.rate.see(self.epoch, valid):
                self.folder.save_best(self.model)
        self._look(updates, valid, finished=True)
        self.history.append(entry | {"learning_rate": rate})
        self._tokens += tokens - self._before
        self._before = 0.0
        self.epoch, self.update, self.carried = self.epoch + 1, 0, None
        self.sums.zero_()
        self.save()

    def save(self) -> None:
        """Write a checkpoint."""
        # Raises TrainingFailedError: the loss or a parameter is no longer finite; the checkpoint before stays.
        self._check()
        facts = {
            "epoch": self.epoch,
            "update": self.update,
            "total_update": self.total_update,
            "rate": self.rate.state(),
            "history": self.history,
            "seconds": self.seconds,
        }
        tensors = stored.with_prefix("model", stored.parameters_of(self.model))
        tensors |= stored.with_prefix("optimizer", stored.optimizer_tensors(self.optimizer))
        tensors |= {"sums": self.sums} | stored.with_prefix("random", stored.random_tensors(self.device))
        tensors |= stored.with_prefix("carried", {str(i): tensor for i, tensor in enumerate(self.carried or ())})
        self.folder.save(self.total_update, stored.Checkpoint(self._whole_work(), facts, tensors))

    def _whole_work(self) -> dict[str, Any]:
        return {"settings": self.settings.to_dict(), **self.made_of}

    def resume(self, checkpoint: stored.Checkpoint) -> None:
        """Resume from a checkpoint."""
        try:
            self._restore(checkpoint)
        except LmgaugeError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
            said = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise ModelFileError(
                f"{self.folder.path}: the checkpoint cannot be resumed from ({said}); delete the folder to start anew"
            ) from error

    def _restore(self, checkpoint: stored.Checkpoint) -> None:
        facts = checkpoint.facts
        refuse_other(self.folder.path, checkpoint.made_of, described(self._whole_work()))
        stored.load_parameters(self.model, stored.under_prefix("model", checkpoint.tensors))
        stored.load_optimizer(self.optimizer, stored.under_prefix("optimizer", checkpoint.tensors))
        stored.load_random(stored.under_prefix("random", checkpoint.tensors), self.device)
        carried = stored.under_prefix("carried", checkpoint.tensors)
        self.carried = tuple(carried[str(i)].to(self.device) for i in range(len(carried))) or None
        self.sums = checkpoint.tensors["sums"].to(self.device)
        self.epoch, self.update, self.total_update = (int(facts[name]) for name in ("epoch", "update", "total_update"))
        self.rate.restore(facts["rate"])
        self.history = list(facts["history"])
        self._before = float(self.sums[1])
        self._seconds_before = float(facts["seconds"])


def finite(model: torch.nn.Module) -> bool:
    """Return True if all parameters of a model are finite numbers."""
    return all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters())


# -- Optimizers and learning rates: the schedules of the papers, and when to stop -------------------------------------

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

    def at(self, epoch: int, update: int) -> float:
        """Return the learning rate of an update."""
        chosen, peak = self.settings, self.settings.learning_rate
        if chosen.schedule == "decay":
            return peak * chosen.decay ** max(epoch + 1 - chosen.decay_after, 0)
        if chosen.schedule == "constant":
            return peak
        if update < chosen.warmup:
            return peak * (update + 1) / chosen.warmup
        done = min(1.0, (update - chosen.warmup) / max(1, self.updates - chosen.warmup))
        return peak * (_LAST_SHARE + (1 - _LAST_SHARE) * 0.5 * (1 + math.cos(math.pi * done)))

    def see(self, epoch: int, perplexity: float) -> bool:
        """Take in the validation perplexity after an epoch."""
        lowest = perplexity < self.best
        if lowest:
            self.best, self.best_epoch = perplexity, epoch
        return lowest

    def exhausted(self, epoch: int) -> bool:
        """Return True if patience has run out before an epoch."""
        return 0 < self.settings.patience < epoch - self.best_epoch

    def state(self) -> dict[str, Any]:
        """Return what to keep, as JSON values."""
        return {"best": None if math.isinf(self.best) else self.best, "best_epoch": self.best_epoch}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from what was stored."""
        self.best, self.best_epoch = math.inf if state["best"] is None else float(state["best"]), int(state["best_epoch"])
