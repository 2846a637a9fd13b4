"""The forms of replies, and what is none."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from lmgauge.scores.imports.replies import ReplyError, read_echo, read_prompt_logprobs

TOKENS = {"tokens": ["The", " cat"], "token_logprobs": [None, -1.5], "text_offset": [0, 3]}


def reply(logprobs: object, **more: Any) -> dict[str, Any]:
    return {"choices": [{"text": "The cat", "logprobs": logprobs}], **more}


def test_lists() -> None:
    found = read_echo(reply(TOKENS | {"top_logprobs": [None, {" dog": -0.5, " cat": -1.5}]}, usage={"completion_tokens": 1}))
    assert found is not None
    assert (found.pieces, found.logprob, found.best) == (["The", " cat"], [None, -1.5], [None, -0.5])
    assert (found.generated, found.echoes) == (1, True)


def test_what_may_be_missing() -> None:
    found = read_echo(reply(TOKENS))
    assert found is not None
    assert (found.best, found.generated) == ([None, None], None)
    found = read_echo(reply(TOKENS | {"top_logprobs": [None, {" cat": math.nan, "x": "?"}]}, usage=None))
    assert found is not None
    assert found.best == [None, None]


def test_content() -> None:
    entries = [
        {"token": "The", "logprob": None},
        {"token": "\ufffd", "bytes": [0xE6, 0x97], "logprob": -2, "top_logprobs": [{"token": "a", "logprob": -1}, "?"]},
    ]
    found = read_echo(reply({"content": entries}))
    assert found is not None
    assert (found.pieces, found.logprob, found.best) == (["The", b"\xe6\x97"], [None, -2.0], [None, -1])


def test_prompt_logprobs() -> None:
    entries = [None, {"5": {"logprob": -2.5, "rank": 3, "decoded_token": " cat"}}]
    for found in (
        read_prompt_logprobs({"choices": [{"text": "", "prompt_logprobs": entries}]}),
        read_prompt_logprobs({"choices": [{"text": ""}], "prompt_logprobs": entries}),
    ):
        assert found is not None
        assert (found.pieces, found.logprob, found.echoes) == (["", " cat"], [None, -2.5], False)


def test_integers_beyond_all_floats() -> None:
    lowest = TOKENS | {"token_logprobs": [None, -(10**400)], "top_logprobs": [None, {" dog": -(10**400), " cat": -1}]}
    found = read_echo(reply(lowest))
    assert found is not None
    assert (found.logprob, found.best) == ([None, -math.inf], [None, -1.0])
    with pytest.raises(ReplyError, match="gives inf for a log-probability, which cannot be above 0"):
        read_echo(reply(TOKENS | {"token_logprobs": [None, 10**400]}))


@pytest.mark.parametrize("logprobs", [None, {}, []])
def test_replies_without_scores(logprobs: object) -> None:
    assert read_echo(reply(logprobs)) is None
    assert read_prompt_logprobs(reply(logprobs)) is None


def test_infinities_and_what_stands_for_them() -> None:
    found = read_echo(
        json.loads('{"choices": [{"logprobs": {"tokens": ["a", "b", "c"], "token_logprobs": [-Infinity, -9999.0, 1e-7]}}]}')
    )
    assert found is not None
    assert found.logprob == [-math.inf, -math.inf, 0.0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "no choices"),
        ({"choices": []}, "no choices"),
        ({"choices": ["?"]}, "no choices"),
        (reply("?"), "without tokens"),
        (reply({"tokens": ["a"]}), "without token_logprobs"),
        (reply({"tokens": ["a"], "token_logprobs": []}), "do not belong together"),
        (reply({"tokens": [7], "token_logprobs": [-1.0]}), "do not belong together"),
        (reply({"tokens": ["a"], "token_logprobs": ["-1"]}), "'-1' stands where a log-probability should"),
        (reply({"tokens": ["a"], "token_logprobs": [True]}), "True stands where"),
        (reply({"tokens": ["a"], "token_logprobs": [math.nan]}), "NaN"),
        (reply({"tokens": ["a"], "token_logprobs": [0.5]}), "cannot be above 0"),
        (reply({"content": ["?"]}), "is not an object"),
        (reply({"content": [{"bytes": [999], "logprob": -1}]}), "bytes that are not numbers from 0 to 255"),
        (reply({"content": [{"bytes": ["x"], "logprob": -1}]}), "bytes that are not numbers from 0 to 255"),
    ],
)
def test_replies_in_no_known_form(content: dict[str, Any], words: str) -> None:
    with pytest.raises(ReplyError, match=words):
        read_echo(content)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (["?"], "does not name one token"),
        (
            [{"1": {"logprob": -1, "decoded_token": "a"}, "2": {"logprob": -2, "decoded_token": "b"}}],
            "does not name one token",
        ),
        ([{"1": {"logprob": -1}}], "no decoded_token"),
        ([{"1": {"logprob": math.nan, "decoded_token": "a"}}], "NaN"),
    ],
)
def test_prompt_logprobs_in_no_known_form(entries: list[Any], words: str) -> None:
    with pytest.raises(ReplyError, match=words):
        read_prompt_logprobs({"choices": [{"prompt_logprobs": entries}]})
