"""Slow twin of the adjustment of p-values in `numerics/significance.py`."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm (1979) as R's `p.adjust` writes it: pmin(1, cummax((n + 1L - i) * p[o]))[ro] with o = order(p), i = 1:n."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    scaled = [(len(p_values) - rank) * p_values[i] for rank, i in enumerate(order)]
    adjusted = [0.0] * len(p_values)
    for rank, i in enumerate(order):
        adjusted[i] = min(1.0, max(scaled[: rank + 1]))
    return adjusted
