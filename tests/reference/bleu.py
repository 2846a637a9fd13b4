"""Slow twins of `_kernels/ngram_matches.cpp` and `metrics/bleu.py`: counters of tuples, and the formula row by row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence


def ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def statistics(hypothesis: str, references: Sequence[str], order: int, length: str = "closest") -> list[int]:
    """Length, reference length, matches and n-grams of orders 1 to `order` of one segment (Papineni et al. 2002)."""
    words, others = hypothesis.split(), [text.split() for text in references]
    lengths = sorted(len(other) for other in others)
    if length == "closest":
        of_references = min(lengths, key=lambda n: abs(n - len(words)))
    elif length == "shortest":
        of_references = lengths[0]
    else:
        of_references = sum(lengths) * (720720 // len(lengths))
    matches, totals = [], []
    for n in range(1, order + 1):
        found = ngrams(words, n)
        most = Counter[tuple[str, ...]]()
        for other in others:
            most |= ngrams(other, n)
        matches.append(sum((found & most).values()))
        totals.append(sum(found.values()))
    return [len(words), of_references, *matches, *totals]


def score(row: Sequence[float], smoothing: str, value: float, effective: bool) -> float:
    """BLEU as a ratio, by logarithms; words in the same order as in `metrics.bleu.bleu_scores`."""
    order = len(row) // 2 - 1
    hypothesis, reference, correct, total = row[0], row[1], list(row[2 : 2 + order]), list(row[2 + order :])
    if not any(correct):
        return 0.0
    logs, used, halvings = 0.0, 0, 0
    for n in range(order):
        added = value if smoothing == "add-k" and n else 0
        hits, possible = correct[n] + added, total[n] + added
        if possible == 0:
            if not effective:
                logs = -math.inf
            break
        if hits == 0 and smoothing == "exp":
            halvings += 1
            hits = 2.0**-halvings
        elif hits == 0 and smoothing == "floor":
            hits = value
        used += 1
        logs += math.log(hits / possible) if hits else -math.inf
    if not used:
        return 0.0
    penalty = 1.0 if hypothesis >= reference else math.exp(1 - reference / hypothesis)
    return penalty * math.exp(logs / used)
