"""Text to ids: the encoder, the vocabulary's hash table and the counts of text against plain Python."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import kernels as twin

from lmgauge._kernels import _native
from lmgauge.base.errors import InputError
from lmgauge.text.documents import Corpus
from lmgauge.text.encoding import RESERVED_POLICIES, encode
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.vocabulary import SPECIAL_TOKENS, Vocabulary, VocabularyBuilder

MODES = ["whitespace", "character", "byte"]
BRACKETED = [
    "<unk>",
    "<s>",
    "</s>",
    "<<unk>>",
    "<<<s>>>",
    "<<</s>>>",
    "<unk",
    "unk>",
    "<>",
    "<<s>",
    "<s>>",
    "<S>",
    "<< unk>>",
]
pieces = st.one_of(
    st.sampled_from(
        [" ", "  ", "\t", "\v", "\f", "\r", "\x1c", "\x1f", "\u00a0", "\u0085", "\u3000", "a", "bb", "ä", "漢", "\U0001f600"]
    ),
    st.sampled_from(BRACKETED),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n"), max_size=12),
    st.sampled_from(["x" * n for n in (7, 8, 9, 15, 16, 17, 40)]),
)
lines = st.lists(st.lists(pieces, max_size=12).map("".join), max_size=12)


class Given:
    """A tokenizer without a kernel of its own: the encoder then takes the tokens as they are given."""

    def __init__(self, name: str) -> None:
        self.inner = make_tokenizer(name)
        self.name, self.unit, self.kernel, self.fingerprint = f"given-{name}", self.inner.unit, None, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def encoded(texts: list[str], tokenizer: Any, vocabulary: Any, **options: Any) -> tuple[list[int], list[int], list[bool]]:
    block_bytes = options.pop("block_bytes", 1 << 20)
    ids: list[int] = []
    spans: list[int] = []
    lossy: list[bool] = []
    for block in Corpus.from_strings(texts, block_bytes=block_bytes):
        found = encode(block, tokenizer, vocabulary, spans=True, **options)
        ids += found.ids.tolist()
        spans += found.span_ends.tolist()
        lossy += found.lossy.tolist()
    return ids, spans, lossy


@given(
    lines,
    st.sampled_from(MODES),
    st.sampled_from(RESERVED_POLICIES),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 30, 1 << 20]),
)
def test_learning_encoder(
    texts: list[str], mode: str, reserved: Any, bos: bool, given_tokens: bool, block_bytes: int
) -> None:
    known = {token: i for i, token in enumerate(SPECIAL_TOKENS)}
    builder = VocabularyBuilder()
    tokenizer = Given(mode) if given_tokens else make_tokenizer(mode)
    options: dict[str, Any] = {"bos": bos, "reserved": reserved, "block_bytes": block_bytes}
    try:
        expected = twin.encode(texts, mode, known, insert=True, bos=bos, reserved=reserved)
    except twin.ReservedToken:
        with pytest.raises(InputError, match="reserved token"):
            encoded(texts, tokenizer, builder, **options)
        return
    assert encoded(texts, tokenizer, builder, **options) == expected
    assert builder.finish().tokens == list(known)


@given(lines, lines, st.sampled_from(MODES), st.sampled_from(RESERVED_POLICIES), st.booleans())
def test_reading_encoder(train: list[str], test: list[str], mode: str, reserved: Any, given_tokens: bool) -> None:
    known = {token: i for i, token in enumerate(SPECIAL_TOKENS)}
    twin.encode(train, mode, known, insert=True, bos=False, reserved="escape")
    vocabulary = Vocabulary.from_tokens(list(known)[3:])
    tokenizer = Given(mode) if given_tokens else make_tokenizer(mode)
    size = len(known)
    try:
        expected = twin.encode(test, mode, known, insert=False, bos=True, reserved=reserved)
    except twin.ReservedToken:
        with pytest.raises(InputError, match="reserved token"):
            encoded(test, tokenizer, vocabulary, bos=True, reserved=reserved)
        return
    assert encoded(test, tokenizer, vocabulary, bos=True, reserved=reserved) == expected
    assert len(vocabulary) == size


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "name", ["pud.ar.txt", "pud.th.txt", "akutagawa.ja.txt", "tinyshakespeare.txt", "wikitext2.test.txt"]
)
def test_real_text(data: Path, mode: str, name: str) -> None:
    texts = (data / name).read_text(encoding="utf-8").split("\n")
    known = {token: i for i, token in enumerate(SPECIAL_TOKENS)}
    expected = twin.encode(texts, mode, known, insert=True, bos=True, reserved="escape")
    builder = VocabularyBuilder()
    seen = encoded(texts, make_tokenizer(mode), builder, bos=True, reserved="escape", block_bytes=5000)
    assert seen == expected
    assert builder.finish().tokens == list(known)


def test_a_vocabulary_grows_as_far_as_it_must() -> None:
    """Past the builder's first size in tokens, and past it in bytes."""
    for words in ([f"w{i}" for i in range(70_000)], [f"{i:04d}" * 300 for i in range(1_500)]):
        builder = VocabularyBuilder()
        ids, _, _ = encoded([" ".join(words), " ".join(reversed(words))], make_tokenizer("whitespace"), builder, bos=False)
        count = len(words)
        assert ids == [*range(3, count + 3), 2, *range(count + 2, 2, -1), 2]
        assert builder.finish().tokens[3:] == words


