"""Where tokens lie in a text, whatever their server makes of their strings."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.network.server.toy_server import SPELLINGS

from lmgauge.scores.spans import approximate, left_out, place

# Without lone surrogates and NUL, which no text has.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A text and a cut of its bytes into tokens."""
    text = draw(TEXTS).encode()
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=12))) if text else []
    bounds = [0, *(cut for cut in cuts if cut < len(text)), len(text)]
    return text, [text[a:b] for a, b in pairwise(bounds)]


@given(cut_texts())
def test_bytes_are_placed_where_they_are(cut: tuple[bytes, list[bytes]]) -> None:
    text, tokens = cut
    ends = place(tokens, text)
    assert ends == [sum(map(len, tokens[: i + 1])) for i in range(len(tokens))]


@given(cut_texts(), st.sampled_from(["escaped", "named"]))
def test_spelled_out_bytes_are_placed_where_they_are(cut: tuple[bytes, list[bytes]], spelling: str) -> None:
    text, tokens = cut
    if spelling == "named":  # such names are of single bytes
        tokens = [part for token in tokens for part in ([token] if _is_text(token) else [bytes([byte]) for byte in token])]
    pieces = [SPELLINGS[spelling](token) for token in tokens]
    if any(piece.startswith(("bytes:", "<0x")) and _is_text(token) for piece, token in zip(pieces, tokens, strict=True)):
        return  # a text that spells such a name itself
    assert place(pieces, text) == [sum(map(len, tokens[: i + 1])) for i in range(len(tokens))]


def _is_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(cut_texts(), st.sampled_from(["replaced", "dropped"]))
def test_hidden_bytes_leave_spans_that_tile(cut: tuple[bytes, list[bytes]], spelling: str) -> None:
    text, tokens = cut
    pieces = [SPELLINGS[spelling](token) for token in tokens]
    ends = place(pieces, text)
    assert ends is not None
    assert len(ends) == len(tokens)
    assert ends == sorted(ends)
    assert (ends[-1] if ends else 0) == len(text)
    data = text.decode()
    if data.isascii():
        assert ends == [sum(map(len, tokens[: i + 1])) for i in range(len(tokens))]


@given(TEXTS, st.sampled_from(["replaced", "dropped"]))
def test_cut_characters_are_found_again(text: str, spelling: str) -> None:
    source = text.encode()
    tokens = [bytes([byte]) for byte in source]
    shown = [SPELLINGS[spelling](token) for token in tokens]
    assert place(shown, source) == list(range(1, len(source) + 1))


@pytest.mark.parametrize(
    ("pieces", "text", "ends"),
    [
        ([" the", " cat"], "the cat", [3, 7]),  # a space set before the first word
        (["▁the", "▁cat"], "the cat", [3, 7]),
        (["▁", "the", "▁cat"], "the cat", [0, 3, 7]),
        (["Ġthe", "Ġcat", "Ċ"], " the cat\n", [4, 8, 9]),
        (["the", "cat"], "the cat", [3, 7]),  # a space dropped
        (["the", "Ã©", "t"], "theét", [3, 5, 6]),
        (["", "", "日", "x"], "日x", [0, 0, 3, 4]),  # shown once it is whole
        (["", "", "", "x"], "日x", [1, 2, 3, 4]),
        (
            ["\ufffd", "\ufffd", "x"],
            "日x",
            [3, 3, 4],
        ),  # which has two bytes of it is not told: the first has all
        ([" \ufffd", "\ufffd\ufffd."], " 日.", [4, 5]),
        (["a\ufffd", "b"], "a\ufffdb", [4, 5]),  # U+FFFD itself
        (["<0xE6>", "<0x97>", "<0xA5>"], "日", [1, 2, 3]),
        (["<0xE6>"], "<0xE6>", [6]),  # a text that looks like a byte
        (["bytes:\\xe6\\x97", "bytes:\\xa5"], "日", [2, 3]),
        (["bytes: \\xe6\\x97", "bytes:\\xa5"], " 日", [3, 4]),
        (["bytes:", "\\xe6"], "bytes:\\xe6", [6, 10]),
        ([" ", "", "x"], " 日x", [1, 4, 5]),  # the first of them a space and two bytes, of which the space is shown
        (["x", "\ud83d", "\ude00"], "x😀", [1, 5, 5]),  # halves of a UTF-16 pair
        ([], "", []),
        ([""], "", [0]),
        ([b" a", b"b"], "ab", [1, 2]),
    ],
)
def test_strings_of_real_servers(pieces: list[str], text: str, ends: list[int]) -> None:
    assert place(pieces, text.encode()) == ends


