"""Slow twin of `_kernels/chrf.cpp`: n-grams as tuples, matches as the intersection of two multisets."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence

EPSILON = 1e-16


def ngrams(symbols: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """How often each n-gram occurs."""
    return Counter(tuple(symbols[i : i + n]) for i in range(len(symbols) - n + 1))


def words(text: str) -> list[str]:
    """The words of chrF++: of one longer than a character the last is cut off if it is punctuation, else the first."""
    found: list[str] = []
    for word in text.split():
        if len(word) > 1 and word[-1] in string.punctuation:
            found += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in string.punctuation:
            found += [word[0], word[1:]]
        else:
            found.append(word)
    return found


def counts(hypothesis: Sequence[str], reference: Sequence[str], orders: int) -> list[int]:
    """[hypothesis, reference, matches] of each order."""
    row: list[int] = []
    for n in range(1, orders + 1):
        mine, theirs = ngrams(hypothesis, n), ngrams(reference, n)
        row += [mine.total() if theirs else 0, theirs.total(), (mine & theirs).total()]
    return row


def f_score(row: Sequence[int], beta: float, eps_smoothing: bool) -> float:
    """The score of one row of counts, 0 to 100."""
    factor = beta**2
    orders = [row[at : at + 3] for at in range(0, len(row), 3)]
    if eps_smoothing:
        total = 0.0
        for mine, theirs, matches in orders:
            precision = matches / mine if mine else EPSILON
            recall = matches / theirs if theirs else EPSILON
            below = factor * precision + recall
            total += (1 + factor) * precision * recall / below if below > 0 else EPSILON
        return 100 * total / len(orders)
    both = [(matches / mine, matches / theirs) for mine, theirs, matches in orders if mine and theirs]
    precision = recall = 0.0
    for p, r in both:
        precision += p
        recall += r
    if precision == 0:
        return 0.0
    precision /= len(both)
    recall /= len(both)
    return 100 * ((1 + factor) * precision * recall / (factor * precision + recall))


def statistics(
    hypothesis: str,
    references: Sequence[str],
    *,
    char_order: int = 6,
    word_order: int = 0,
    beta: float = 2,
    whitespace: bool = False,
    eps_smoothing: bool = False,
) -> list[int]:
    """The row of the first of the references with the best score."""

    def characters(text: str) -> str:
        return text if whitespace else "".join(text.split())

    rows = [
        counts(characters(hypothesis), characters(reference), char_order)
        + counts(words(hypothesis), words(reference), word_order)
        for reference in references
    ]
    return max(rows, key=lambda row: f_score(row, beta, eps_smoothing))
