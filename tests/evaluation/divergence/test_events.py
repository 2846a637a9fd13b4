"""Columns of blocks become columns of the text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lmgauge import Corpus
from lmgauge.errors import InputError
from lmgauge.evaluation.divergence.events import PairEvents, PairRows, collect
from lmgauge.scores import ScoreBatch, Strings

STRINGS = Strings(["a", "b"])


def pair_rows(
    kl: list[list[float]], logprob: tuple[float, float] = (-1.0, -2.0), documents: list[str] | None = None, **columns: Any
) -> list[PairRows]:
    """Rows of segments, each a block: KL of their events, and the same log-probabilities at each."""
    found = []
    for block, values in zip(Corpus.from_strings(["a"] * len(kl), documents=documents, block_bytes=1), kl, strict=True):
        n = len(values)
        a, b = (
            ScoreBatch(
                np.array([block.first]),
                np.array([n]),
                np.zeros(n, np.uint32),
                STRINGS,
                np.full(n, value),
                np.zeros(n, np.uint8),
                np.minimum(np.arange(1, n + 1), 1),
            )
            for value in logprob
        )
        far = np.array(values, np.float64)
        zero = np.zeros(n)
        known = {"kl_ab": far, "kl_ba": far, "js": zero, "tv": zero, "mass_a": zero + 1, "mass_b": zero + 1}
        known |= {"overlap_1": zero + 1} | {name: np.full(n, value) for name, value in columns.items()}
        found.append(PairRows(block, a, b, known))
    return found


def pair_events(kl: list[list[float]], **options: Any) -> PairEvents:
    return collect(pair_rows(kl, **options), ("base", "q"))


def test_blocks_are_joined() -> None:
    events = collect(
        pair_rows([[0.5, 0.25], [], [2.0]], documents=["x", "x", "y"]), ("base", "q"), numbers=np.array([3, 5, 9])
    )
    assert len(events) == 3
    assert events.kl.tolist() == [0.5, 0.25, 2.0]
    assert events.sizes.tolist() == [2, 0, 1]
    assert events.owner.tolist() == [0, 0, 2]
    assert events.numbers.tolist() == [3, 5, 9]
    assert events.documents is not None
    assert events.documents.tolist() == [0, 0, 1]
    assert [tally.nats() for tally in events.tallies] == [-3.0, -6.0]
    assert events.p[1].tolist() == [np.exp(-2.0)] * 3


@pytest.mark.parametrize("mass", [np.nan, np.inf])
def test_what_is_not_a_distribution_is_refused(mass: float) -> None:
    with pytest.raises(InputError, match="q: log_distribution returned a value that is not a log-probability"):
        pair_events([[0.5]], mass_b=mass)


def test_without_events_there_is_nothing_to_compare() -> None:
    with pytest.raises(InputError, match="no event"):
        pair_events([[]])
