"""The context policy, its name in signatures, and what the name tells whoever reads a table."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.choices import PROTOCOL_NAMES, FirstToken, SegmentEnd
from lmgauge.scores.context_policy import (
    PROTOCOLS,
    ContextPolicy,
    EventContexts,
    GrowingContext,
    last_sentence,
    shared_policy,
)

windows = st.none() | st.tuples(st.integers(1, 99), st.integers(1, 99))


@st.composite
def policies(draw: st.DrawFn) -> ContextPolicy:
    length, stride = draw(windows) or (None, None)
    return ContextPolicy(
        unit=draw(st.sampled_from(["sentence", "stream"])),
        length=length,
        stride=stride,
        first=draw(st.sampled_from(get_args(FirstToken))),
        end=draw(st.sampled_from(get_args(SegmentEnd))),
        protocol=draw(st.none() | st.sampled_from(PROTOCOL_NAMES)),
        bos_each=draw(st.booleans()),
    )


@given(policies(), policies())
def test_policies_that_differ_have_names_that_differ(one: ContextPolicy, other: ContextPolicy) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(policies())
def test_a_policy_can_be_read_from_its_name(policy: ContextPolicy) -> None:
    assert ContextPolicy.parse(str(policy)) == policy


@given(policies())
def test_what_a_policy_means(policy: ContextPolicy) -> None:
    assert policy.runs_on == (policy.unit == "stream")
    assert policy.leaves_out == (policy.protocol in ("hf-guide", "llama.cpp", "gptq"))
    assert policy.scores_first_tokens == (policy.first != "unscored" and not policy.leaves_out)
    assert policy.first_bytes_move == (policy.first == "unscored" and not policy.leaves_out)
    ends = {"eos": "event", "newline": "text", "none": "unscored"}[policy.end]
    assert policy.line_ends == ("unscored" if policy.leaves_out else ends)


@pytest.mark.parametrize("text", ["", "unknown", "left 5", "first=unscored", "streams", "\x1b[31m"])
def test_what_another_program_wrote_is_unknown(text: str) -> None:
    assert ContextPolicy.parse(text) == ContextPolicy(unit="unknown")


@pytest.mark.parametrize(
    "part",
    ["", "12", "1/2/3", "first=", "first=last", "end=never", "protocol=mine", "bos=never", "²/³", "more", f"{'9' * 5000}/1"],
)
def test_parts_that_are_not_known_are_passed_over(part: str) -> None:
    assert ContextPolicy.parse(f"stream,{part},end=none") == ContextPolicy(unit="stream", end="none")


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("sentence", "sentence", "sentence"),
        ("sentence,64/32,first=eos", "sentence,64/32,first=eos", "sentence,64/32,first=eos"),
        ("sentence,64/32,end=none", "stream,64/32", "stream,64/32"),
        ("stream,64/32,end=none,first=uniform", "sentence,64/64,end=none", "stream,end=none"),
        ("unknown", "sentence", "sentence"),
    ],
)
def test_models_that_score_together(one: str, other: str, both: str) -> None:
    policies = [ContextPolicy.parse(one), ContextPolicy.parse(other)]
    assert str(shared_policy(policies)) == str(shared_policy(policies[::-1])) == both


# -- contexts against plain lists ---------------------------------------------------------------------------------------
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


# -- the table of protocols: what the sources do, in its own terms ------------------------------------------------------
def test_each_name_has_its_rules() -> None:
    assert tuple(PROTOCOLS) == PROTOCOL_NAMES
    for name, protocol in PROTOCOLS.items():
        assert protocol.name == name
        assert protocol.figures
        assert protocol.leaves_out == (name != "harness")
        assert protocol.causal == (name != "harness")


def test_half_of_a_chunk_is_what_llama_cpp_scores() -> None:
    """Its `first` is n_ctx / 2, whose logits predict the token after it; n_ctx - 1 - first tokens are scored."""
    for chunk in (2, 3, 100, 511, 512):
        assert chunk - PROTOCOLS["llama.cpp"].first_scored(chunk) == chunk - 1 - chunk // 2
        assert chunk - PROTOCOLS["gptq"].first_scored(chunk) == chunk - 1
