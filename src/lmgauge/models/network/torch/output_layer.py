"""Log-probabilities of given tokens from hidden states, or of all tokens at a few states, never of all tokens at all.

Logits are made in tiles of the vocabulary. For given tokens only the sum of exponentials stays of each tile. Where those
overflow, the largest logit is followed from tile to tile (Milakov & Gimelshein 2018, "Online normalizer calculation for
softmax"). For whole distributions the tiles of some states are kept, and the rows of a few put together at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from subprocess import SubprocessError
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Measured on a server processor: with wider tiles the logits no longer stay in its caches.
_CPU_TILE = (2048, 2048)
_NEEDS_NO_SHIFT = 30.0  # exp(30) and exp(-30) leave float32 room on both sides
_GPU_TILE = (4096, 32768)
# For whole distributions: states and columns of a product (as fast as the tiles above), and rows put together, which stay
# in a core's cache while reductions go over them.
_CPU_PIECES = (256, 1024, 4)
_GPU_PIECES = (1024, 32768, 256)

# Adds a tile of logits to the sums of its rows: `_add_exponentials`.
_AddTile = Callable[[Tensor, Tensor, Tensor], None]


def unchanged(logits: Tensor) -> Tensor:
    """Return logits as the matrix product gives them."""
    # logits: float32 [n, vocabulary].
    # unchanged(torch.ones(1, 2)) -> [[1.0, 1.0]]
    return logits


@dataclass(frozen=True)
class OutputLayer:
    """The last layer of a language model."""

    weight: Tensor  # [vocabulary, hidden], in the dtype to multiply in
    bias: Tensor | None = None  # float32 [vocabulary], or None
    # what the model does to float32 logits after the product (in place or not), such as soft capping
    adjust: Callable[[Tensor], Tensor] = unchanged

    def logits(self, hidden: Tensor) -> Tensor:
        """Return all logits, float32 [n, vocabulary]."""
        # hidden: [n, hidden], few states.
        # OutputLayer(torch.eye(2)).logits(torch.tensor([[1.0, 2.0]])) -> [[1.0, 2.0]]
        return self._adjusted(hidden.float() @ self.weight.float().T, slice(None))

    def log_probabilities(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return log-probabilities of the targets, in nats."""
        # hidden: [n, hidden]; targets: int64 [n].
        # -> float64 [n]: the target's logit less the log-sum-exp of all, both from float32.
        rows, columns = _CPU_TILE if hidden.device.type == "cpu" else _GPU_TILE
        with _products_as_exact_as(self.weight.dtype):
            parts = [
                self._of_rows(states, wanted, columns)
                for states, wanted in zip(hidden.split(rows), targets.split(rows), strict=True)
            ]
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64, device=hidden.device)

    def distributions(self, hidden: Tensor, rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield natural log-probabilities and probabilities of all tokens, for a few states at a time, in order."""
        # hidden: [n, hidden]; rows: int64 [vocabulary], the row of the layer that predicts each token; -1 for what no row
        # predicts.
        # -> two float32 [m, vocabulary]; rows sum to one, and what cannot come has -inf and 0.
        states, columns, at_a_time = _CPU_PIECES if hidden.device.type == "cpu" else _GPU_PIECES
        missing = (rows < 0).nonzero()[:, 0]
        parts = [_as_slice(part.clamp(min=0)) for part in rows.split(columns)]
        room = torch.empty(min(states, len(hidden)) * len(rows), dtype=torch.float32, device=hidden.device)
        for some in hidden.split(states):
            with _products_as_exact_as(self.weight.dtype):
                rooms = room.split(columns * len(some))
                tiles = [self._tile(some.to(self.weight.dtype), part, own) for part, own in zip(parts, rooms, strict=False)]
            for begin in range(0, len(some), at_a_time):
                logits = torch.cat([tile[begin : begin + at_a_time] for tile in tiles], 1)
                logits[:, missing] = -torch.inf
                yield normalized(logits)

    @torch.inference_mode()
    def of_states(self, states: NDArray[np.float32], rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the same of states that were stored."""
        # states: float32 [n, hidden], NaN where nothing is shown before an event: all tokens are equally probable there.
        hidden = torch.from_numpy(states).to(self.weight.device)
        can_come, done = (rows >= 0).float(), 0
        for logprob, p in self.distributions(hidden, rows):
            unseen = hidden[done : done + len(p), 0].isnan()
            p[unseen] = can_come / can_come.sum()
            logprob[unseen] = p[unseen].log()
            yield logprob, p
            done += len(p)

    def _of_rows(self, hidden: Tensor, targets: Tensor, columns: int) -> Tensor:
        hidden = hidden.to(self.weight.dtype)
        add = _gpu_kernel(hidden.device) if hidden.device.type == "cuda" else None
        if add is None:
            largest, total = self._sums(hidden, columns)
            add = None if bool(torch.isfinite(total).all()) else _add_exponentials
        if add is not None:
            largest, total = self._sums_of_any_size(hidden, columns, add)
        return self._target_logits(hidden, targets).double() - (largest.double() + total.log())

    def _sums(self, hidden: Tensor, columns: int) -> tuple[Tensor, Tensor]:
        # Shift, float32 [n], and the sum of exponentials of logits less it, float64 [n], inf or NaN on overflow.
        # The shift is the largest logit of the first tile: the others are most often as large, and looking for theirs would
        # cost a pass over memory for each. Where it is small, nothing is subtracted at all, which spares another.
        shift = torch.zeros(len(hidden), device=hidden.device)
        total = torch.zeros(len(hidden), dtype=torch.float64, device=hidden.device)
        shifted = True
        room = self._room(hidden, columns)
        for begin in range(0, len(self.weight), columns):
            logits = self._tile(hidden, slice(begin, begin + columns), room)
            if begin == 0:
                shift = logits.amax(1)
                shift.masked_fill_(shift == -torch.inf, 0.0)
                if bool((shift.abs() < _NEEDS_NO_SHIFT).all()):
                    shift.zero_()
                    shifted = False
            if shifted:
                logits.sub_(shift[:, None])
            total += logits.exp_().sum(1)
        return shift, total

    def _sums_of_any_size(self, hidden: Tensor, columns: int, add: _AddTile) -> tuple[Tensor, Tensor]:
        # Same with a shift that follows the largest logit so far (online log-sum-exp).
        largest = torch.full((len(hidden),), -torch.inf, device=hidden.device)
        total = torch.zeros(len(hidden), dtype=torch.float64, device=hidden.device)
        room = self._room(hidden, columns)
        for begin in range(0, len(self.weight), columns):
            add(self._tile(hidden, slice(begin, begin + columns), room), largest, total)
        return largest, total

    def _room(self, hidden: Tensor, columns: int) -> Tensor:
        # Memory for the logits of a tile, used again for each: fresh pages would cost a fifth of the product.
        size = len(hidden) * min(columns, len(self.weight))
        return torch.empty(size, dtype=torch.float32, device=hidden.device)

    def _tile(self, hidden: Tensor, part: slice | Tensor, room: Tensor) -> Tensor:
        # float32 [n, columns], the logits of a part of the layer's rows, which may be written over.
        weight = self.weight[part]
        logits = room[: len(hidden) * len(weight)].view(len(hidden), len(weight))
        if hidden.device.type == "cuda" and weight.dtype in (torch.bfloat16, torch.float16):
            return self._adjusted(torch.mm(hidden, weight.T, out_dtype=torch.float32, out=logits), part)
        return self._adjusted(torch.mm(hidden.float(), weight.float().T, out=logits), part)

    def _adjusted(self, product: Tensor, part: slice | Tensor) -> Tensor:
        if self.bias is not None:
            product += self.bias[part]
        return self.adjust(product)

    def _target_logits(self, hidden: Tensor, targets: Tensor) -> Tensor:
        # float32 [n], each target's logit.
        logits = (hidden.float() * self.weight[targets].float()).sum(1)
        if self.bias is not None:
            logits += self.bias[targets]
        # A column of its own: what adjusts logits takes [n, vocabulary].
        return self.adjust(logits[:, None])[:, 0]


def normalized(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return log-probabilities, in nats, and probabilities of all columns; the logits are written over."""
    # logits: float32 [n, columns].
    # [values.exp().tolist() for values in normalized(torch.tensor([[1.0, 1.0]]))[:1]] -> [[[0.5, 0.5]]]
    shift = logits.amax(1, keepdim=True)
    p = torch.sub(logits, shift).exp_()
    total = p.sum(1, keepdim=True)
    return logits.sub_(shift + total.log()), p.div_(total)


def _add_exponentials(logits: Tensor, largest: Tensor, total: Tensor) -> None:
    # Add a tile to the sums of its rows; the logits are written over.
    new = torch.maximum(largest, logits.amax(1))
    # -inf less -inf is NaN: where nothing is possible yet, nothing is subtracted.
    shift = new.masked_fill(new == -torch.inf, 0.0)
    total.mul_(torch.exp((largest - shift).double())).add_(logits.sub_(shift[:, None]).exp_().sum(1))
    largest.copy_(new)


@cache
def _gpu_kernel(device: torch.device) -> _AddTile | None:
    # The same in one pass over memory, for which nothing waits: a quarter to a third more sentences a second on an H100.
    # None without Triton, which torch brings on Linux, or without a compiler for it.
    try:
        from lmgauge.models.network.torch.gpu_sums import add_exponentials

        one = torch.zeros((1, 1), device=device)
        add_exponentials(one, one[0].clone(), one[0].double())
    except (ImportError, RuntimeError, OSError, SubprocessError):
        return None
    return add_exponentials


def _as_slice(rows: Tensor) -> slice | Tensor:
    first = int(rows[0])
    return slice(first, first + len(rows)) if torch.equal(rows, torch.arange(first, first + len(rows)).to(rows)) else rows


@contextmanager
def _products_as_exact_as(dtype: torch.dtype) -> Iterator[None]:
    # Let a processor multiply float32 copies of bfloat16 values as the bfloat16 they are; sums and results are float32.
    if dtype != torch.bfloat16 or not torch.backends.mkldnn.is_available():
        yield
        return
    settings: Any = getattr(torch.backends.mkldnn, "matmul")  # noqa: B009 - not typed
    before = settings.fp32_precision
    settings.fp32_precision = "bf16"
    try:
        yield
    finally:
        settings.fp32_precision = before