def test_a_byte_that_looks_like_the_character_it_begins() -> None:
    """In a byte-level vocabulary Ã is the byte C3, with which the character Ã, C3 83, begins."""
    assert place(["Ã", "ĥ"], "Ã".encode()) == [1, 2]


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["the", "cat"], "the dog"),
        (["the"], "the cat"),
        (["the", " cat", "s"], "the cat"),
        (["\ufffd", "x"], "ax"),  # what is hidden is never ASCII
        (["\ufffd"], ""),
        (["", "", ""], "abc"),
        ([], "a"),
        ([], "日"),
    ],
)
def test_other_texts_are_told(pieces: list[str], text: str) -> None:
    assert place(pieces, text.encode()) is None


@pytest.mark.parametrize(
    ("pieces", "text", "ends"),
    [
        (["the", " cat", "."], "The cat.", [0, 7, 8]),  # lower case, as the tokenizer has it
        ([" a", " b"], "a  b", [1, 4]),  # white space squeezed
        (["", "<unk>", "x"], "日y", [0, 0, 4]),
        ([], "abc", []),
    ],
)
def test_altered_text_still_tiles(pieces: list[str], text: str, ends: list[int]) -> None:
    assert approximate(pieces, text.encode()) == ends


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["the", "cat"], "The  Cat"),
        (["▁the", "▁cat"], "The Cat"),
        (["ĠThe", "Ġcat"], "the  cat"),
        (["caf", "é"], "Café"),
        (["cafe"], "Café"),
        (["caf", "", "", "!"], "CAFÉ!"),
        (["1", "/", "2", '"'], "½”"),
        (["the", "<unk>", "dog"], "The 日本 dog"),
        (["<unk>"], "日本"),
        (["the", "?", "dog"], "The CAT dog"),
    ],
)
def test_what_tokenizers_do_leaves_nothing_out(pieces: list[str], text: str) -> None:
    assert left_out(pieces, text.encode()) is None


@pytest.mark.parametrize(
    ("pieces", "text", "words"),
    [
        (["the", "cat"], "The cat sat", "tokens for only part of the prompt (6 of 9 visible characters)"),
        (["cat", "sat"], "The cat sat", "tokens for only part of the prompt (6 of 9 visible characters)"),
        (["日", "本"], "日本語", "tokens for only part of the prompt (2 of 3 visible characters)"),
        (["the", "sat"], "The cat sat", "no token for 'cat', which the prompt has before 'sat'"),
        (["the", "", "sat"], "The cat sat", "no token for 'cat', which the prompt has before 'sat'"),
        (["", "", ""], "The cat", "no token for the end of the prompt (6 of 6 visible characters)"),
        (
            ["bytes:\\xe6\\x97", "bytes:\\xa5", "j"],
            "日J yes",
            "tokens for only part of the prompt (1 of 5 visible characters)",
        ),
        (["x", "x", "x"], "The cat", "tokens of another text than the prompt ('x' for 'thecat')"),
        (["the", "cat", "sat"], "The cat", "tokens that continue after the end of the prompt"),
    ],
)
def test_what_is_left_out(pieces: list[str], text: str, words: str) -> None:
    assert place(pieces, text.encode()) is None
    assert left_out(pieces, text.encode()) == words


@pytest.mark.parametrize("piece", ["\u2581a\ud800", "bytes: \\xe2\ud800", "\ud800"])
def test_half_a_surrogate_pair_is_no_text(piece: str) -> None:
    """JSON can hold it, and so can the reply of a server."""
    assert left_out([piece], b"the cat")
    assert place([piece], b"the cat") is None
