"""Results as JSON: full precision, stable keys. JSON has no infinities: they are the strings "inf" and "-inf"."""

from __future__ import annotations

import json
import math
import re
from typing import Any

# JSON itself escapes those below U+0020. A lone surrogate, as file names and JSON itself can have, has no UTF-8.
_CONTROLS = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def plain(value: Any) -> Any:
    """Return a value with infinities as strings, tuples as lists and keys as strings.

    Raises:
        ValueError: a number is NaN.

    Example:
        >>> plain({1: (0.5, float("inf"))})
        {'1': [0.5, 'inf']}
    """
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError("a result is never NaN")
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def to_json(value: Any, indent: int | None = 2) -> str:
    """Return the JSON text of a result.

    Args:
        value: the result, of plain values.
        indent: spaces for each level; None for one line, as a row of JSONL.

    Raises:
        ValueError: a number is NaN.

    Example:
        >>> to_json({"nats": float("inf")}, indent=None)
        '{"nats": "inf"}'
    """
    return safe(json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False))


def safe(text: str) -> str:
    """Return JSON text with the characters escaped that could drive a terminal or have no UTF-8: it says the same."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
