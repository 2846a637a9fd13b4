"""The one place that decides in which number format a computation runs here: bfloat16, or float32 that is float32."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch

from lmgauge.models.network.torch.allocator import out_of_memory

T = TypeVar("T")

FLOAT32_INSTEAD = "computed in float32 instead of bfloat16: this processor has no bfloat16 products that torch can use"


def in_bfloat16(compute: Callable[[], T], device: torch.device) -> T | None:
    """Return the result of a computation in bfloat16, or None if it has to be done in float32."""
    if device.type == "cpu" and not has_bfloat16_products():
        return None
    try:
        return compute()
    except RuntimeError as error:  # "could not create a primitive descriptor ...": a layer that oneDNN does not have
        if device.type != "cpu" or out_of_memory(error):
            raise
        return None


@cache
def has_bfloat16_products() -> bool:
    """Return True if the processor multiplies bfloat16 and torch's library of products (oneDNN) uses that."""
    # Elsewhere torch's own loops multiply: on AVX2 a Transformer took 20 times as long as in float32. AVX-512 without
    # bfloat16 instructions emulates them, which is slower than float32, too. The processor is asked and not timed, so that
    # the answer is the same each time: it decides numbers.
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    if not torch.backends.mkldnn.is_available() or supported is None or not supported():
        return False
    emulates = platform.machine().lower() in ("x86_64", "amd64")
    return not emulates or torch.cpu._is_avx512_bf16_supported()


@contextmanager
def exact_float32(device: torch.device) -> Iterator[None]:
    """Keep all bits of float32 in the block: a GPU's recurrent and convolution kernels would round to 19 without asking."""
    library: Any = torch.backends.cudnn  # not typed
    settings = [library.rnn, library.conv] if device.type == "cuda" else []
    before = [kind.fp32_precision for kind in settings]
    for kind in settings:
        kind.fp32_precision = "ieee"
    try:
        yield
    finally:
        for kind, precision in zip(settings, before, strict=True):
            kind.fp32_precision = precision
