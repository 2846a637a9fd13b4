"""N-grams cut into partitions, as training beyond memory has them: the obvious way, with all of them in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmgauge.models.ngram.levels import Level
from lmgauge.models.ngram.packed_tables import PackedTable
from lmgauge.models.ngram.partitioned import links
from lmgauge.models.ngram.partitioned.packing import TableBuilder
from lmgauge.work.engine import Engine


@dataclass(frozen=True)
class Grams:
    """The n-grams of one order from 2, in any order; a parent is a row of the order below, at order 2 a word."""

    parents: NDArray[np.uint32]
    words: NDArray[np.uint32]
    probabilities: NDArray[np.float32]
    weights: NDArray[np.float32]
    dropped: NDArray[np.uint8]

    @property
    def stays(self) -> NDArray[np.bool_]:
        return self.dropped == 0 if len(self.dropped) else np.ones(len(self.parents), bool)


def grams_of(levels: Sequence[Level]) -> list[Grams]:
    """The n-grams of a model."""
    return [
        Grams(
            level.parents,
            level.words,
            np.where(level.listed, level.probabilities, -level.probabilities).astype(np.float32),
            level.weights.astype(np.float32),
            np.zeros(0, np.uint8),
        )
        for level in levels
    ]


def pack_at_once(orders: Sequence[Grams], vocabulary: int) -> list[PackedTable]:
    """The tables, made in memory."""
    builder = TableBuilder(vocabulary, len(orders) + 1)
    below = np.arange(vocabulary, dtype=np.uint32)
    for grams in orders:
        stays = grams.stays
        slots = np.full(len(stays), 2**32 - 1, np.uint32)
        parents, words = below[grams.parents[stays]], grams.words[stays]
        builder.add(parents, words, grams.probabilities[stays], grams.weights[stays])
        slots[stays] = builder.tables[-1].find(parents, words)
        below = slots
    return builder.tables


def hold_partitions(
    engine: Engine, orders: Sequence[Grams], partitions: int, seed: int
) -> tuple[list[list[links.Grams]], list[int]]:
    """Write the n-grams of each partition, those that begin with the same two words; return them, and how many stay.

    Args:
        engine: takes the arrays.
        orders: of order 2, 3, ...
        partitions: how many.
        seed: of the order of n-grams in a partition, and of which bigram is in which.
    """
    random = np.random.default_rng(seed)
    of = random.integers(0, partitions, len(orders[0].parents)) if orders else np.zeros(0, np.int64)
    below: NDArray[np.int64] | None = None
    held = list[list[links.Grams]]()
    for k, grams in enumerate(orders, 2):
        of = of if k == 2 else of[grams.parents]
        rows = np.zeros(len(of), np.int64)
        held.append([])
        for p in range(partitions):
            chosen = random.permutation(np.flatnonzero(of == p))
            rows[chosen] = np.arange(len(chosen))
            parents = grams.parents[chosen] if below is None else below[grams.parents[chosen]]
            held[-1].append(
                links.Grams(
                    engine.write(f"parents/{k}/{p}", parents.astype(np.uint32)),
                    engine.write(f"words/{k}/{p}", grams.words[chosen]),
                    engine.write(f"probabilities/{k}/{p}", grams.probabilities[chosen]),
                    engine.write(f"dropped/{k}/{p}", grams.dropped[chosen] if len(grams.dropped) else grams.dropped),
                    engine.write(f"weights/{k}/{p}", grams.weights[chosen]) if k <= len(orders) else None,
                )
            )
        below = rows
    return held, [int(np.count_nonzero(grams.stays)) for grams in orders]
