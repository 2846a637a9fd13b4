"""JSON: results with full precision and stable keys, and the one reader of what comes from outside."""

# JSON has no infinities: in results they are the strings "inf" and "-inf".

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

# JSON itself escapes those below U+0020. A lone surrogate, as file names and JSON itself can have, has no UTF-8.
_CONTROLS = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def plain(value: Any) -> Any:
    """Return a value with infinities as strings, tuples as lists and keys as strings."""
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
    """Return the JSON text of a result."""
    return safe(json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False))


def from_json(text: str | bytes, *, own: bool = False) -> Any:
    """Return what a JSON text says, where it says one thing."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    try:
        return (_OWN if own else _ANY).decode(text)
    except RecursionError as error:
        raise ValueError("its brackets are too deep") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        times = Counter(key for key, _ in pairs)
        raise ValueError(f"the key {max(times, key=times.__getitem__)!r} occurs twice in one object")
    return content


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _whole_number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a whole number has {len(digits):,} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:20]} is out of range")
    return number


_MOST_DIGITS = 300
_ANY = json.JSONDecoder(object_pairs_hook=_object)  # made once: making one takes longer than reading a short record
_OWN = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole_number
)


def safe(text: str) -> str:
    """Return JSON text with the characters escaped that could drive a terminal or have no UTF-8: it says the same."""
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
