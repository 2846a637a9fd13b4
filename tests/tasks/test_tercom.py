"""Tercom's normalisation: by example, and word for word against sacreBLEU's tokenizer."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgauge.tasks.metrics.ter import tercom
from lmgauge.tasks.settings import TerOptions
from lmgauge.tasks.texts import Texts

CHOICES = list(product([False, True], repeat=4))
PIECES = [
    *"aA1 9.,-'s\n&;!?\"()[]{}~`^_/:@\t\x1c\x1f\x85",
    *(
        "'s",
        "\n-",
        "&amp;",
        "&lt;",
        "&gt;",
        "&quot;",
        " .",
        " ,",
        "1-",
        "ΑΣ",
        "\u03a3",
        "\u0130",
        "\u017f",
        "\u2028",
        "\u3000",
    ),
    *(
        "あ",
        "い",
        "ア",
        "カ",
        "ㇰ",
        "一",
        "㐀",
        "㈀",
        "㌀",
        "㼢",
        "㼣",
        "豈",
        "︰",
        "⺀",
        "㇀",
        "ー",
        "\U00020000",
        "\u0301",
        "\u00ad",
    ),
    *("、", "。", "「", "〔", "・", "｡", "．", "，", "？", "：", "；", "！", "＂", "（", "）"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def words(texts: list[str], *choices: bool) -> list[list[str]]:
    return [text.split() for text in tercom(Texts.of_strings(texts), TerOptions(*choices)).strings()]


def sacrebleu_words(texts: list[str], *choices: bool) -> list[list[str]]:
    tokenizer = pytest.importorskip("sacrebleu.tokenizers.tokenizer_ter").TercomTokenizer(*choices)
    return [tokenizer(text.rstrip()).split() for text in texts]


@settings(max_examples=600)
@given(st.lists(texts, max_size=4), st.sampled_from(CHOICES))
def test_words_are_sacrebleu_s(strings: list[str], choices: tuple[bool, ...]) -> None:
    assert words(strings, *choices) == sacrebleu_words(strings, *choices)


@given(
    st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=4),
    st.sampled_from(CHOICES),
)
def test_words_of_any_text_are_sacrebleu_s(strings: list[str], choices: tuple[bool, ...]) -> None:
    assert words(strings, *choices) == sacrebleu_words(strings, *choices)


def test_every_character_is_treated_as_sacrebleu_treats_it() -> None:
    characters = [f"x{chr(c)}7{chr(c)}" for c in range(1, 0x20000) if not 0xD800 <= c < 0xE000]
    strings = ["".join(characters[at : at + 100]) for at in range(0, len(characters), 100)]
    assert words(strings, True, False, True, True) == sacrebleu_words(strings, True, False, True, True)
    assert words(strings, False, True, True, False) == sacrebleu_words(strings, False, True, True, False)


@pytest.mark.parametrize("language", ["ar", "de", "en", "ko", "th", "zh-Hant"])
def test_words_of_sentences_are_sacrebleu_s(language: str, data: Path) -> None:
    lines = (data / f"pud.{language}.txt").read_text("utf-8").split("\n")
    for choices in CHOICES:
        assert words(lines, *choices) == sacrebleu_words(lines, *choices)


def test_by_example() -> None:
    text = "The DOG's 3,000 &lt;b&gt; end-of-\n-line, (1990-2000)."
    assert words([text]) == [text.lower().split()]
    assert words([text], False, False, False, True) == [text.split()]
    assert words([text], True) == [
        ["the", "dog", "'s", "3,000", "<", "b", ">", "end-of-line", ",", "(", "1990", "-", "2000", ")", "."]
    ]
    assert words([text], False, True) == [["the", "dog's", "3000", "&ltb&gt", "end-of-", "-line", "1990-2000"]]


def test_chinese_and_japanese() -> None:
    text = "彼は東京、へ行く！カタカナ"
    assert words([text], True, False, True) == [["彼", "は", "東", "京", "、", "へ", "行", "く", "！", "カタカナ"]]
    assert words([text], False, True, True) == [["彼は東京へ行くカタカナ"]]
    assert words([text], False, False, True) == [[text]]


def test_the_end_of_one_text_does_not_reach_the_next() -> None:
    """A final sigma is told by what follows in its own text; a comma is set apart unless a digit follows in it."""
    assert words(["ΑΣ", "Σα", "1.", "5", "x\n", "-y"], True) == [["ας"], ["σα"], ["1", "."], ["5"], ["x"], ["-y"]]
    assert words(["ΑΣ", "Α"]) == [["ας"], ["α"]]


def test_no_texts_and_empty_ones() -> None:
    assert words([]) == []
    assert words(["", " ", ""], True, True, True) == [[], [], []]


def test_more_texts_than_are_prepared_at_a_time() -> None:
    strings = [f"A{k}." for k in range(40_000)]
    assert words(strings, True) == [[f"a{k}", "."] for k in range(40_000)]


def test_nothing_to_do_copies_nothing() -> None:
    packed = Texts.of_strings(["A b."])
    assert tercom(packed, TerOptions(asian_support=True, case_sensitive=True)) is packed
