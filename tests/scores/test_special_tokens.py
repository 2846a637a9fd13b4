"""Special tokens known by their names, and the one that stands twice."""

from __future__ import annotations

import pytest

from lmgauge.scores.special_tokens import begins_texts, doubled, is_special

BEGINNINGS = ["<s>", "<bos>", "<BOS_TOKEN>", "[CLS]", "<|begin_of_text|>", "<|endoftext|>", "<｜begin▁of▁sentence｜>"]
OTHERS = ["</s>", "<pad>", "<start_of_turn>", "<|im_start|>", "<|start_header_id|>", "[/INST]", "<｜User｜>"]
WORDS = ["s", "<div>", "<", "<|", "<| a |>", "the", ""]


@pytest.mark.parametrize("name", BEGINNINGS + OTHERS)
def test_special_tokens_are_known_by_their_names(name: str) -> None:
    assert is_special(name)
    assert is_special(name.encode())
    assert begins_texts(name) == (name in BEGINNINGS)


@pytest.mark.parametrize("name", WORDS)
def test_words_are_not_special(name: str) -> None:
    assert not is_special(name)
    assert not begins_texts(name)


def test_only_what_tokens_begin_with_is_doubled() -> None:
    assert doubled(["<s>", "<pad>", "<pad>", "The"], is_special) == "<pad>"
    assert doubled(["<s>", "The", "<s>", "<s>"], is_special) is None
    assert doubled([7, 7, 3], lambda token: token == 7) == 7
    assert doubled([], is_special) is None
