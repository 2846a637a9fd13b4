"""Sums of exponentials over rows of logits on a GPU, in one pass over memory; Triton compiles the kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_COLUMNS = 4096  # of a row that are looked at together


def add_exponentials(logits: Tensor, largest: Tensor, total: Tensor) -> None:
    """Add a tile of logits to the sums of its rows (Milakov & Gimelshein 2018)."""
    # logits: float32 [n, columns]; written over: largest, float32 [n], the largest logits so far (-inf before the first
    # tile), and total, float64 [n], the sums of the exponentials of all so far less the largest.
    with torch.cuda.device_of(logits):
        _kernel[(len(logits),)](logits, largest, total, logits.shape[1], block=_COLUMNS)


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(logits, largest, total, columns, block: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads types
    row = tl.program_id(0).to(tl.int64)
    top = tl.load(largest + row)
    amount = tl.load(total + row)
    places = tl.arange(0, block)
    for begin in range(0, columns, block):
        values = tl.load(logits + row * columns + begin + places, mask=begin + places < columns, other=float("-inf"))
        new = tl.maximum(top, tl.max(values, 0))
        shift = tl.where(new == float("-inf"), 0.0, new)  # -inf less -inf is NaN
        amount = amount * tl.exp(top - shift).to(tl.float64) + tl.sum(tl.exp(values - shift), 0).to(tl.float64)
        top = new
    tl.store(largest + row, top)
    tl.store(total + row, amount)
