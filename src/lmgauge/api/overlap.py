"""`lmgauge.overlap`: how much of a test text is in the training text."""

from __future__ import annotations

from typing import Literal

from lmgauge.api.inputs import Text, corpus_of
from lmgauge.text.overlap.find import DEFAULT_NEAR, DEFAULT_PASSAGES, find_overlap
from lmgauge.text.overlap.results import Overlap


def overlap(
    train: Text,
    test: Text,
    *,
    unit: Literal["word", "character"] = "word",
    n: int | None = None,
    near: float = DEFAULT_NEAR,
    fold: bool = False,
    passages: int = DEFAULT_PASSAGES,
    threads: int | None = None,
) -> Overlap:
    """Finds test text inside training text, exactly, with both places.

    Args:
        train: training text, read once, block by block: a path, several, or a `Corpus`.
        test: test text, held in memory.
        unit: what n-grams are made of; characters where words are not set apart by spaces.
        n: how long a run must be; 13 words or 25 characters if not given.
        near: Jaccard index from which segments are near duplicates; 0 does not look for them.
        fold: lower case, and punctuation left out, on both sides.
        passages: how many of the longest to keep.
        threads: how many; nothing found depends on it.

    Raises:
        InputError: the test text is empty or cannot be used.
    """
    return find_overlap(
        corpus_of(train), corpus_of(test), unit=unit, n=n, near=near, fold=fold, passages=passages, threads=threads
    )
