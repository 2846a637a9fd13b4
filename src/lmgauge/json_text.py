"""Results as JSON: full precision, stable keys. JSON has no infinities: they are the strings "inf" and "-inf"."""

from __future__ import annotations

import json
import math
import re
from typing import Any

# JSON itself escapes those below U+0020.
_CONTROLS = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def plain(value: Any) -> Any:
    """The value with infinities as strings, tuples as lists and keys as strings."""
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError("a result is never NaN")
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def to_json(value: Any) -> str:
    """JSON text of a result."""
    return safe(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def safe(text: str) -> str:
    """Return JSON text with the characters escaped that could drive a terminal: it says the same."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
