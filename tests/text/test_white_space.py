"""What counts as white space, and how much of each span it is, against plain Python."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.text.documents import Corpus
from lmgauge.text.white_space import BETWEEN_WORDS, WHITE_SPACE, is_unicode_white_space, white_space_before

texts = st.text(
    st.sampled_from(f"{WHITE_SPACE}abé三\u0301\u200b\u180e\u1681\u00a1\u2010\u3001") | st.characters(codec="utf-8")
)


def test_white_space_is_what_unicode_says() -> None:
    assert sorted(WHITE_SPACE) == [character for character in map(chr, range(sys.maxunicode + 1)) if character.isspace()]
    assert BETWEEN_WORDS.encode().split() == []


@given(texts)
def test_bytes_of_white_space(text: str) -> None:
    white = is_unicode_white_space(np.frombuffer(text.encode(), np.uint8)).tolist()
    assert white == [character.isspace() for character in text for _ in character.encode()]


@given(texts, st.lists(st.integers(0, 30)), st.booleans())
def test_white_space_before_spans(text: str, cuts: list[int], unicode: bool) -> None:
    text = text.replace("\0", "").replace("\r\n", "\r")
    (block,) = Corpus.from_strings([text])
    characters = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    bounds = np.array([len(text[:at].encode()) for at in characters])
    lengths = white_space_before(block, bounds[:-1], bounds[1:], unicode=unicode).tolist()
    pieces = [text[begin:end] for begin, end in pairwise(characters)]
    characters_of = WHITE_SPACE if unicode else BETWEEN_WORDS
    assert lengths == [len(piece.encode()) - len(piece.lstrip(characters_of).encode()) for piece in pieces]


@pytest.mark.parametrize("unicode", [True, False])
def test_no_spans_and_empty_ones(unicode: bool) -> None:
    (block,) = Corpus.from_strings([" \x1c\u3000a"])
    none = np.zeros(0, np.int64)
    assert white_space_before(block, none, none, unicode=unicode).tolist() == []
    at = np.array([0, 6])
    assert white_space_before(block, at, at, unicode=unicode).tolist() == [0, 0]
