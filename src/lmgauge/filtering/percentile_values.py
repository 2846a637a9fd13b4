"""The percentiles that are learned, and those of one group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lmgauge.errors import UsageError

PERCENTS = (0.0, 0.1, 0.5, *(float(percent) for percent in range(1, 100)), 99.5, 99.9, 100.0)
"""The percentiles that are learned."""

PLACES = {percent: place for place, percent in enumerate(PERCENTS)}
"""Percentile -> its place in `PERCENTS`."""


def percent_name(percent: float) -> str:
    """Return how a percentile is written."""
    return f"p{percent:g}"


def check_percent(percent: float) -> float:
    """Return a percentage if it is one of those that are learned."""
    if percent not in PLACES:
        raise UsageError(
            f"{percent_name(percent)}: percentiles are p0, p1 to p100, and p0.1, p0.5, p99.5 and p99.9; choose one of them"
        )
    return float(percent)


@dataclass(frozen=True)
class ModelPercentiles:
    """Percentiles of one model's perplexity in one group."""

    scored: int  # documents of the sample that have a perplexity
    values: tuple[float, ...]  # perplexity at each of `PERCENTS`, rising; empty where too few documents have one
    # low, high: ends of the 95 % interval of each; None where the sample does not bound it. Where the sample is all
    # documents, both are the value.
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True)
class GroupPercentiles:
    """Percentiles of the documents of one group."""

    documents: int  # documents of the group that there were
    sampled: int
    models: Mapping[str, ModelPercentiles]  # by the models' names, in the order of the models
