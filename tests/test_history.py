"""Histories against plain lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmgauge.history import History

BOS = 7


@given(
    st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=5), max_size=5),
    st.booleans(),
    st.sampled_from([0, 1022, 1023, 5000]),
)
def test_a_history_is_what_was_added_since_it_began(segments: list[list[int]], running: bool, before: int) -> None:
    history, expected = History(BOS, running=running), [BOS]
    for segment in [[3] * before, *segments]:
        for token in segment:
            history.add(token)
        expected += segment
        assert history.ids().tolist() == expected
        history.end_segment()
        expected = expected if running else [BOS]
        assert history.ids().tolist() == expected
