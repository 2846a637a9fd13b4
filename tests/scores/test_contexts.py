"""Contexts against plain lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.scores.contexts import EventContexts, GrowingContext, last_sentence

BOS = 7


@given(
    st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=5), max_size=5),
    st.booleans(),
    st.sampled_from([0, 1022, 1023, 5000]),
)
def test_a_growing_context_is_what_was_added_since_it_began(segments: list[list[int]], running: bool, before: int) -> None:
    history, expected = GrowingContext(BOS, runs_on=running), [BOS]
    for segment in [[3] * before, *segments]:
        for token in segment:
            history.add(token)
        expected += segment
        assert history.ids().tolist() == expected
        history.end_segment()
        expected = expected if running else [BOS]
        assert history.ids().tolist() == expected


@given(st.lists(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4), max_size=3), st.booleans())
def test_contexts_of_events_are_those_that_grow(batches: list[list[list[int]]], running: bool) -> None:
    growing, before = GrowingContext(BOS, runs_on=running), None
    for batch in batches:
        ids = np.array([token for segment in batch for token in segment], np.uint32)
        contexts = EventContexts(ids, [len(segment) for segment in batch], bos=BOS, runs_on=running, before=before)
        before, in_order, event = contexts.ids, list(contexts), 0
        assert len(contexts) == len(ids)
        for segment in batch:
            for token in segment:
                assert in_order[event].tolist() == contexts[event].tolist() == growing.ids().tolist()
                assert contexts[event].dtype == np.uint32
                growing.add(token)
                event += 1
            growing.end_segment()


@given(st.lists(st.integers(2, 5), max_size=8))
def test_the_last_sentence_begins_after_the_last_end(tokens: list[int]) -> None:
    growing = GrowingContext(BOS, runs_on=False)
    for token in tokens:
        growing.add(token)
        if token == 2:
            growing.end_segment()
    assert last_sentence(np.array([BOS, *tokens], np.uint32), BOS, 2).tolist() == growing.ids().tolist()
