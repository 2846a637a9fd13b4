"""Class-based models by enumeration: every way to read a sentence as words and classes, one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product

Parses = Mapping[str, Sequence[tuple[str, float]]]
"""Of each word its tokens, and p(word | token)."""


def prefix_probability(words: Sequence[str], parses: Parses, p: Callable[[str, tuple[str, ...]], float]) -> float:
    """The probability that a sentence begins with these words; `p` is that of a token after those before it."""
    total = 0.0
    for reading in product(*(parses[word] for word in words)):
        tokens = tuple(token for token, _ in reading)
        product_so_far = 1.0
        for i, (token, share) in enumerate(reading):
            product_so_far *= p(token, ("<s>", *tokens[:i])) * share
        total += product_so_far
    return total


def conditional(words: Sequence[str], parses: Parses, p: Callable[[str, tuple[str, ...]], float]) -> list[float]:
    """Of each word, its probability given those before it."""
    prefixes = [prefix_probability(words[:i], parses, p) for i in range(len(words) + 1)]
    return [after / before if before else 0.0 for before, after in pairwise(prefixes)]
