"""The largest values are the same, however the values are cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.numerics.largest import Largest


@given(st.lists(st.tuples(st.floats(-2, 2), st.integers(0, 1)), max_size=40), st.integers(0, 6), st.integers(1, 30))
def test_they_are_the_same_whatever_the_blocks(keys: list[tuple[float, int]], most: int, size: int) -> None:
    largest = Largest(most)
    for first in range(0, len(keys), size):
        values, seconds = np.array(keys[first : first + size]).T
        largest.add(np.arange(first, first + len(values)), values, seconds)
    assert list(largest) == sorted(range(len(keys)), key=lambda i: (-keys[i][0], -keys[i][1], i))[:most]
