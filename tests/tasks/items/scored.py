"""Scores of items as tests make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lmgauge.tasks.items.table import ItemScores, ItemsOrigin


def scored(
    model: str,
    scores: Sequence[float] | Sequence[Sequence[float]],
    *,
    items: Sequence[str] | None = None,
    subsets: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    prompts: Sequence[str] | None = None,
    contents: Sequence[str] | None = None,
    **origin: Any,
) -> ItemScores:
    """A run with a score, or a row of scores, for each item; strings are of items."""
    values = np.array(scores, float)
    values = values.reshape(len(values), -1)
    count, samples = values.shape

    def of_rows(strings: Sequence[str] | None) -> list[str]:
        return [string for string in strings or [""] * count for _ in range(samples)]

    about = {"score": "acc", "program": "columns"} | origin
    names = of_rows([str(i) for i in range(count)] if items is None else items)
    numbers = np.tile(np.arange(samples), count)
    strings = (of_rows(each) for each in (subsets, clusters, prompts, contents))
    return ItemScores(ItemsOrigin(model, **about), names, values.ravel(), numbers, *strings)


def solved(both: int, first: int, second: int, neither: int) -> tuple[list[int], list[int]]:
    """0 and 1 of two runs on as many items: those that both solve, only the first, only the second, and none."""
    return [1] * (both + first) + [0] * (second + neither), [1] * both + [0] * first + [1] * second + [0] * neither
