"""Which documents a share of the pool holds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.filtering.selection import first_share, most_alike_first

DOCUMENTS = st.lists(
    st.tuples(st.sampled_from([-1.5, 0.0, 0.25, np.nan, 2.0]), st.integers(1, 50)), min_size=1, max_size=30
).filter(lambda documents: not all(np.isnan(difference) for difference, _ in documents))


@given(DOCUMENTS, st.sampled_from([0.01, 0.2, 0.5, 0.99, 1.0]))
def test_a_share_holds_the_most_alike_and_no_more_bytes_than_asked_for(
    documents: list[tuple[float, int]], share: float
) -> None:
    differences = np.array([difference for difference, _ in documents])
    sizes = np.array([size for _, size in documents], np.uint32)
    order = most_alike_first(differences)
    chosen = first_share(order, sizes, share)
    known = ~np.isnan(differences)
    assert chosen.any()
    assert not chosen[~known].any()
    if chosen.sum() > 1:
        assert sizes[chosen].sum() <= share * sizes[known].sum() * (1 + 1e-12)
    rest = known & ~chosen
    if rest.any():
        assert differences[chosen].max() <= differences[rest].min()
        following = order[np.count_nonzero(chosen)]
        assert sizes[chosen].sum() + sizes[following] > share * sizes[known].sum()
    if share == 1.0:
        assert np.array_equal(chosen, known)


@given(DOCUMENTS)
def test_larger_shares_hold_smaller_ones(documents: list[tuple[float, int]]) -> None:
    differences = np.array([difference for difference, _ in documents])
    sizes = np.array([size for _, size in documents], np.uint32)
    parts = [first_share(most_alike_first(differences), sizes, share) for share in (0.1, 0.3, 0.7, 1.0)]
    assert all((larger | ~smaller).all() for smaller, larger in pairwise(parts))


def test_equal_differences_stay_in_the_order_of_the_pool() -> None:
    assert most_alike_first(np.array([0.0, -1.0, 0.0, np.nan, -1.0])).tolist() == [1, 4, 0, 2]
