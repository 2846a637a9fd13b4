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
    fixed = max(
        sizes[i] / size + (x * x / sizes[i] / square if square else 0.0) for x, i in zip(beside, sampled, strict=True)
    )
    share = max(0.0, 1.0 - 4.0 * unexplained / (gain * (len(sampled) - 2))) if gain and fixed < 1.0 - 1e-6 else 0.0
    estimate = rate + share * slope * (math.fsum(helper) / math.fsum(sizes) - helped)
    left = [y - share * slope * x for x, y in zip(beside, above, strict=True)]
    return estimate * math.fsum(sizes), left, share > 0.0


def error(values: Sequence[float], sizes: Sequence[float], helper: Sequence[float], sampled: Sequence[int]) -> float:
    """Return the error of drawing, per size, of the estimate with the whole slope: each document is left out once."""

    def estimate(kept: Sequence[int]) -> float:
        own = [sizes[sampled[j]] for j in kept]
        rate = math.fsum(values[j] for j in kept) / math.fsum(own)
        helped = math.fsum(helper[sampled[j]] for j in kept) / math.fsum(own)
        beside = [helper[sampled[j]] - helped * sizes[sampled[j]] for j in kept]
        above = [values[j] - rate * sizes[sampled[j]] for j in kept]
        square = math.fsum(x * x / z for x, z in zip(beside, own, strict=True))
        slope = math.fsum(x * y / z for x, y, z in zip(beside, above, own, strict=True)) / square
        return rate + slope * (math.fsum(helper) / math.fsum(sizes) - helped)

    drawn = len(sampled)
    each = list(range(drawn))
    whole = estimate(each)
    falls = [whole - estimate([j for j in each if j != i]) for i in each]
    return math.sqrt((1 - drawn / len(sizes)) * (drawn - 1) / drawn * math.fsum(fall * fall for fall in falls))
