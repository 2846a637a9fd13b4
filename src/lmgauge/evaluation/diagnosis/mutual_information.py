"""How far back a text still tells what comes, and how far back the text a model writes does.

The mutual information of two tokens d apart falls slowly in natural text, like a power of d, and fast in the text of a
model with a short memory (Lin & Tegmark 2017, "Critical behavior in physics and probabilistic formal languages"; Shen 2019,
"Mutual information scaling and expressive power of sequence models").

Estimates from counts are too high, the more so the more pairs of types there are. So all but the most frequent types are one
class: as many stay apart as leave some twenty observations to each cell of the table of pairs. Merging can only lose
information (data-processing inequality), so that the curve is a lower bound. What is left of the bias is that of the same
tokens in random order, where nothing tells anything: it is taken off at each distance, and so a value may fall below 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.choices import DEFAULT_SEED
from lmgauge.information import mutual_information_by_distance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DISTANCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
PARTS = 16
LARGEST = 1 << 21
FEWEST_TOKENS = 500
_FEWEST_SAMPLED, _MOST_SAMPLED = 5000, 200_000
_ENTRIES_LOOKED_AT = 1_000_000_000
_PER_CELL = 20
_FEWEST_CLASSES = 2


@dataclass(frozen=True)
class InformationCurve:
    """Mutual information of tokens at several distances, in bits, of a text and of text sampled from a model."""

    distances: tuple[int, ...]
    text_bits: tuple[float, ...]  # of the text, at each distance, less what its tokens give in random order
    sampled_bits: tuple[float, ...] | None  # the same of as many sampled tokens; None where nothing was sampled
    chance_bits: float  # twice the root mean square of what is left where there is nothing to find, by another random order
    tokens: int
    stretches: int  # consecutive parts of the text that they come from
    classes: int  # most frequent types told apart, plus one for all others where there are any
    types: int  # distinct tokens of the text looked at


def default_sample_tokens(vocabulary: int) -> int:
    """Return how many tokens to sample from a model: what takes seconds, not minutes."""
    return max(_FEWEST_SAMPLED, min(_MOST_SAMPLED, _ENTRIES_LOOKED_AT // max(1, vocabulary)))


def parts_of(events: int, wanted: int) -> list[tuple[int, int]]:
    """Return which rows to look at: all, or spans of equal length spread evenly over the table."""
    # parts_of(10, 20) -> [(0, 10)]
    if wanted >= events:
        return [(0, events)] if events else []
    length = max(1, wanted // PARTS)
    count = min(PARTS, max(1, wanted // length))
    return [(begin, begin + length) for begin in ((events - length) * i // max(1, count - 1) for i in range(count))]


class TokenParts:
    """Collects the tokens of some rows of a table, batch by batch, as numbers that are the same for equal strings."""

    def __init__(self, parts: list[tuple[int, int]]) -> None:
        self._bounds = parts
        self._parts: list[list[Ints]] = [[] for _ in parts]
        self._numbers: dict[str, int] = {}
        self._seen = 0

    def add(self, ids: NDArray[np.uint32], strings: list[str]) -> None:
        """Add rows of the table."""
        # ids: uint32 [n], of tokens in `strings`.
        begin, end = self._seen, self._seen + len(ids)
        self._seen = end
        for (first, last), parts in zip(self._bounds, self._parts, strict=True):
            chosen = ids[max(first - begin, 0) : max(last - begin, 0)] if first < end and last > begin else ids[:0]
            if len(chosen):
                distinct, inverse = np.unique(chosen, return_inverse=True)
                parts.append(self.numbers([strings[i] for i in distinct.tolist()])[inverse])

    def numbers(self, tokens: list[str]) -> Ints:
        """Return the numbers of token strings; new strings get new numbers."""
        # -> int64 [n].
        # TokenParts([]).numbers(["a", "b", "a"]) -> [0, 1, 0]
        return np.array([self._numbers.setdefault(token, len(self._numbers)) for token in tokens], np.int64)

    def finish(self) -> list[Ints]:
        """Return the tokens of each part, int64 [n]."""
        return [np.concatenate(parts) if parts else np.zeros(0, np.int64) for parts in self._parts]


def information_curve(text: list[Ints], sampled: list[Ints] | None, *, seed: int = DEFAULT_SEED) -> InformationCurve | None:
    """Return the curve of a text, and of sampled text beside it."""
    # text: int64 [tokens] of each span of the text; sampled: the same of sampled text, with the same numbers for the same
    # tokens; cut to the size of the text or the other way round, so that both estimates have the same bias.
    # information_curve([np.zeros(10, np.int64)], None) is None  # too few tokens -> True
    if sampled is not None:
        text, sampled = _alike(text, sampled)
    lengths = np.array([len(part) for part in text], np.int64)
    longest, tokens = int(lengths.max(initial=0)), int(lengths.sum())
    # A distance must leave most of each part to be paired.
    distances = [d for d in DISTANCES if 2 * d < longest]
    if not distances or tokens < FEWEST_TOKENS:
        return None
    ids = np.concatenate(text)
    classes = _classes_of(ids, tokens, 0 if sampled is None else max(int(part.max(initial=0)) for part in sampled))
    generator = np.random.default_rng(seed)
    bits = _bits_beyond_order(classes[ids], distances, lengths, generator)
    chance = _bits_beyond_order(generator.permutation(classes[ids]), distances, lengths, generator)
    others = None
    if sampled is not None:
        others = _bits_beyond_order(classes[np.concatenate(sampled)], distances, lengths, generator)
    return InformationCurve(
        distances=tuple(distances),
        text_bits=tuple(bits.tolist()),
        sampled_bits=None if others is None else tuple(others.tolist()),
        chance_bits=2 * math.sqrt(float(np.square(chance).mean())),
        tokens=tokens,
        stretches=len(text),
        classes=len(np.unique(classes[ids])),
        types=len(np.unique(ids)),
    )


def _alike(text: list[Ints], sampled: list[Ints]) -> tuple[list[Ints], list[Ints]]:
    pairs = [(a[: len(b)], b[: len(a)]) for a, b in zip(text, sampled, strict=False)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _classes_of(ids: Ints, tokens: int, largest: int) -> Ints:
    # Class of each token number: the most frequent have one of their own, ties by number; the rest share 0.
    counts = np.bincount(ids, minlength=largest + 1)
    most = max(_FEWEST_CLASSES, math.isqrt(tokens // _PER_CELL))
    classes = np.zeros(len(counts), np.int64)
    frequent = np.argsort(-counts, kind="stable")[:most]
    classes[frequent] = np.arange(1, len(frequent) + 1)
    classes[counts == 0] = 0
    return classes


def _bits_beyond_order(classes: Ints, distances: list[int], lengths: Ints, generator: np.random.Generator) -> Floats:
    # Bits that tokens tell of each other at each distance, less those in random order, float64 [distances].
    bits, shuffled = (
        mutual_information_by_distance(ids, distances, unit="bits", segment_lengths=lengths)
        for ids in (classes, generator.permutation(classes))
    )
    return bits - shuffled
