"""Figures of two lists of log-probabilities, and the test against a floor, one number at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product


def figures(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], band: tuple[float, float]) -> dict[str, float]:
    """Return the figures of `PairFigures` by name, of segments of log-probabilities."""
    pairs = [(x, y) for one, other in zip(a, b, strict=True) for x, y in zip(one, other, strict=True)]
    finite = [(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]
    d = [y - x for x, y in finite]
    mean = sum(x for x, _ in finite) / len(finite)

    def outside(x: float, y: float) -> bool:
        if x == y == -math.inf:
            return False
        return not (math.isfinite(x) and math.isfinite(y) and band[0] <= math.exp(y - x) <= band[1])

    ratios = [math.exp(sum(y - x for x, y in zip(*one, strict=True))) for one in zip(a, b, strict=True)]
    far = sum(not band[0] <= ratio <= band[1] for ratio in ratios)
    return {
        "mean_difference": sum(d) / len(d),
        "mean_size": sum(map(abs, d)) / len(d),
        "rms": math.sqrt(sum(one * one for one in d) / len(d)),
        "share_outside": sum(outside(x, y) for x, y in pairs) / len(pairs),
        "k1": -sum(d) / len(d),
        "k3": sum(math.exp(one) - 1 - one for one in d) / len(d),
        "slope": sum((y - x) * (x - mean) for x, y in finite) / sum((x - mean) ** 2 for x, _ in finite),
        "perplexity_ratio": math.exp(-sum(d) / len(d)),
        "sequences_outside": far / len(ratios),
        "effective_sample_size": sum(ratios) ** 2 / sum(ratio**2 for ratio in ratios) / len(ratios),
    }


def swap_p_values(differences: Sequence[Sequence[float]]) -> list[float]:
    """Return the p-values of all swaps of units, adjusted by the largest sum of each."""
    scales = [math.sqrt(sum(one**2 for one in column)) or 1.0 for column in zip(*differences, strict=True)]
    swaps = []
    for signs in product((1, -1), repeat=len(differences)):
        sums = (sum(sign * row[k] for sign, row in zip(signs, differences, strict=True)) for k in range(len(scales)))
        swaps.append([one / scale for one, scale in zip(sums, scales, strict=True)])
    return [sum(max(swap) >= own - 1e-9 for swap in swaps) / len(swaps) for own in swaps[0]]
