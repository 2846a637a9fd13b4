"""Whole distributions the slow and obvious way: one question an event, sums of Python numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.scores import ScoreBatch
from lmgauge.text.vocabulary import BOS


def slow_distributions(model: Any, batches: Iterable[ScoreBatch]) -> list[tuple[list[float], int, float]]:
    """Return of every event the log-probabilities of all tokens, the token that came, and the log-probability scored."""
    found: list[tuple[list[float], int, float]] = []
    context = [BOS]
    for batch in batches:
        rows = zip(batch.token_ids.tolist(), batch.logprob.tolist(), strict=True)
        for count in batch.segment_events.tolist():
            if not model.context_policy.runs_on:
                context = [BOS]
            for _ in range(count):
                token, scored = next(rows)
                logprob = model.log_distribution(np.array(context, np.uint32))
                found.append((np.asarray(logprob, np.float64).tolist(), token, scored))
                context.append(token)
    return found


def entropy(logprob: list[float]) -> float:
    """Minus the mean of ln p."""
    return -mean(logprob)


def mean(logprob: list[float]) -> float:
    """The mean of ln p under p itself, nats."""
    return math.fsum(math.exp(value) * value for value in logprob if value > -math.inf)


def variance(logprob: list[float]) -> float:
    """The variance of ln p under p itself."""
    center = mean(logprob)
    return math.fsum(math.exp(value) * (value - center) ** 2 for value in logprob if value > -math.inf)


def mass(logprob: list[float], ids: Iterable[int]) -> float:
    """The probability of some tokens."""
    return math.fsum(math.exp(logprob[i]) for i in ids)


def ranks(logprob: list[float], token: int, tolerance: float) -> tuple[int, int]:
    """The lowest and the highest rank that a token may have, where values so close may stand in any order."""
    above = [value - logprob[token] if value > logprob[token] else 0.0 for value in logprob]
    beside = [i for i, value in enumerate(logprob) if i != token and value >= logprob[token] - tolerance]
    return 1 + sum(difference > tolerance for difference in above), 1 + len(beside)


def joined(parts: Iterable[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Columns of blocks, one after another."""
    parts = list(parts)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
