"""Passages as plain values that a page's script paints: columns of small numbers, packed."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.base.escaping import visible_on_page
from lmgauge.evaluation.passages import Spans, TopTokens
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import SEPARATOR, SPELLING

BITS_STEP = 0.05
"""Bits on a page are whole numbers of this."""
KL_STEP = 0.001
"""Bits of KL divergence are whole numbers of this: they are small."""
_COLUMN_STEPS = {"entropy": BITS_STEP, "kl": KL_STEP, SPELLING: BITS_STEP, SEPARATOR: BITS_STEP}
_INFINITE = 65535
_THOUSAND, _LEAST = 1000, -40.0  # of the most probable tokens; a natural logarithm of less is shown as this one
_KEPT = "\n"


def shown_text(text: str) -> str:
    """Return text of a passage as a page shows it: control characters as signs, line ends kept."""
    return visible_on_page(text, keep=_KEPT)


def packed(text: str, runs: Iterable[Spans]) -> list[dict[str, Any]]:
    """Return what the events of each run in a text cost, for the page's script."""
    # Each column is a string: the bytes of a number, a colon, and the numbers in base64, little-endian. `ends` are steps
    # from one end to the next in UTF-16 code units of `shown_text`, as scripts count; bits and entropies count steps of
    # `BITS_STEP`, divergences of `KL_STEP`, and 65535 is infinite or undefined; in other columns, and for entropies, the
    # largest number stands for none. The most probable tokens are numbers into the list `words`, event after event, with
    # minus their binary logarithms in thousandths.
    units = _units_before(text)
    return [_packed(spans, units) for spans in runs]


def _packed(spans: Spans, units: NDArray[np.int64]) -> dict[str, Any]:
    ends = units[np.minimum(spans.ends, len(units) - 1)]
    steps = _COLUMN_STEPS
    columns = {name: _steps(values, steps[name]) if name in steps else values for name, values in spans.columns.items()}
    return {
        "ends": _string(np.diff(ends, prepend=0)),
        "bits": _string(_steps(spans.bits, BITS_STEP)),
        "kinds": _string(spans.kinds),
        "columns": {name: _string(values) for name, values in columns.items()},
        "cuts": {name: _string(codes) for name, codes in spans.slices.items()},
    } | ({} if spans.tops is None else {"tops": _packed_tops(spans.tops)})


def _packed_tops(tops: TopTokens) -> dict[str, Any]:
    words, codes = np.unique(tops.tokens.astype(str), return_inverse=True)
    bits = nats_to_bits(-np.maximum(tops.logprobs, _LEAST))
    return {
        "each": tops.tokens.shape[1],
        "words": [visible_on_page(word) for word in words.tolist()],
        "ids": _string(codes.ravel()),
        "bits": _string(np.round(bits * _THOUSAND).ravel()),
    }


def _units_before(text: str) -> NDArray[np.int64]:
    # int64 [bytes + 1]: the UTF-16 units of the characters that end at or before each byte, as they are shown.
    encoded = text.encode("utf-8", "surrogatepass")
    sizes = np.array([len(c.encode("utf-8", "surrogatepass")) for c in text], np.int64)
    shown = np.array([1 + (ord(visible_on_page(c, keep=_KEPT)) > 0xFFFF) for c in text], np.int64)
    before = np.zeros(len(encoded) + 1, np.int64)
    before[np.cumsum(sizes)] = shown
    units: NDArray[np.int64] = np.cumsum(before)
    return units


def _steps(bits: NDArray[np.number[Any]], step: float) -> NDArray[np.int64]:
    finite = np.where(np.isfinite(bits), bits, 0.0)
    steps = np.minimum(np.round(finite / step), _INFINITE - 1)
    return np.where(np.isfinite(bits), steps, _INFINITE).astype(np.int64)


def _string(values: Iterable[Any] | NDArray[np.number[Any]]) -> str:
    numbers = np.asarray(values, np.int64)
    highest = int(numbers.max(initial=0))
    size = 1 if highest < 255 else 2 if highest <= _INFINITE else 4
    none = (1 << 8 * size) - 1
    column = np.where(numbers < 0, none, np.minimum(numbers, none)).astype(f"<u{size}")
    return f"{size}:{base64.b64encode(column.tobytes()).decode('ascii')}"
