"""The bytes of a GGUF file, after ggml's specification (docs/gguf.md there): for the pages of the book, and for tests."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ALIGNMENT = 32


def write_file(path: Path, settings: Mapping[str, Any], tensors: Mapping[str, NDArray[np.float32]]) -> None:
    """Write a file of settings and float32 tensors."""
    parts, at = [header(settings, len(tensors))], 0
    for name, values in tensors.items():
        shape = values.shape[::-1]
        parts.append(_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, at))
        at += -(-values.nbytes // _ALIGNMENT) * _ALIGNMENT
    head = b"".join(parts)
    with path.open("wb") as file:
        file.write(head + bytes(-len(head) % _ALIGNMENT))
        for values in tensors.values():
            file.write(values.tobytes() + bytes(-values.nbytes % _ALIGNMENT))


def header(settings: Mapping[str, Any], tensors: int = 0, version: int = 3) -> bytes:
    """Return the beginning of a file: its settings."""
    parts = [struct.pack("<4sIQQ", b"GGUF", version, tensors, len(settings))]
    for name, value in settings.items():
        parts += [_string(name), _value(value)]
    return b"".join(parts)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _value(value: Any) -> bytes:
    if isinstance(value, list):
        # Lists of integers are signed in files, single ones are not.
        kind, body = (5 if isinstance(value[0], int) else _kind(value[0])), b"".join(_bare(entry) for entry in value)
        return struct.pack("<IIQ", 9, kind, len(value)) + body
    return struct.pack("<I", _kind(value)) + _bare(value)


def _kind(value: Any) -> int:
    return {bool: 7, int: 4, float: 6, str: 8}[type(value)]


def _bare(value: Any) -> bytes:
    if isinstance(value, str):
        return _string(value)
    return struct.pack({bool: "<?", int: "<I", float: "<f"}[type(value)], value)
