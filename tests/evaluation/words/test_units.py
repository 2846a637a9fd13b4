"""Words of texts, and how frequent they are in a training text."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from lmgauge.evaluation.words.merging import Units, WordFrequencies, at_white_space, bare, words_of
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import make_tokenizer


def block(*texts: str) -> Segments:
    (one,) = Corpus.from_strings(texts)
    return one


def words(segments: Segments, kind: str = "whitespace") -> list[str]:
    units = words_of(segments, make_tokenizer(kind))
    data = segments.data.tobytes()
    assert np.array_equal(
        np.flatnonzero(~units.between), np.concatenate([np.zeros(0, int), *map(np.arange, units.starts, units.ends)])
    )
    return [data[start:end].decode() for start, end in zip(units.starts.tolist(), units.ends.tolist(), strict=True)]


def test_white_space() -> None:
    segments = block(" für  uns,\tund\u00a0er ", "", "sat")
    assert words(segments) == ["für", "uns,", "und\u00a0er", "sat"]
    units = words_of(segments, make_tokenizer("whitespace"))
    assert units.owners.tolist() == [0, 0, 0, 2]
    assert units.numbers().tolist() == [1, 2, 3, 1]


def test_icu() -> None:
    pytest.importorskip("icu4py")
    segments = block("für uns, und\u00a0er")
    assert words(segments, "icu") == ["für", "uns", ",", "und", "er"]
    begins, ends = at_white_space(segments, words_of(segments, make_tokenizer("icu")))
    assert begins.tolist() == [True, True, False, True, False]  # U+00A0 is not white space to a tokenizer
    assert ends.tolist() == [True, False, True, False, True]


def test_what_was_given_is_what_a_word_begins_behind() -> None:
    segments = block("a cat sat", "x")
    units = Units(*(np.array([place], np.int64) for place in (3, 5, 0)), np.zeros(10, bool))
    for begin, expected in ((2, True), (3, False)):
        part = replace(segments, starts=np.array([begin, 9]), given_starts=np.array([0, 9]))
        units = replace(units, starts=np.array([begin]))
        assert at_white_space(part, units)[0].tolist() == [expected]


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
