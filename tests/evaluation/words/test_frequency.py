"""Frequencies on the Zipf scale."""

from __future__ import annotations

import math

from lmgauge.evaluation.words.frequency import WordFrequencies, bare
from lmgauge.text.documents import Corpus
from lmgauge.text.tokenizers import make_tokenizer


def test_zipf_scale() -> None:
    """van Heuven et al. (2014): log10 of the count and one, per million of tokens and types, and 3."""
    text = Corpus.from_strings(["The cat saw the dog.", "The dog!", ""], block_bytes=8)
    values, counts = WordFrequencies(text, make_tokenizer("whitespace")).of(["the", "Dog", "«cat»", "bird", "--"])
    assert counts.tolist() == [3, 2, 1, 0, 0]
    tokens, types = 7, 4
    expected = [math.log10((count + 1) / ((tokens + types) / 1e6)) + 3 for count in (3, 2, 1, 0, 0)]
    assert values.round(12).tolist() == [round(value, 12) for value in expected]


def test_bare_words() -> None:
    assert [bare(word) for word in ("'Don't", "U.S.", "...", "Über-", "3.14,", "")] == [
        "don't",
        "u.s",
        "...",
        "über",
        "3.14",
        "",
    ]


def test_nothing_to_count_in() -> None:
    values, counts = WordFrequencies(Corpus.from_strings([""]), make_tokenizer("whitespace")).of(["a"])
    assert (values.tolist(), counts.tolist()) == ([9.0], [0])
