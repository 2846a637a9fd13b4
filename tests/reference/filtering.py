"""Documents judged one by one, and percentiles by counting: slow and obvious."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple


class Document(NamedTuple):
    bytes: int
    perplexity: tuple[float, ...]
    tokens: tuple[int, ...]
    unseen: tuple[float, ...]


def percentile(values: list[float], percent: float) -> float:
    """The lowest of the values that at least `percent` per cent of them do not exceed."""
    needed = Fraction(str(percent)) * len(values)
    return next(x for x in sorted(values) if 100 * sum(value <= x for value in values) >= needed)


def first_reason(
    document: Document, rules: dict[str, float | None], low: list[float], high: list[float], scored: bool
) -> str:
    """The first rule that a document breaks with any model; `low` and `high` are the percentiles of its group."""
    checks = [
        ("too short", lambda k: document.bytes < bound("min_bytes", 0)),
        ("too long", lambda k: document.bytes > bound("max_bytes", math.inf)),
        ("nothing to score", lambda k: scored and math.isnan(document.perplexity[k])),
        ("too few tokens", lambda k: document.tokens[k] < bound("min_tokens", 0)),
        ("unseen words", lambda k: document.unseen[k] > bound("max_unseen", 1)),
        ("perplexity below", lambda k: document.perplexity[k] < bound("min_perplexity", 0)),
        ("perplexity above", lambda k: document.perplexity[k] > bound("max_perplexity", math.inf)),
        ("percentile below", lambda k: document.perplexity[k] <= low[k]),
        ("percentile above", lambda k: document.perplexity[k] > high[k]),
    ]

    def bound(name: str, otherwise: float) -> float:
        value = rules.get(name)
        return otherwise if value is None else value

    for reason, fails in checks:
        if any(fails(k) for k in range(len(document.perplexity))):
            return reason
    return "stays"
