"""Laws of models that are read as bytes: the rows of a text sum to those of the model, and distributions to one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus, LanguageModel
from lmgauge.models.combined.spelling.byte_view import ByteView
from lmgauge.text.vocabulary import BOS, EOS

PARTS = ["a", "b", "ab", "abc", "é", "è", "漢", "漢字", "😀", "<unk>", "\x85", "\u3000", " ", " ", " ", "  ", "\t", " \n"]
lines = st.lists(st.lists(st.sampled_from(PARTS), max_size=8).map("".join), min_size=1, max_size=6)
kinds = st.sampled_from(["witten-bell", "laplace", "kneser-ney", "absolute-discounting", "good-turing"])


@st.composite
def models(draw: st.DrawFn) -> LanguageModel:
    """Spelled words or characters of a small text, any order and smoothing."""
    options: dict[str, Any] = {
        "tokenizer": draw(st.sampled_from(["whitespace", "character"])),
        "order": draw(st.integers(1, 3)),
    }
    text = Corpus.from_strings(["a b ab", *draw(lines)])
    learn: Any = lmgauge.train
    model: LanguageModel = learn(draw(kinds), text, vocabulary="spelled", reserved="escape", **options)
    return model


def rows(model: LanguageModel, texts: list[str], block_bytes: int = 1 << 20) -> list[list[float]]:
    each: list[list[float]] = []
    for batch in model.score(Corpus.from_strings(texts, block_bytes=block_bytes)):
        each += [part.tolist() for part in np.split(batch.logprob, np.cumsum(batch.segment_events)[:-1])]
    return each


@given(model=models(), texts=lines)
@settings(max_examples=60, deadline=None)
def test_bytes_cost_what_the_model_says(model: LanguageModel, texts: list[str]) -> None:
    by_byte = rows(ByteView(model), texts)
    for text, own, of_bytes in zip(texts, rows(model, texts), by_byte, strict=True):
        assert len(of_bytes) == len(text.encode()) + 1
        assert math.fsum(of_bytes) == pytest.approx(math.fsum(own), abs=1e-9)
    assert rows(ByteView(model), texts, block_bytes=1) == by_byte


@given(model=models(), texts=lines)
@settings(max_examples=25, deadline=None)
def test_rows_are_distributions_that_sum_to_one(model: LanguageModel, texts: list[str]) -> None:
    view = ByteView(model)
    for text, scored in zip(texts, rows(view, texts), strict=True):
        seen = [BOS]
        for token, logprob in zip([*(3 + byte for byte in text.encode()), EOS], scored, strict=True):
            following = view.log_distribution(np.array(seen, np.uint32))
            assert following[token] == pytest.approx(logprob, abs=1e-9)
            assert np.exp(following).sum() == pytest.approx(1, abs=1e-6)  # tables hold 32 bits
            seen.append(token)


@given(model=models(), begin=st.binary(max_size=6))
@settings(max_examples=60, deadline=None)
def test_distributions_sum_to_one_after_any_bytes(model: LanguageModel, begin: bytes) -> None:
    following = ByteView(model).log_distribution([BOS, *(3 + byte for byte in begin)])
    assert np.exp(following).sum() == pytest.approx(1, abs=1e-6)
    assert not np.isnan(following).any()
