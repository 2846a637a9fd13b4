"""Keys and values as a cache keeps them in few bits: each token's are rounded when they come, and only then attended to."""

# So do llama.cpp and vLLM, which write the keys and values of all that they are shown into the cache and read them there.
# As each token's are rounded by themselves, it is all one how many tokens are shown at a time.

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from lmgauge.base.choices import CacheFormat
from lmgauge.base.errors import UsageError

_FLOATS: dict[CacheFormat, torch.dtype | None] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
    "q8_0": None,
    "q4_0": None,
}
_BLOCK = 32  # numbers that share a scale in q8_0 and q4_0, as in ggml


class RoundingCache(DynamicCache):  # type: ignore[misc, unused-ignore]
    """Keys and values of a network, held in its own number format, with the values of another one."""

    def __init__(self, config: Any, form: CacheFormat) -> None:
        super().__init__(config=config)
        self._form = form

    def update(self, key_states: Tensor, value_states: Tensor, *rest: Any, **more: Any) -> Any:
        """Add keys and values, [batch, heads, tokens, width], and return those of all tokens so far."""
        return super().update(rounded(key_states, self._form), rounded(value_states, self._form), *rest, **more)


def rounded(values: Tensor, form: CacheFormat) -> Tensor:
    """Return the nearest values that a format has, in the dtype they came in."""
    # rounded(torch.tensor([1.06]), "fp8_e4m3") -> [1.125]; of fp8, what is too large becomes its largest value.
    dtype = _FLOATS[form]
    if dtype is not None:
        most = torch.finfo(dtype).max
        return (values.clamp(-most, most) if dtype.itemsize == 1 else values).to(dtype).to(values.dtype)
    if values.shape[-1] % _BLOCK:
        raise UsageError(
            f"kv-cache {form}: cuts keys and values into blocks of {_BLOCK}, and this network's have "
            f"{values.shape[-1]} numbers a head; choose another format"
        )
    blocks = values.float().unflatten(-1, (-1, _BLOCK))
    if form == "q8_0":
        scale, zero, most = blocks.abs().amax(-1, keepdim=True) / 127, 0, 127
    else:  # the value furthest from zero becomes -8, so that none is cut off
        scale, zero, most = blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True)) / -8, 8, 15
    steps = (blocks / scale + (zero + 0.5)).floor().clamp(max=most) - zero
    read: Tensor = steps.nan_to_num() * scale.half().float()
    return read.flatten(-2).to(values.dtype)
