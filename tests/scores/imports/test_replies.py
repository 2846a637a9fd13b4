"""Saved replies of servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.scores.imports.outputs import OPENAI, REQUEST_OUTPUT, VLLM
from tests.scores.imports.parsing import noted, parsed

from lmgauge.base.errors import InputError


@pytest.mark.parametrize("content", [VLLM, REQUEST_OUTPUT, f"[{VLLM}]", VLLM + "\n", json.dumps(json.loads(VLLM), indent=2)])
def test_prompts_of_vllm(tmp_path: Path, content: str) -> None:
    [segment] = parsed(tmp_path, content)
    assert (segment.pieces, segment.logprob, segment.headless) == (["the", " cat"], [-1.0, -2.0], True)


def test_one_reply_a_line(tmp_path: Path) -> None:
    assert [segment.where[-6:] for segment in parsed(tmp_path, f"{VLLM}\n{REQUEST_OUTPUT}\n")] == ["line 1", "line 2"]


def test_echoed_prompts(tmp_path: Path) -> None:
    segments, notes = noted(tmp_path, OPENAI)
    [segment] = segments
    assert segment.pieces == ["the", " cat", " sat", " on"]
    assert segment.generated == (1, 0)
    assert "1 tokens that were generated after a prompt are left out" in notes


def test_a_reply_that_does_not_count_what_it_generated(tmp_path: Path) -> None:
    reply = json.loads(OPENAI)
    del reply["usage"]
    segments, notes = noted(tmp_path, json.dumps(reply))
    assert segments[0].generated == (0, 1, 2, 3, 4)
    assert "1 replies do not say how many tokens were generated" in notes


def test_several_choices_are_several_segments(tmp_path: Path) -> None:
    reply = json.loads(OPENAI)
    reply["choices"] *= 2
    segments, notes = noted(tmp_path, json.dumps(reply))
    assert [segment.where.rpartition(", ")[2] for segment in segments] == ["choice 1", "choice 2"]
    assert "2 replies do not say" in notes, "the count is of both together"


def test_a_reply_without_a_prompt_is_said_to_be_the_models_own(tmp_path: Path) -> None:
    content = [{"token": "Hi", "logprob": -0.5}, {"token": "!", "logprob": -0.25}]
    reply = {"choices": [{"logprobs": {"content": content}}], "usage": {"completion_tokens": 2}}
    segments, notes = noted(tmp_path, json.dumps(reply))
    assert (segments[0].pieces, segments[0].generated) == (["Hi", "!"], (0,))
    assert "1 segments were written by the model itself" in notes


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"choices": [{"logprobs": None}]}, "the reply has no log-probabilities"),
        ({"choices": [{"logprobs": {"tokens": ["a"]}}]}, "logprobs without token_logprobs"),
        ({"choices": [{"logprobs": {"tokens": ["a"], "token_logprobs": [0.5]}}]}, "gives 0.5 for a log-probability"),
        ({"choices": [{"logprobs": {"tokens": [3], "token_logprobs": [-0.5]}}]}, "do not belong together"),
        ({"choices": []}, None),
    ],
)
def test_other_replies_are_refused(tmp_path: Path, reply: dict[str, Any], words: str | None) -> None:
    if words is None:
        assert parsed(tmp_path, json.dumps(reply), "openai") == []
        return
    with pytest.raises(InputError) as error:
        parsed(tmp_path, json.dumps(reply), "openai")
    assert words in str(error.value)


def test_a_place_with_several_tokens_needs_the_ids(tmp_path: Path) -> None:
    reply = json.loads(REQUEST_OUTPUT)
    del reply["prompt_token_ids"]
    with pytest.raises(InputError, match="prompt_token_ids do not say which it is"):
        parsed(tmp_path, json.dumps(reply))
