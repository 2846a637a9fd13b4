"""What tokens say of words' ends, and the probability of what may come there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge.scores.distributions.reduce import TokenEdges, WithColumns, WordBoundaries
from lmgauge.scores.distributions.reductions import Entropy
from lmgauge.text.documents import Corpus
from lmgauge.text.vocabulary import BOS, EOS

LINES = ["the cat sat", "a  dog ran", " x"]


@pytest.mark.parametrize(
    ("spelled", "unit", "marking"),
    [
        ([b" the", b" cat", b"s", b"\n"], "subword", "before"),
        ([b"the ", b"cat ", b" ", b"s"], "subword", "after"),
        ([b"the ", b"cat ", b" x", b"s"], "subword", "before"),
        ([b"t", b" ", b"\n"], "character", "apart"),
        ([b"t", b"h"], "byte", "none"),
        ([b"the", b"cat"], "word", "whole"),
    ],
)
def test_what_a_tokenizer_does_with_white_space(spelled: Sequence[bytes], unit: Any, marking: str) -> None:
    assert TokenEdges.of(spelled, unit).marking == marking


def train(**options: Any) -> Any:
    return lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2, tokenizer="character", **options)


def boundaries(model: Any, text: Corpus) -> list[float]:
    batches = list(WithColumns(model, word_boundaries=True).score(text))
    assert all(list(batch.extra)[-2:] == ["entropy", "word_boundary"] for batch in batches)
    return [value for batch in batches for value in batch.extra["word_boundary"].tolist()]


def mass(model: Any, before: Sequence[int], white: bool) -> float:
    p = np.exp(model.log_distribution([BOS, *before]))
    return sum(p[i] for i, token in enumerate(model.vocabulary.tokens) if i == EOS or token.isspace() == white)


def test_each_place() -> None:
    """Before "a": what opens a text; before " " and </s>: what a word may end with; behind " " the word has ended."""
    model = train()
    a, space, x = (model.vocabulary.id(token) for token in "a x")
    expected = [mass(model, [], False), mass(model, [a], True), 1.0, mass(model, [a, space, x], True)]
    assert boundaries(model, Corpus.from_strings(["a x"])) == pytest.approx(expected)
    opened = [mass(model, [], True), 1.0, mass(model, [space, x], True)]
    assert boundaries(model, Corpus.from_strings([" x"])) == pytest.approx(opened)


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_running_contexts(block_bytes: int) -> None:
    """A line behind </s> begins as a text does, in whatever blocks the text comes."""
    model = train(context="stream")
    text = Corpus.from_strings(["a", "x"], block_bytes=block_bytes)
    a, x = (model.vocabulary.id(token) for token in "ax")
    places = [([], False), ([a], True), ([a, EOS], False), ([a, EOS, x], True)]
    assert boundaries(model, text) == pytest.approx([mass(model, before, white) for before, white in places])


def test_lines_without_ends() -> None:
    """A sentence begins as a text does, whatever token the one before it ended with."""
    model = train(eos=False)
    text = Corpus.from_strings(["a", "x", " "])
    a = model.vocabulary.id("a")
    assert model.score_text("ax").tokens == ("a", "x")
    places = [([], False), ([], False), ([], True)]
    assert boundaries(model, text) == pytest.approx([mass(model, before, white) for before, white in places])
    assert boundaries(model, Corpus.from_strings(["ax"]))[1] == pytest.approx(mass(model, [a], True))


@pytest.mark.parametrize(("given", "expected"), [("a", False), ("a ", True), ("", None)])
def test_behind_given_text(given: str, expected: bool | None) -> None:
    """The first token of a target stands where the given text ended: within a word, or behind white space."""
    model = train()
    (block,) = Corpus.from_strings([f"{given}x"])
    shown = len(given)
    target = replace(block, starts=block.starts + shown, given_starts=block.starts)
    boundary = WordBoundaries(model)
    (batch,) = model.score([replace(block, starts=block.starts + shown)])
    columns = {"word_boundary": np.array([0.25, 0.5]), "_opening": np.array([0.75, 0.5])}
    (filled,) = boundary.fill([target], [replace(batch, extra=columns)])
    first = {True: 1.0, False: 0.25, None: 0.75}[expected]
    assert filled.extra["word_boundary"].tolist() == [first, 0.5]


def test_words_need_no_correction_and_no_look_at_the_vocabulary() -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2)
    assert WordBoundaries(model).reductions == (Entropy(),)
    assert boundaries(model, Corpus.from_strings(["the cat"])) == [1.0, 1.0, 1.0]


def test_beside_other_columns() -> None:
    model = WithColumns(train(), ["rank", "entropy"], word_boundaries=True)
    (batch,) = model.score(Corpus.from_strings(["a x"]))
    assert {"rank", "entropy", "word_boundary"} <= set(batch.extra) <= {"context", "rank", "entropy", "word_boundary"}
    assert model.word_marking == "apart"
    assert WithColumns(train(), ["rank"]).word_marking is None
    (block,) = Corpus.from_strings(["a x"])
    assert np.array_equal(model.score_block(block).extra["word_boundary"], batch.extra["word_boundary"])
