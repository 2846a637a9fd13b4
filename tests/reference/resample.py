"""Slow twins of `_kernels/resample.cpp` and of what `evaluation/paired.py` makes of it, in plain Python numbers."""

from __future__ import annotations

from collections.abc import Sequence

MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
LANES = 8


def mix(z: int) -> int:
    """The finisher of SplitMix64 (Steele, Lea & Flood 2014; the constants are David Stafford's variant 13)."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


class Stream:
    """Random numbers of one resample: SplitMix64 from a state made of seed and resample."""

    def __init__(self, seed: int, resample: int) -> None:
        self.state = mix(seed) ^ mix(~resample & MASK)

    def next(self) -> int:
        """64 random bits."""
        self.state = (self.state + GAMMA) & MASK
        return mix(self.state)


def sign_flip_sums(values: Sequence[float], resamples: int, seed: int) -> list[float]:
    """Sums with tossed signs: the bits of a number for 64 values, value i added to lane i % 8, lanes added in order."""
    found = []
    for r in range(resamples):
        stream, lanes, signs = Stream(seed, r), [0.0] * LANES, 0
        for i, value in enumerate(values):
            if i % 64 == 0:
                signs = stream.next()
            lanes[i % LANES] += -value if signs >> i % 64 & 1 else value
        total = 0.0
        for lane in lanes:
            total += lane
        found.append(total)
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm (1979) as R's `p.adjust` writes it: pmin(1, cummax((n + 1L - i) * p[o]))[ro] with o = order(p), i = 1:n."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    scaled = [(len(p_values) - rank) * p_values[i] for rank, i in enumerate(order)]
    adjusted = [0.0] * len(p_values)
    for rank, i in enumerate(order):
        adjusted[i] = min(1.0, max(scaled[: rank + 1]))
    return adjusted