def test_a_word_is_not_taken_for_another_with_its_hash() -> None:
    for length in range(1, 27):
        for place in range(length):
            one, other = "x" * length, "x" * place + "y" + "x" * (length - place - 1)
            vocabulary = Vocabulary.from_tokens([one, other])  # ids 3 and 4; the low half of a slot holds the id + 1
            ids = vocabulary.slots & np.uint64(0xFFFFFFFF)
            swapped = np.where(ids == 4, vocabulary.slots + 1, np.where(ids == 5, vocabulary.slots - 1, vocabulary.slots))
            forged = Vocabulary(swapped, vocabulary.offsets, vocabulary.bytes, closed=False)
            for known, expected in ((vocabulary, [3, 4]), (forged, [0, 0])):
                assert encoded([f"{one} {other}"], make_tokenizer("whitespace"), known, bos=False)[0][:2] == expected


def test_a_token_longer_than_everything_at_first() -> None:
    builder = VocabularyBuilder()
    word = "ab" * 2_000_000
    ids, spans, _ = encoded([f"x {word} x"], make_tokenizer("whitespace"), builder, bos=False)
    assert ids == [3, 4, 3, 2]
    assert spans == [1, len(word) + 2, len(word) + 4, len(word) + 4]
    assert builder.finish().token(4) == word


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), unique=True, max_size=60))
def test_every_token_is_found_and_no_other(tokens: list[str]) -> None:
    tokens = [token for token in tokens if token not in SPECIAL_TOKENS]
    vocabulary = Vocabulary.from_tokens(tokens)
    assert [vocabulary.id(token) for token in tokens] == list(range(3, len(tokens) + 3))
    assert vocabulary.tokens[3:] == tokens
    for token in tokens:
        for other in (token + "x", token[:-1], token[1:], token + "\0"):
            if other not in tokens and other not in SPECIAL_TOKENS:
                assert other not in vocabulary


@given(lines, st.randoms(use_true_random=False))
def test_count_text(texts: list[str], random: random.Random) -> None:
    chosen = [text.encode() for text in texts]
    data = b"".join(b"#" * random.randrange(3) + text for text in chosen)
    starts, position = [], 0
    for text in chosen:
        position = data.index(text, position)
        starts.append(position)
        position += len(text)
    ends = [start + len(text) for start, text in zip(starts, chosen, strict=True)]
    words, characters = _native.count_text(
        np.frombuffer(data, np.uint8), np.array(starts, np.int64), np.array(ends, np.int64)
    )
    assert words == sum(len(text.split()) for text in chosen)
    assert characters == sum(len(text.decode()) for text in chosen)


def test_arrays_that_do_not_fit_are_refused() -> None:
    text = np.frombuffer(b"abc", np.uint8)
    ids, spans = np.zeros(10, np.uint32), np.zeros(0, np.int64)
    vocabulary = Vocabulary.from_tokens(["a"]).arrays
    none = (np.zeros(0, np.uint8),) + (np.zeros(0, np.int64),) * 4

    def call(starts: list[int], ends: list[int], tokens: Any = none, mode: int = 0, slots: Any = vocabulary) -> int:
        state = np.array([0, -1, 0, 0, 0, -1, 0], np.int64)
        segments = (text, np.array(starts, np.int64), np.array(ends, np.int64))
        return _native.encode_segments(
            segments, tokens, slots, (mode, 0, True, True), state, ids, spans, np.zeros(0, np.uint8)
        )

    assert call([0], [3]) == 0
    for starts, ends in (([0], [4]), ([-1], [2]), ([2], [1]), ([0, 1], [3])):
        with pytest.raises(ValueError):
            call(starts, ends)
    one = np.array([1], np.int64)
    for tokens in ((text, one, one + 5, one, one), (text, one, one, one + 1, one), (text, one - 2, one, one, one)):
        with pytest.raises(ValueError):
            call([0], [3], tokens, mode=3)
    with pytest.raises(ValueError):
        call([0], [3], slots=(np.zeros(15, np.uint64), *vocabulary[1:]))
