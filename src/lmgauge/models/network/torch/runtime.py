"""What of this machine torch computes with: number formats, memory that stays with the process, threads after a fork."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch

T = TypeVar("T")

# What runs in bfloat16, and what in float32 instead, is decided here alone.
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


# -- memory and threads -------------------------------------------------------------------------------------------------

# Of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_DEFAULT_THRESHOLD = 128 << 10
_LARGEST = 1 << 30
_process = os.getpid()


@contextmanager
def kept_pages() -> Iterator[None]:
    """Keep freed arrays in the process during a computation, instead of handing them back page by page."""
    # Measured: 3 to 6 % of scoring a Transformer. Where the C library is not glibc, nothing changes.
    choose = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if choose is None:
        yield
        return
    choose(_MMAP_THRESHOLD, _LARGEST)
    choose(_TRIM_THRESHOLD, _LARGEST)
    try:
        yield
    finally:
        choose(_MMAP_THRESHOLD, _DEFAULT_THRESHOLD)
        choose(_TRIM_THRESHOLD, _DEFAULT_THRESHOLD)


def settle_after_fork() -> None:
    """Let torch compute with one thread in a forked child, as its data loaders do: those of the parent are not there."""
    # OpenMP would wait for them without end.
    if os.getpid() != _process and torch.get_num_threads() > 1:
        torch.set_num_threads(1)


def out_of_memory(error: BaseException) -> bool:
    """Return True if an error says that memory ran out, in the words of any allocator."""
    text = str(error).lower()
    phrases = ("out of memory", "can't allocate", "not enough memory", "alloc_failed")
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(words in text for words in phrases)
