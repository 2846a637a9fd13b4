"""Laws of telling two groups apart, over random scores."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from lmgauge.numerics.detection import Group, Separation

SCORES = st.lists(st.integers(-6, 6), min_size=1, max_size=25)


def separation(members: list[int], others: list[int]) -> Separation:
    return Separation(Group(np.array(members, np.float64)), Group(np.array(others, np.float64)))


@given(SCORES, SCORES)
def test_every_pair_counted_by_hand(members: list[int], others: list[int]) -> None:
    won = sum((a > b) + 0.5 * (a == b) for a in members for b in others)
    assert separation(members, others).auroc == won / (len(members) * len(others))


@given(SCORES, SCORES)
def test_symmetric(members: list[int], others: list[int]) -> None:
    one, other = separation(members, others), separation(others, members)
    assert abs(one.auroc + other.auroc - 1) < 1e-15
    turned = separation([-score for score in members], [-score for score in others])
    assert abs(one.auroc + turned.auroc - 1) < 1e-15


@given(SCORES, SCORES, st.sampled_from([0.01, 0.1, 0.5]))
def test_only_the_order_counts(members: list[int], others: list[int], rate: float) -> None:
    one = separation(members, others)
    mapped = Separation(*(Group(np.exp(group.scores) * 3 - 1) for group in (one.members, one.others)))
    assert (one.auroc, one.hits(rate)) == (mapped.auroc, mapped.hits(rate))
    assert one.auroc_interval() == mapped.auroc_interval()
    assert one.hits_interval(rate) == mapped.hits_interval(rate)


@given(SCORES, SCORES, st.sampled_from([0.01, 0.1, 0.5]))
@example([2], [0, 0, 0, 2, 2, 2, 2], 0.5)
def test_intervals_hold_the_figure_and_stay_inside(members: list[int], others: list[int], rate: float) -> None:
    both = separation(members, others)
    ends = both.auroc_interval()
    if ends is not None:
        assert 0 <= ends.low <= both.auroc <= ends.high <= 1
        wider = both.auroc_interval(0.99)
        assert wider is not None
        assert wider.low <= ends.low
        assert ends.high <= wider.high
    at_rate = both.hits_interval(rate)
    assert (at_rate is None) == (ends is None) == (min(len(members), len(others)) < 6)
    if at_rate is not None:
        assert 0 <= at_rate.low <= both.hits(rate) <= at_rate.high <= 1
