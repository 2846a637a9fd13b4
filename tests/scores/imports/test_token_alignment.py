"""Tokens of logs on their text."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.errors import InputError
from lmgauge.scores.imports.log import LoggedSegment
from lmgauge.scores.imports.token_alignment import lay
from lmgauge.scores.spans import Piece
from lmgauge.scores.table import EOS_KIND, OOV, TOKEN

WORDS = st.lists(st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=5), min_size=1, max_size=6)
SPACES = st.text(st.sampled_from(" \t\f\v"), min_size=1, max_size=3)


def logged(pieces: list[Piece], **more: object) -> LoggedSegment:
    values: list[float | None] = [-1.0] * len(pieces)
    return LoggedSegment("log, line 1", pieces, more.pop("logprob", values), **more)  # type: ignore[arg-type]


@given(words=WORDS, data=st.data())
def test_words_tile_their_line(words: list[str], data: st.DataObject) -> None:
    """Each begins where the one before ended, and the last event takes the white space behind the last word."""
    parts = [data.draw(SPACES) + word for word in words]
    parts[0] = data.draw(st.sampled_from(["", " "])) + words[0]
    tail = data.draw(st.sampled_from(["", " ", "\t "]))
    text = ("".join(parts) + tail).encode()
    ends = list(accumulate(len(part.encode()) for part in parts))
    pieces: list[Piece] = [word.encode() for word in words]
    with_end = lay(logged([*pieces, b"</s>"], kinds=[TOKEN] * len(words) + [EOS_KIND]), text, words=True)
    assert list(with_end.ends) == [*ends, len(text)]
    assert list(lay(logged(pieces), text, words=True).ends) == [*ends[:-1], len(text)]


def test_an_unseen_word_stands_for_any() -> None:
    segment = logged([b"a", b"<unk>", b"</s>"], kinds=[TOKEN, OOV, EOS_KIND])
    assert lay(segment, b"a zebra", words=True).ends == [1, 7, 7]
    with pytest.raises(InputError, match="at byte 2 of its segment the text is 'zebra', and the log has word 2 'zoo'"):
        lay(logged([b"a", b"zoo", b"</s>"], kinds=[TOKEN, OOV, EOS_KIND]), b"a zebra", words=True)


def test_whole_documents() -> None:
    assert lay(logged(["a\r\nb"], text="a\r\nb"), b"a\nb").ends == [3]
    with pytest.raises(InputError, match="at byte 2 of its segment the text is 'c', and the log has text 'b'"):
        lay(logged(["a b"], text="a b"), b"a c")


def test_bos_tokens_are_not_text() -> None:
    found = lay(logged(["<s>", "▁the", "▁cat"], logprob=[None, -1.0, -1.0]), b"the cat")
    assert (found.pieces, found.ends) == (["▁the", "▁cat"], [3, 7])
    found = lay(logged(["the", " cat"], logprob=[None, -1.0]), b"the cat")
    assert (found.pieces, found.ends, found.headless) == (["the", " cat"], [3, 7], False)


def test_what_was_generated_is_not_text() -> None:
    assert lay(logged(["the", " cat", "!"], generated=(1, 0)), b"the cat").ends == [3, 7]
    with pytest.raises(InputError, match="and the log has token 3 '!'"):
        lay(logged(["the", " cat", "!"]), b"the cat")


def test_a_missing_head() -> None:
    found = lay(logged([" cat", " sat"], headless=True), b"the cat sat")
    assert (found.ends, found.headless) == ([7, 11], True)
    found = lay(logged(["the", " cat"], headless=True), b"the cat")
    assert (found.ends, found.headless) == ([3, 7], False)
    with pytest.raises(InputError, match="at byte 0 of its segment the text is 'the dog', and the log has token 1 ' cat'"):
        lay(logged([" cat"], headless=True), b"the dog")


def test_a_tokenizer_that_alters_the_text() -> None:
    found = lay(logged(["the", "caf", "##e"]), "The  Café".encode())
    assert (found.exact, found.ends[-1]) == (False, len("The  Café".encode()))


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["the", " dog"], "at byte 3 of its segment the text is ' cat sat', and the log has token 2 ' dog'"),
        (["the", " cat"], "at byte 7 of its segment the text is ' sat', and the log ends"),
        (["Ġthe", "Ġcat", "Ġsat", "Ġon"], "at byte 11 of its segment the text ends, and the log has token 4 'Ġon'"),
        ([], "at byte 0 of its segment the text is 'the cat sat', and the log ends"),
    ],
)
def test_a_difference_is_named(pieces: list[Piece], words: str) -> None:
    with pytest.raises(InputError) as error:
        lay(logged(pieces), b"the cat sat", place_name="text.txt, line 3")
    assert str(error.value).startswith("log, line 1: the log is not about text.txt, line 3: " + words)


@given(pieces=st.lists(st.text("ab ", min_size=1, max_size=4), min_size=1, max_size=8), cut=st.integers(0, 40))
def test_given_text_has_no_rows(pieces: list[str], cut: int) -> None:
    """The twin counts bytes: a token is kept if it ends behind the given text, and crosses if it begins in it."""
    text = "".join(pieces).encode()
    cut = min(cut, len(text) - 1)
    ends = list(accumulate(map(len, pieces)))
    laid = lay(logged(list(pieces)), text[cut:], given=text[:cut])
    assert list(laid.ends) == [end - cut for end in ends if end > cut]
    assert len(pieces) - len(laid.pieces) == sum(end <= cut for end in ends)
    assert laid.crosses == any(begin < cut < end for begin, end in zip([0, *ends], ends, strict=False))
