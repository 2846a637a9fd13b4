"""How much of the pool is selected: documents in an order, up to a share of the bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgauge.text.split import random_keys

Floats = NDArray[np.float64]
Sizes = NDArray[np.uint32]
Chosen = NDArray[np.bool_]
Order = NDArray[np.integer[Any]]
"""Numbers of documents, in as few bytes as they fit into."""


def most_alike_first(differences: Floats) -> Order:
    """Return the documents that have a score, lowest difference first, equal ones as they stand in the pool."""
    # differences: float64 [documents], bits per token; NaN where there is no score.
    order = np.argsort(differences, kind="stable")  # NaN last
    return _small(order[: len(order) - np.count_nonzero(np.isnan(differences))])


def random_order(differences: Floats, seed: int) -> Order:
    """Return the documents that have a score in a random order."""
    # differences: float64 [documents], bits per token; NaN where there is no score.
    order = _small(np.argsort(random_keys(len(differences), seed), kind="stable"))
    return order[~np.isnan(differences)[order]]


def _small(order: Order) -> Order:
    return order.astype(np.uint32) if len(order) < 1 << 32 else order


def first_share(order: Order, sizes: Sizes, share: float) -> Chosen:
    """Return which documents are selected: the first in an order, as many as fit into a share of the bytes; one at least."""
    # order: [documents in it], their numbers, one at least; sizes: uint32 [documents], bytes of each; share: of the bytes
    # of the documents in the order, above 0 and at most 1.
    # -> bool [documents].
    ends = np.cumsum(sizes[order], dtype=np.int64)
    number = max(1, int(np.searchsorted(ends, share * float(ends[-1]), "right")))
    chosen = np.zeros(len(sizes), bool)
    chosen[order[: len(order) if share == 1 else number]] = True
    return chosen


def below(differences: Floats, most: float) -> Chosen:
    """Return which documents differ by at most so much, bool [documents]."""
    # differences: float64 [documents], bits per token; NaN where there is no score.
    with np.errstate(invalid="ignore"):
        chosen: Chosen = differences <= most
    return chosen
