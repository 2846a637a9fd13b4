"""The context policy, its name in signatures, and what the name tells whoever reads a table."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.choices import PROTOCOL_NAMES, FirstToken, SegmentEnd
from lmgauge.scores.context_policy import ContextPolicy, shared_policy

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
