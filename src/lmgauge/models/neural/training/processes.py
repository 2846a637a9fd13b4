"""Several processes that train one model: each takes its share of every batch, gradients are added up.

Started by `torchrun --nproc-per-node N -m lmgauge train ...`, which sets WORLD_SIZE, RANK and LOCAL_RANK. With one process
nothing here does anything. The library is torch's own `torch.distributed`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import torch
from torch import Tensor, distributed, nn

from lmgauge.errors import UsageError


class Processes:
    """The processes that share the work.

    Attributes:
        rank: which of them this is.
        world_size: how many they are.
    """

    def __init__(self, rank: int = 0, world_size: int = 1) -> None:
        self.rank, self.world_size = rank, world_size

    @classmethod
    def from_environment(cls) -> Processes:
        """The processes torchrun has started; this one alone where it was not used."""
        world_size = int(os.environ.get("WORLD_SIZE", "1"))
        if world_size == 1:
            return cls()
        if not distributed.is_initialized():
            distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        return cls(distributed.get_rank(), distributed.get_world_size())

    def check(self, batch_size: int) -> None:
        """Refuses a batch that cannot be shared out.

        Raises:
            UsageError: the processes do not divide the batch.
        """
        if batch_size % self.world_size:
            raise UsageError(f"batch-size {batch_size} is shared out among {self.world_size} processes: give a multiple")

    @property
    def device_index(self) -> int:
        """Number of the GPU of this process."""
        return int(os.environ.get("LOCAL_RANK", "0")) if self.world_size > 1 else 0

    def sum(self, values: Tensor) -> Tensor:
        """The sum of a small tensor over all processes, on the processor."""
        if self.world_size == 1:
            return values
        total = values.to(self._device(), copy=True)
        distributed.all_reduce(total)
        return total.cpu()

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replaces gradients by their sum over all processes."""
        if self.world_size == 1:
            return
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        distributed.all_reduce(flat)
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def gather(self, own: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
        """What the other processes have under the same names, shapes and types, by rank."""
        others: dict[int, dict[str, Tensor]] = {rank: {} for rank in range(1, self.world_size)}
        if self.world_size > 1:
            for name, tensor in own.items():
                copies = [torch.empty_like(tensor, device=self._device()) for _ in range(self.world_size)]
                distributed.all_gather(copies, tensor.to(self._device()).contiguous())
                for rank, values in others.items():
                    values[name] = copies[rank].cpu()
        return others

    def wait(self) -> None:
        """Waits until all have come here."""
        if self.world_size > 1:
            distributed.barrier()

    @staticmethod
    def _device() -> torch.device:
        return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
