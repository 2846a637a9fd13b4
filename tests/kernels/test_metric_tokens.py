"""The compiled tokenizers against sacreBLEU's, over alphabets chosen to be nasty to regular expressions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge._kernels import _native
from lmgauge.tasks.texts import Texts
from lmgauge.tasks.tokenizers import OWN_KINDS, tokenized
from lmgauge.text.segments import WHITE_SPACE

bleu = pytest.importorskip("sacrebleu.metrics.bleu")

SPACES = sorted(WHITE_SPACE)
CORE = list("0159.,-&;ab \n'\"!/:")
MARKUP = ["&quot;", "&amp;", "&lt;", "&gt;", "<skipped>", "-\n", "&amp;lt;", "&amp;amp;quot;", "<skip<skipped>ped>", "\r\n"]
# Ends and neighbours of sacreBLEU's Chinese ranges.
EDGES = [
    0x3400,
    0x4DB5,
    0x4E00,
    0x9FBB,
    0xF900,
    0xFA2D,
    0xFA30,
    0xFA6A,
    0xFA70,
    0xFAD9,
    0x2001,
    0x2A6D,
    0x2F81,
    0x2FA1,
    0xFF00,
]
EDGES += [
    0xFFEF,
    0x2E80,
    0x2EFF,
    0x3000,
    0x303F,
    0x31C0,
    0x31EF,
    0x2F00,
    0x2FDF,
    0x2FF0,
    0x2FFF,
    0x3100,
    0x312F,
    0x31A0,
    0x31BF,
]
EDGES += [0xFE10, 0xFE1F, 0xFE30, 0xFE4F, 0x2600, 0x27BF, 0x3200, 0x33FF, 0x20000, 0x2A6D6, 0x2F800, 0x2FA1D]
CHINESE = sorted({chr(c + d) for c in EDGES for d in (-1, 0, 1)})
NUMBERS_AND_MARKS = [
    "\u0660",
    "\u00b2",
    "\u00bd",
    "\u2167",
    "\u3001",
    "\u00bf",
    "\u20ac",
    "\u0301",
    "\U0001f600",
    "\U0001d7ce",
]

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
pieces = st.one_of(
    *(st.sampled_from(alphabet) for alphabet in (CORE, MARKUP, SPACES, CHINESE, NUMBERS_AND_MARKS)), characters
)
lines = st.lists(st.lists(pieces, max_size=14).map("".join), min_size=1, max_size=20)


def of_sacrebleu(name: str) -> Callable[[str], str]:
    tokenizer = bleu._get_tokenizer(name)()
    return lambda text: tokenizer(text.rstrip())


@pytest.mark.parametrize("name", OWN_KINDS)
@given(lines, st.integers(1, 3))
def test_tokens_are_sacrebleu_s(name: str, texts: list[str], threads: int) -> None:
    theirs = of_sacrebleu(name)
    found = tokenized(Texts.of_strings(texts), name, threads).strings()
    assert [text.split() for text in found] == [theirs(text).split() for text in texts]


@pytest.mark.parametrize("name", OWN_KINDS)
def test_every_character_among_letters_digits_and_points(name: str) -> None:
    theirs = of_sacrebleu(name)
    texts = [f"{c}.5{c},a{c}3{c}" for c in map(chr, range(1, 0x3400)) if c != "\0"]
    texts += [f"{c}.5{c},a{c}3{c}" for c in map(chr, range(0x3400, 0x110000, 67)) if not "\ud800" <= c <= "\udfff"]
    found = tokenized(Texts.of_strings(texts), name).strings()
    assert [text.split() for text in found] == [theirs(text).split() for text in texts]


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("13a", "Hello, world! 1,000.50 (3.5%) end.", "Hello , world ! 1,000.50 ( 3.5 % ) end ."),
        ("13a", "a... b..5 5. 5.", "a . . . b . .5 5 . 5 ."),
        ("13a", "&amp;lt;tag&gt; it&apos;s a<skipped>b", "< tag > it & apos ; s ab"),
        ("13a", "line-\nbroken x-\n", "linebroken x-"),
        ("13a", "1990-2000 well-known", "1990 - 2000 well-known"),
        ("zh", ".5 ends with 5.", ".5 ends with 5."),
        ("zh", "今天,天气a。", "今 天 , 天 气 a 。"),
        ("zh", "a€b\U00020000c", "a € b\U00020000c"),
        ("char", "a b\u3000字", "a b 字"),
        ("intl", "in 2000. At 3,5 € …", "in 2000 . At 3,5 € …"),
        ("intl", "in 2000.", "in 2000."),
    ],
)
def test_examples(name: str, text: str, tokens: str) -> None:
    assert tokenized(Texts.of_strings([text]), name).strings()[0].split() == tokens.split()


@pytest.mark.parametrize("name", OWN_KINDS)
def test_bytes_do_not_depend_on_threads(name: str) -> None:
    texts = Texts.of_strings([f"{i}.{i},“{i}” -{i}- 字{i}\u3000" for i in range(1000)] + ["", " ", "\u3000"])
    one = tokenized(texts, name)
    for threads in (2, 3, 8):
        more = tokenized(texts, name, threads)
        assert more.data.tobytes() == one.data.tobytes()
        assert (more.starts.tolist(), more.ends.tolist()) == (one.starts.tolist(), one.ends.tolist())


@pytest.mark.parametrize("name", OWN_KINDS)
def test_nothing_and_much(name: str) -> None:
    assert len(tokenized(Texts.of_strings([]), name)) == 0
    assert tokenized(Texts.of_strings(["", " \n", "\u2028"]), name).strings() == ["", "", ""]
    long = tokenized(Texts.of_strings(["1." * 2_000_000]), name).strings()[0].split()
    assert len(long) == {"13a": 2, "zh": 1, "intl": 1, "char": 4_000_000}[name]


def test_shapes_are_checked() -> None:
    texts = Texts.of_strings(["a"])
    arrays = (texts.data, texts.starts, texts.ends)
    with pytest.raises(ValueError, match="class"):
        _native.separate_tokens(arrays, OWN_KINDS["intl"], np.zeros(5, dtype=np.uint8), 0, 1)
    with pytest.raises(ValueError, match="kind"):
        _native.separate_tokens(arrays, 7, np.zeros(0, dtype=np.uint8), 0, 1)
    with pytest.raises(ValueError, match="range"):
        _native.separate_tokens(arrays, 0, np.zeros(0, dtype=np.uint8), 0, 2)


ODD_BYTES = st.sampled_from([b"\xf0", b"\xff", b"\xe2", b"\x80", b"\xc2", b"\xf4\x90\x80\x80", b"a", b"1", b".", b" "])


@given(st.lists(st.lists(ODD_BYTES, max_size=12).map(b"".join), min_size=2, max_size=2))
def test_bytes_that_are_no_text_do_no_harm(texts: list[bytes]) -> None:
    """Nobody packs such; were it to happen, kernels end, and touch nothing but what is theirs."""
    arrays, offsets, stop = Texts.of_bytes(texts[:1]).arrays, np.arange(2, dtype=np.int64), np.zeros(1, dtype=np.uint8)
    other, classes = Texts.of_bytes(texts[1:]).arrays, np.zeros(0x110000, dtype=np.uint8)
    calls = [lambda kind=kind: _native.separate_tokens(arrays, kind, classes, 0, 1) for kind in range(4)]
    calls += [
        lambda: _native.bleu_statistics(arrays, other, offsets, 4, 0, 0, 1, np.zeros(10, dtype=np.int64)),
        lambda: _native.chrf_statistics(arrays, other, offsets, (6, 2, 4.0, True, True), 0, 1, np.zeros((1, 24), np.int64)),
        lambda: _native.ter_statistics(arrays, other, offsets, 0, 1, np.zeros((1, 2), dtype=np.int64)),
        lambda: _native.edit_counts(other, offsets, arrays, 0, 0, 1, np.zeros(4, dtype=np.int64), stop),
        lambda: _native.edit_counts(other, offsets, arrays, 1, 0, 1, np.zeros(4, dtype=np.int64), stop),
    ]
    for call in calls:
        try:
            call()
        except ValueError as error:
            assert "within a character" in str(error)  # noqa: PT017


def test_a_text_cut_off_within_a_character_is_refused() -> None:
    for cut in (b"\xf0", b"\xf0\x9f", b"\xf0\x9f\x98", b"a\xe2\x80", b"a\xc3"):
        with pytest.raises(ValueError, match="ends within a character"):
            _native.separate_tokens(Texts.of_bytes([b"whole", cut]).arrays, 0, np.zeros(0, dtype=np.uint8), 0, 2)
