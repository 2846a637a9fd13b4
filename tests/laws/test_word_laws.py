"""Words: their probabilities sum to at most one, sums of words are sums of rows, and fast and slow ways agree."""

from __future__ import annotations

import itertools
import math
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.words import word_surprisals

import lmgauge
from lmgauge.evaluation.words.merging import find_owners, words_of
from lmgauge.models.custom import CustomModel
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments
from lmgauge.text.tokenizers import make_tokenizer
from lmgauge.text.tokens import TokenizerBase, Tokens, TokenUnit
from lmgauge.text.vocabulary import BOS

LINES = ["the cat sat on the mat", "a  cat\tran", "the dog, the cat", " für 😀 uns", "sat."]
TEXTS = st.lists(st.text(alphabet="thecaosd,. \t\u00a0ü😀x", max_size=25), min_size=1, max_size=4)


class Pieces(TokenizerBase):
    """Pieces of one letter: " a" and " b" begin words, "a" and "b" continue them."""

    name = "pieces"
    unit: TokenUnit = "subword"
    kernel = None
    vocabulary = (" a", " b", "a", "b")

    def tokenize(self, segments: Segments) -> Tokens:
        cut = [self._cut(segments.text(i).decode()) for i in range(len(segments))]
        pieces = [piece.encode() for part in cut for piece in part]
        bounds = np.cumsum([0, *map(len, pieces)])
        counts = np.array([len(part) for part in cut], np.int64)
        lengths = [np.cumsum([len(piece) for piece in part]) for part in cut]
        ends = np.concatenate([np.zeros(0, np.int64), *lengths]).astype(np.int64)
        data = np.frombuffer(b"".join(pieces), np.uint8)
        return Tokens(data, bounds[:-1], bounds[1:], counts, ends, np.zeros(len(segments), bool))

    @staticmethod
    def _cut(text: str) -> list[str]:
        return re.findall(" ?.", text)

    def detokenize(self, tokens: Any) -> str:
        return "".join(tokens)


class Random(CustomModel):
    """Any distribution after any context, the same each time."""

    label = "random"

    def __init__(self, seed: int, spread: float) -> None:
        super().__init__(Pieces.vocabulary, Pieces())
        self._seed, self._spread = seed, spread

    def log_distribution(self, context_ids: Any) -> Any:
        drawn = np.random.default_rng([self._seed, *np.asarray(context_ids).tolist()]).normal(size=len(self.vocabulary))
        drawn = self._spread * drawn
        drawn[[0, BOS]] = -np.inf
        return drawn - np.logaddexp.reduce(drawn)


WORDS = ["".join(letters) for size in (1, 2, 3, 4) for letters in itertools.product("ab", repeat=size)]


def sums(model: Any, before: str) -> tuple[float, float]:
    """What the probabilities of all words up to four letters after a text sum to: corrected, and as sums of pieces."""
    rows = lmgauge.word_surprisal(model, texts=[f"{before}{word}" for word in WORDS]).to_pandas().groupby("text_id").last()
    return float((2.0**-rows.surprisal_corrected).sum()), float((2.0**-rows.surprisal).sum())


@given(seed=st.integers(0, 10**6), spread=st.floats(0, 4), before=st.sampled_from(["", "a ", "ab ba "]))
@settings(max_examples=12, deadline=None)
def test_probabilities_of_words_sum_to_at_most_one(seed: int, spread: float, before: str) -> None:
    corrected, _ = sums(Random(seed, spread), before)
    assert corrected <= 1 + 1e-9


def test_sums_of_pieces_are_not_probabilities_of_words() -> None:
    """A piece counts for each longer word that begins with it: of eight models, three sums are above one."""
    pairs = [sums(Random(seed, 4.0), "a ") for seed in range(8)]
    assert [pieces > 1 for _, pieces in pairs].count(True) == 3
    assert max(corrected for corrected, _ in pairs) <= 1


@cache
def model(tokenizer: str) -> Any:
    return lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=3, tokenizer=tokenizer)


@pytest.mark.parametrize("tokenizer", ["character", "byte", "whitespace"])
@given(texts=TEXTS)
@settings(max_examples=40, deadline=None)
def test_words_are_those_of_the_slow_way(tokenizer: str, texts: list[str]) -> None:
    rows = lmgauge.word_surprisal(model(tokenizer), texts=texts).to_rows()
    expected = [row for text in texts for row in word_surprisals(model(tokenizer), text)]
    assert [row["word"] for row in rows] == [word for word, _, _ in expected]
    assert [row["surprisal"] for row in rows] == pytest.approx([surprisal for _, surprisal, _ in expected])
    assert [row["surprisal_corrected"] for row in rows] == pytest.approx([corrected for _, _, corrected in expected])


@pytest.mark.parametrize("tokenizer", ["character", "byte", "whitespace"])
@given(texts=TEXTS)
@settings(max_examples=40, deadline=None)
def test_no_row_is_lost_or_counted_twice(tokenizer: str, texts: list[str]) -> None:
    scorer, text = model(tokenizer), Corpus.from_strings(texts)
    words = lmgauge.word_surprisal(scorer, texts=texts)
    assert words.bits + words.rest_bits == pytest.approx(lmgauge.evaluate(scorer, text).log_probability / -math.log(2))
    (block,), (batch,) = list(text), list(scorer.score(text))
    units = words_of(block, make_tokenizer("whitespace"))
    owners = find_owners(block, batch, units, scorer.context_policy)
    counts = np.bincount(owners.of_row[owners.of_row >= 0], minlength=len(units))
    assert words.rows.column("pieces").to_pylist() == counts.tolist()
    assert np.all(np.diff(owners.of_row[owners.of_row >= 0]) >= 0)  # in the order of the text
