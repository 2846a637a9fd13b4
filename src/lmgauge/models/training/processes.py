"""Several processes that train one model: each takes its share of every batch, gradients are added up."""

# Started by `torchrun --nproc-per-node N -m lmgauge train ...`, which sets WORLD_SIZE, RANK and LOCAL_RANK. With one process
# nothing here does anything. The library is torch's own `torch.distributed`.

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.rendezvous import rendezvous

from lmgauge.errors import InputError, LmgaugeError, UsageError
from lmgauge.readable import visible

_REMEDY = "start it with torchrun, or unset WORLD_SIZE"
_DIGITS = 9
_MEETING = timedelta(minutes=10)  # for all to start and to find each other: one of them may never come
_PATIENCE = timedelta(hours=6)  # the first process may take long to learn subwords, and the others wait for it


class ConnectionLostError(LmgaugeError):
    """Raised when one of the processes that train a model together is gone."""


class Processes:
    """The processes that share the work."""

    def __init__(self, rank: int = 0, world_size: int = 1, device_index: int = 0) -> None:
        self.rank, self.world_size, self.device_index = rank, world_size, device_index
        self._joined = False

    @classmethod
    def from_environment(cls) -> Processes:
        """Return the processes torchrun has started; this one alone where it was not used."""
        # They are not connected yet.
        if _connected():
            rank, world_size = distributed.get_rank(), distributed.get_world_size()
        else:
            world_size = _number("WORLD_SIZE", 1)
            if world_size == 1:
                return cls()
            if "RANK" not in os.environ:
                raise UsageError(f"WORLD_SIZE is set but RANK is not: {_REMEDY}")
            rank = _number("RANK", 0)
        if not 0 <= rank < world_size:
            raise UsageError(f"RANK {rank} is not one of the {world_size} processes of WORLD_SIZE: {_REMEDY}")
        return cls(rank, world_size, _number("LOCAL_RANK", 0) if world_size > 1 else 0)

    def join(self, device: torch.device) -> None:
        """Connect the processes, by what suits the device; nothing where they are connected already."""
        if self.world_size == 1 or _connected():
            return
        try:
            store, rank, size = next(rendezvous("env://", timeout=_MEETING))
            store.set_timeout(_PATIENCE)
            backend = "nccl" if device.type == "cuda" else "gloo"
            distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_PATIENCE)
        except (ValueError, RuntimeError) as error:
            reason = str(error).partition("\n")[0]
            raise UsageError(
                f"the {self.world_size} processes of WORLD_SIZE cannot be connected: {reason}; {_REMEDY}"
            ) from error
        self._joined = True

    def close(self) -> None:
        """Undo `join`."""
        if self._joined:
            distributed.destroy_process_group()
            self._joined = False

    def check(self, batch_size: int) -> None:
        """Refuse a batch that cannot be shared out."""
        if batch_size % self.world_size:
            raise UsageError(f"batch-size {batch_size} is shared out among {self.world_size} processes: give a multiple")

    def check_same(self, what: dict[str, Any]) -> None:
        """Make sure that all processes train the same model on the same text."""
        if self.world_size == 1:
            return
        digests = [hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest() for value in what.values()]
        own = torch.tensor([list(digest) for digest in digests], dtype=torch.int64)
        differ = self.sum((own != self.of_first(own)).any(1).long())
        names = [name.replace("_", " ") for name, count in zip(what, differ.tolist(), strict=True) if count]
        if names:
            raise InputError(f"the processes differ in {', '.join(names)}: give all of them the same files and options")

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of a small tensor over all processes, on the processor."""
        # Processes().sum(torch.tensor([1.0, 2.0])) -> [1.0, 2.0]
        if self.world_size == 1:
            return values.cpu()
        total = values.to(self._device(), copy=True)
        with _connection_explained():
            distributed.all_reduce(total)
        return total.cpu()

    def of_first(self, values: Tensor) -> Tensor:
        """Return the values that rank 0 has, of the same shape and type, on the processor."""
        # Processes().of_first(torch.tensor([3.0])) -> [3.0]
        if self.world_size == 1:
            return values.cpu()
        shared = values.to(self._device(), copy=True)
        with _connection_explained():
            distributed.broadcast(shared, 0)
        return shared.cpu()

    def bytes_of_first(self, content: bytes) -> bytes:
        """Return the bytes that rank 0 has; what the others give is not looked at."""
        if self.world_size == 1:
            return content
        size = int(self.of_first(torch.tensor(len(content))))
        own = torch.zeros(size, dtype=torch.uint8)
        if self.rank == 0:
            own = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        return self.of_first(own).numpy().tobytes()

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace gradients by their sum over all processes."""
        if self.world_size == 1:
            return
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients]).to(self._device())
        with _connection_explained():
            distributed.all_reduce(flat)
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def gather(self, own: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
        """Return what the other processes have under the same names, shapes and types, by rank."""
        others: dict[int, dict[str, Tensor]] = {rank: {} for rank in range(1, self.world_size)}
        if self.world_size > 1:
            for name, tensor in own.items():
                copies = [torch.empty_like(tensor, device=self._device()) for _ in range(self.world_size)]
                with _connection_explained():
                    distributed.all_gather(copies, tensor.to(self._device()).contiguous())
                for rank, values in others.items():
                    values[name] = copies[rank].cpu()
        return others

    def wait(self) -> None:
        """Wait until all have come here."""
        if self.world_size > 1:
            with _connection_explained():
                distributed.barrier()

    @staticmethod
    def _device() -> torch.device:
        if distributed.get_backend() == "nccl":
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("cpu")


@contextmanager
def _connection_explained() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        reason = visible(str(error).partition("\n")[0])
        raise ConnectionLostError(
            f"another process that trains this model is gone, or does not answer ({reason:.200}); look there "
            "for the reason, and start all of them with --resume"
        ) from error


def _connected() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _number(name: str, default: int) -> int:
    # Number of the environment, 0 or more; WORLD_SIZE 1 or more.
    text = os.environ.get(name, str(default))
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else -1
    if number < 0 or (name == "WORLD_SIZE" and number == 0):
        raise UsageError(f"{name} is {text!r}, which is not a number of processes: {_REMEDY}")
    return number
