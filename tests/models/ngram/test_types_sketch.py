"""How many different n-grams there are, estimated while a text goes by."""

from __future__ import annotations

import numpy as np
import pytest

from lmgauge.models.ngram.reading import TypesSketch


@pytest.mark.parametrize("distinct", [10, 1000, 30_000, 60_000, 200_000])
def test_sketch_is_near_the_truth(distinct: int) -> None:
    random = np.random.default_rng(distinct)
    ids = random.integers(3, 3 + int(distinct**0.5) * 3, 3 * distinct).astype(np.uint32)
    ids[random.random(len(ids)) < 0.05] = 1
    ids[0] = 1
    sketch = TypesSketch(3)
    for part in np.split(ids, np.flatnonzero(ids == 1)[1:]):  # no n-gram goes beyond a sentence
        sketch.add(part)
    whole = TypesSketch(3)
    whole.add(ids)
    assert sketch.estimates() == whole.estimates()
    codes = ids.astype(np.uint64)
    inside = ids[1:] != 1
    pairs = len(np.unique((codes[:-1] << np.uint64(32) | codes[1:])[inside]))
    # 3 % and 64 are added on purpose: a table that is too small grows, which costs time
    assert 0.97 * pairs <= sketch.estimates()[0] <= min(1.08 * pairs + 70, len(ids))


def test_single_words_have_no_types() -> None:
    sketch = TypesSketch(1)
    sketch.add(np.array([1, 3], np.uint32))
    assert (sketch.estimates(), sketch.tokens) == ([], 2)
