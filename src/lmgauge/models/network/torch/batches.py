"""Windows to batches: of about equal length, so that next to nothing is padded, and as large as memory allows."""

# What is padded stands at the right, where a causal network's predictions cannot see it, and is never scored.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lmgauge.memory import free_memory
from lmgauge.models.network.engine import Job

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
