"""The estimate of a total from a sample of documents, number by number."""

from __future__ import annotations

import math
from collections.abc import Sequence


def total(
    values: Sequence[float], sizes: Sequence[float], helper: Sequence[float], sampled: Sequence[int]
) -> tuple[float, list[float], bool]:
    """Return the total, what is left of each sampled document, and whether the helper counts; of one helper."""
    size = math.fsum(sizes[i] for i in sampled)
    rate = math.fsum(values) / size
    helped = math.fsum(helper[i] for i in sampled) / size
    above = [value - rate * sizes[i] for value, i in zip(values, sampled, strict=True)]
    beside = [helper[i] - helped * sizes[i] for i in sampled]
    square = math.fsum(x * x / sizes[i] for x, i in zip(beside, sampled, strict=True))
    product = math.fsum(x * y / sizes[i] for x, y, i in zip(beside, above, sampled, strict=True))
    slope = product / square if square else 0.0
    unexplained = math.fsum((y - slope * x) ** 2 / sizes[i] for x, y, i in zip(beside, above, sampled, strict=True))
    gain = slope * slope * square
    share = max(0.0, 1.0 - 4.0 * unexplained / (gain * (len(sampled) - 2))) if gain else 0.0
    estimate = rate + share * slope * (math.fsum(helper) / math.fsum(sizes) - helped)
    left = [y - share * slope * x for x, y in zip(beside, above, strict=True)]
    return estimate * math.fsum(sizes), left, share > 0.0


def error(left: Sequence[float], sizes: Sequence[float], sampled: Sequence[int], *, helps: bool) -> float:
    """Return the error of the total per size, of drawing."""
    drawn, size = len(sampled), math.fsum(sizes[i] for i in sampled)
    variance = drawn / (drawn - 1 - helps) * math.fsum(x * x for x in left) / size**2
    return math.sqrt(variance * (1 - drawn / len(sizes)))
