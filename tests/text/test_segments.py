"""What counts as white space, against plain Python."""

from __future__ import annotations

import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.text.segments import BETWEEN_WORDS, WHITE_SPACE, is_unicode_white_space

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
