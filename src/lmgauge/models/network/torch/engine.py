"""Log-probabilities of jobs: batch by batch, smaller where memory runs out, checked for NaN; kept in a journal as soon
as they are known, so that a killed run need not start anew.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.base.files import OutputError, digest, reason_of
from lmgauge.base.memory import free_memory
from lmgauge.models.network.engine import Job, Progress, StreamState, unheard
from lmgauge.models.network.torch.checkpoint import quiet
from lmgauge.models.network.torch.runtime import kept_pages, out_of_memory
from lmgauge.models.network.torch.split_network import SplitNetwork, Stepper
from lmgauge.scores.context_policy import ContextPolicy
from lmgauge.work.manifest import Notes


class Journal:
    """A file of scores, each found by what was scored: a record cut off by a kill, or of another model, is never taken."""

    # Several threads may use it.

    def __init__(self, path: Path, model: str) -> None:
        self._model, self._open, self._lock = model, True, Lock()
        self.taken = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._notes = Notes(path)
        except OSError as error:
            raise OutputError(f"{path}: cannot keep finished work: {reason_of(error)}") from error
        try:
            self.scores = sum(map(len, map(_scores, self._notes.values())))
        except (TypeError, ValueError) as error:
            raise InputError(f"{path}: holds something else than scores; remove it and start again") from error

    def get(self, job: Job) -> NDArray[np.float64] | None:
        """Return the scores of a job, float64 [predicted] in nats; None if they are not known."""
        if not self._open or (stored := self._notes.get(self._key(job))) is None:
            return None
        entry = _scores(stored)
        if len(entry) != len(job.targets):
            return None
        with self._lock:
            self.taken += len(entry)
        return entry

    def put(self, job: Job, logprob: NDArray[np.float64]) -> None:
        """Write the scores of a job."""
        # logprob: float64 [predicted], nats.
        with self._lock:
            if self._open:
                self._notes.write(self._key(job), b64encode(logprob.astype("<f8").tobytes()).decode())
                self.scores += len(logprob)

    def close(self) -> None:
        """Close the file, which stays; nothing more is taken from it or put into it."""
        self._open = False
        self._notes.close()

    def _key(self, job: Job) -> tuple[str]:
        shown, last = (np.ascontiguousarray(ids, "<i8").data for ids in (job.ids, job.targets[-1:]))
        return (digest(self._model, len(job.targets).to_bytes(8, "little"), shown, last)[:32],)


def _scores(stored: str) -> NDArray[np.float64]:
    return np.frombuffer(b64decode(stored), "<f8").astype(np.float64)


# Nats by which a row may differ when it is scored again in another batch; with 1.1 billion weights on a GPU it was 0.21 in
# bfloat16, and 0.024 in float16.
_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 0.25, torch.float16: 0.03}
# The same where the scale of activations depends on all that is shown, later tokens too.
_ROUNDED = 0.1
# Tokens of a stream that a recurrent network is shown at a time.
_STREAM_CHUNK = 1 << 10
# Activations of a layer that live at a time, in hidden states: input, norm, wide middle of the feed-forward part, attention.
_LIVE_STATES = 24
# Of hidden states that are held together for whole distributions.
_STATE_BYTES = 32 << 20
_OUTPUT = "(output)"

Head = Callable[[Tensor, Tensor], Tensor]


class TorchEngine:
    """Scores jobs with a network in batches, and carries the state of a recurrent one through a stream."""

    segment_by_segment = False

    def __init__(self, network: SplitNetwork, policy: ContextPolicy, batch_tokens: int | None, name: str) -> None:
        self.split, self._name = network, name
        self.tolerance = _ROUNDED if network.rounds_together else _TOLERANCE.get(network.network.dtype, 1e-3)
        self.computes_elsewhere = network.device.type != "cpu"
        self.carries_state = network.recurrent and policy.runs_on and policy.length is None
        self._tokens = batch_tokens or tokens_at_a_time(_bytes_a_token(network), network.device)
        if network.rounds_together:
            self._tokens = 1  # every window by itself, so that no neighbor moves its scale
        self.log_distribution = stepper = Stepper(network)
        self.log_distributions = stepper.many
        self.progress: Progress = unheard
        self.journal: Journal | None = None

    @property
    def batch_tokens(self) -> int:
        """Return tokens computed at a time; batches are smaller from where memory ran out on."""
        return self._tokens

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Let torch use this number of threads inside the `with` block, and as many as before afterwards."""
        # count: threads of the processor.
        before = torch.get_num_threads()
        # Steps of one sequence are too small to share: threads would wait for each other most of the time.
        torch.set_num_threads(1 if self.carries_state else count)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def score(self, jobs: Sequence[Job]) -> list[NDArray[np.float64]]:
        """Return the log-probabilities of each job's targets, nats, float64 [predicted] each."""
        if self.carries_state:
            return [self._carried_scores(job) for job in jobs]
        scores: list[NDArray[np.float64] | None] = [None] * len(jobs)
        waiting = list(range(len(jobs)))
        if self.journal is not None:
            for number in waiting:
                scores[number] = self.journal.get(jobs[number])
            waiting = [number for number in waiting if scores[number] is None]

        def take(number: int, logprob: Tensor) -> None:
            scores[number] = made = _at_most_certain(logprob)
            if self.journal is not None:
                self.journal.put(jobs[number], made)

        # To the processor once a batch: a job at a time, each would wait for the GPU.
        self._run(jobs, waiting, lambda last, targets: self.split.log_probabilities(last, targets).cpu(), take)
        return [logprob for logprob in scores if logprob is not None]

    @torch.inference_mode()
    def distributions(
        self, jobs: Sequence[Job], rows: NDArray[np.int64], wanted: NDArray[np.bool_]
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield natural log-probabilities and probabilities of all tokens at the targets of jobs, a few at a time."""
        # jobs: in the order of the events; rows: int64 [vocabulary], the row of the output layer that predicts each token;
        # -1 for none; wanted: bool [targets of all jobs], which of them to look at.
        # -> two float32 [m, vocabulary]: m targets in order; what cannot come has -inf and 0; and what they are made of.
        own_rows = torch.from_numpy(rows).to(self.split.device)
        bounds = np.cumsum([len(job.targets) for job in jobs])
        with kept_pages():
            for some, asked in self._groups(jobs, np.split(wanted, bounds)[: len(jobs)]):
                last: list[Tensor | None] = [None] * len(some)
                if self.carries_state:
                    parts = [torch.cat([states for _, states in self._carried(job)]) for job in some]
                else:
                    self._run(some, list(range(len(some))), lambda states, _: states, last.__setitem__)
                    parts = [states for states in last if states is not None]
                chosen = torch.from_numpy(np.concatenate(asked)).to(self.split.device)
                of_chosen, done = torch.cat(parts)[chosen], 0
                for logprob, p in self.split.distributions(of_chosen, own_rows):
                    if bool(logprob[:, -1].isnan().any()):  # NaN in one logit is NaN in all
                        self._blame(*some)
                    yield logprob, p, of_chosen[done : done + len(p)]
                    done += len(p)

    def _groups(
        self, jobs: Sequence[Job], wanted: Sequence[NDArray[np.bool_]]
    ) -> Iterator[tuple[list[Job], list[NDArray[np.bool_]]]]:
        # Jobs whose hidden states may be held together, with the targets to look at; no jobs without any.
        at_a_time = max(1, _STATE_BYTES // self._bytes_a_state)
        some: list[Job] = []
        asked: list[NDArray[np.bool_]] = []
        for job, mask in zip(jobs, wanted, strict=True):
            if not mask.any() and not self.carries_state:
                continue
            if some and sum(map(len, asked)) + len(mask) > at_a_time:
                yield some, asked
                some, asked = [], []
            some.append(job)
            asked.append(mask)
        if some:
            yield some, asked

    @property
    def _bytes_a_state(self) -> int:
        size = self.split.vocabulary_size if self.split.output is None else self.split.output.weight.shape[1]
        return int(size) * 4

    @torch.inference_mode()
    def _carried_scores(self, job: Job) -> NDArray[np.float64]:
        # Scores of what goes on where the job before of the same stream ended.
        parts = [np.zeros(0)]
        for chunk, last in self._carried(job):
            logprob = self.split.log_probabilities(last, torch.from_numpy(chunk.targets).to(self.split.device))
            if bool(logprob.isnan().any()):
                self._blame(chunk)
            parts.append(_at_most_certain(logprob.cpu()))
        return np.concatenate(parts)

    def _carried(self, job: Job) -> Iterator[tuple[Job, Tensor]]:
        stream = job.stream or StreamState()
        for at in range(0, len(job.ids), _STREAM_CHUNK):
            chunk = Job(job.ids[at : at + _STREAM_CHUNK], job.targets[at : at + _STREAM_CHUNK], job.segment)
            with self.split.ready():
                last, stream.value = self.split.carried(torch.from_numpy(chunk.ids).to(self.split.device), stream.value)
            yield chunk, last
            self.progress(len(chunk.targets))

    def _run(self, jobs: Sequence[Job], waiting: list[int], head: Head, take: Callable[[int, Tensor], None]) -> None:
        # Compute jobs, in smaller batches from where memory runs out.
        # head: what to make of the last hidden states, [n, hidden], and the targets, int64 [n]; take: is given each job's
        # number and what was made, [predicted, ...].
        while waiting:
            chosen, done = [jobs[number] for number in waiting], set[int]()
            with quiet(), kept_pages(), self.split.ready():
                for batch in batches(chosen, self._tokens):
                    made = self._of_batch(chosen, batch, head)
                    if made is None:
                        break
                    for number, part in zip(batch.jobs, made, strict=True):
                        take(waiting[number], part)
                        done.add(number)
                        self.progress(len(part))
            waiting = [number for place, number in enumerate(waiting) if place not in done]

    def _of_batch(self, jobs: Sequence[Job], batch: Batch, head: Head) -> Sequence[Tensor] | None:
        # What was made of each job; None where memory ran out, and batches have to become smaller.
        too_large = False
        try:
            made = self._compute(batch, head)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            too_large = True
        if too_large:  # not above: the error holds the tensors of every frame that it came through
            self._shrink(jobs, batch)
            return None
        parts: Sequence[Tensor] = made.split([len(jobs[number].targets) for number in batch.jobs])
        if bool(made.isnan().any()):
            self._blame(*(jobs[number] for number, part in zip(batch.jobs, parts, strict=True) if bool(part.isnan().any())))
        return parts

    @torch.inference_mode()
    def _compute(self, batch: Batch, head: Head) -> Tensor:
        ids, rows, targets = (
            torch.from_numpy(values).to(self.split.device) for values in (batch.ids, batch.rows, batch.targets)
        )
        return head(self.split.last(ids, rows), targets)

    def _shrink(self, jobs: Sequence[Job], batch: Batch) -> None:
        # Take batches of half the size from now on.
        if self.split.device.type == "cuda":
            torch.cuda.empty_cache()
        if len(batch.jobs) == 1:
            raise UsageError(
                f"{self._name}: not enough memory for {batch.ids.shape[1]:,} tokens at a time (segment "
                f"{jobs[batch.jobs[0]].segment + 1}); choose a smaller --context"
            )
        self._tokens = max(1, min(self._tokens, len(batch.jobs) // 2 * batch.ids.shape[1]))

    def _blame(self, *jobs: Job) -> NoReturn:
        # Say where NaN comes from, the first of some jobs that show it.
        job = next((job for job in jobs if _first_layer_with_nan(self.split, job) != _OUTPUT), jobs[0])
        layer = _first_layer_with_nan(self.split, job)
        raise ModelFileError(
            f"{self._name}: gives NaN in segment {job.segment + 1}, first in its layer {layer}; the weights are damaged, or "
            "the dtype is too narrow for them (--dtype float32)"
        )


def _at_most_certain(logprob: Tensor) -> NDArray[np.float64]:
    # Log-probabilities as NumPy's; the log-sum-exp of rounded terms may fall a little below its largest.
    values: NDArray[np.float64] = logprob.numpy()
    return np.minimum(values, 0.0)


@torch.inference_mode()
def _first_layer_with_nan(network: SplitNetwork, job: Job) -> str:
    # Name of the first module whose output has a NaN; that of the output layer if none has.
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
    return broken[0] if broken else _OUTPUT


def _bytes_a_token(network: SplitNetwork) -> int:
    # About what computing a token takes: activations of one layer, and its logits where all are asked for.
    config = network.network.config.get_text_config()
    size = int(getattr(config, "hidden_size", 0) or getattr(config, "n_embd", 0) or getattr(config, "d_model", 0) or 1024)
    width = torch.finfo(network.network.dtype).bits // 8
    logits = 0 if network.output is not None else 4 * network.vocabulary_size * 4
    return _LIVE_STATES * size * width + logits


# -- Windows to batches: of about equal length, so that next to nothing is padded, and as large as memory allows ------

# What is padded stands at the right, where a causal network's predictions cannot see it, and is never scored.

# More does not make a processor faster: its products are at full speed, and less stays in its caches.
_CPU_TOKENS = 2048
_GPU_TOKENS = 1 << 14  # an H100 gains nothing from more, and half as many take half the memory
_LARGEST_PADDING = 1 / 16
_SHARE_OF_FREE_MEMORY = 0.6
_FALLBACK_FREE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs to compute together."""

    jobs: list[int]
    ids: NDArray[np.int64]  # int64 [jobs, length], padded at the right
    rows: NDArray[np.int64]  # int64 [n], where in the flattened ids each prediction is made, job after job
    targets: NDArray[np.int64]  # int64 [n]


def batches(jobs: Sequence[Job], most_tokens: int) -> Iterator[Batch]:
    """Yield jobs in batches, longest first, so that memory fails early if at all."""
    order = sorted(range(len(jobs)), key=lambda number: -len(jobs[number].ids))
    chosen: list[int] = []
    longest = shown = 0
    for number in order:
        length = len(jobs[number].ids)
        padded = longest * (len(chosen) + 1)
        wasteful = padded - shown - length > _LARGEST_PADDING * padded
        if chosen and (padded > most_tokens or wasteful):
            yield join(jobs, chosen)
            chosen, shown = [], 0
        if not chosen:
            longest = length
        chosen.append(number)
        shown += length
    if chosen:
        yield join(jobs, chosen)


def join(jobs: Sequence[Job], chosen: list[int]) -> Batch:
    """Return one batch of the chosen jobs."""
    # join([Job(np.arange(3), np.arange(2), 0), Job(np.arange(2), np.arange(2), 1)], [0, 1]).ids -> [[0, 1, 2], [0, 1, 1]]
    length = max(len(jobs[number].ids) for number in chosen)
    ids = np.zeros((len(chosen), length), np.int64)
    rows = []
    for row, number in enumerate(chosen):
        job = jobs[number]
        ids[row, : len(job.ids)] = job.ids
        ids[row, len(job.ids) :] = job.ids[-1]  # any would do; an id for padding makes the library speak up
        last = row * length + len(job.ids)
        rows.append(np.arange(last - len(job.targets), last))
    return Batch(chosen, ids, np.concatenate(rows), np.concatenate([jobs[number].targets for number in chosen]))


def tokens_at_a_time(bytes_a_token: int, device: torch.device) -> int:
    """Return how many tokens fit into the memory that is free now."""
    fitting = int(_SHARE_OF_FREE_MEMORY * _free_bytes(device)) // max(1, bytes_a_token)
    return max(1, min(fitting, _GPU_TOKENS if device.type == "cuda" else _CPU_TOKENS))


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return free_memory() or _FALLBACK_FREE_BYTES
