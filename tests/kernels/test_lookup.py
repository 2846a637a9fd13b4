"""Scoring against the back-off recursion over dictionaries, bit for bit."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import kernels as twin
from tests.reference.packed_tables import decode

from lmgauge import Corpus, train
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.models.segment_scores import TotalsBuffer
from lmgauge.text.vocabulary import BOS, EOS

words = st.integers(0, 7)
events = words.filter(lambda word: word != BOS)
lines = st.lists(st.lists(st.sampled_from("abcde"), max_size=8).map(" ".join), min_size=1, max_size=10).filter(any)
KINDS = ["modified-kneser-ney", "witten-bell", "good-turing", "laplace", "mle"]


class Twin:
    """A model as dictionaries: n-gram -> (probability, weight)."""

    def __init__(self, tables: NgramTables) -> None:
        self.grams: dict[twin.Gram, tuple[float, float]] = {}
        for grams in decode(tables.tables):
            self.grams |= grams
        self.unigrams = tables.unigrams.astype(np.float64).tolist()
        self.order, self.full, self.unseen = tables.order, tables.full_context, float(np.float32(tables.unseen))

    def p(self, word: int, context: twin.Gram) -> tuple[float, int]:
        """Probability, and order of the longest n-gram that is an event."""
        grams = [(*context[i:], word) for i in range(len(context))]
        matched = next((len(g) for g in grams if g in self.grams and math.copysign(1, self.grams[g][0]) > 0), 1)
        return (self._full(word, context) if self.full else self._back_off(word, context)), matched

    def _back_off(self, word: int, context: twin.Gram) -> float:
        if (*context, word) in self.grams:
            return abs(self.grams[(*context, word)][0])
        if not context:
            return float(self.unigrams[word][0])
        weight = self.unigrams[context[0]][1] if len(context) == 1 else self.grams.get(context, (0, 1.0))[1]
        return float(self._back_off(word, context[1:]) * weight)

    def _full(self, word: int, context: twin.Gram) -> float:
        if (*context, word) in self.grams:
            return self.grams[(*context, word)][0]
        if not context:
            return float(self.unigrams[word][0])
        if len(context) == 1:
            return float(self.unigrams[context[0]][1])
        return self.grams[context][1] if context in self.grams else self.unseen


def contexts(ids: list[int], order: int) -> list[tuple[int, twin.Gram]]:
    """(word, context) of every event."""
    found, begin = [], 0
    for i, word in enumerate(ids):
        if word == BOS:
            begin = i
        else:
            found.append((word, tuple(ids[max(begin, i - order + 1) : i])))
    return found


def model_tables(texts: list[str], kind: Any, order: int, prune: bool = False) -> NgramTables:
    options: dict[str, Any] = {"prune": 0.01} if prune and kind not in ("mle", "laplace") else {}
    vocabulary = list("abcde")
    return train(kind, Corpus.from_strings(texts), order=order, words=vocabulary, **options).tables


@settings(max_examples=200)
@given(lines, st.sampled_from(KINDS), st.integers(1, 5), st.booleans(), st.lists(words, max_size=40), st.integers(0, 5))
def test_scores(texts: list[str], kind: str, order: int, prune: bool, tail: list[int], skip: int) -> None:
    tables = model_tables(texts, kind, order, prune)
    slow = Twin(tables)
    ids = [BOS, *tail]
    events = tables.score(np.array(ids, np.uint32), skip=min(skip, len(ids)))
    expected = contexts(ids, order)
    expected = expected[len([i for i in ids[: min(skip, len(ids))] if i != BOS]) :]
    assert events.ids.tolist() == [word for word, _ in expected]
    assert events.kind.tolist() == [{0: 1, EOS: 2}.get(word, 0) for word, _ in expected]
    assert events.matched.tolist() == [slow.p(word, context)[1] for word, context in expected]
    for seen, (word, context) in zip(events.logprob.tolist(), expected, strict=True):
        p = slow.p(word, context)[0]
        assert seen == (math.log(p) if p > 0 else -math.inf) or seen == pytest.approx(math.log(p), rel=1e-15)


def test_long_texts_cross_blocks_of_the_kernel() -> None:
    """The kernel works through 512 tokens at a time; what it carries from one to the next must be all that counts."""
    random = np.random.default_rng(5)
    texts = [" ".join(random.choice(list("abcde"), 60)) for _ in range(30)]
    for kind in KINDS:
        tables = model_tables(texts, kind, 4)
        ids = random.integers(2, 8, 3000).astype(np.uint32)
        ids[random.random(3000) < 0.004] = BOS
        ids[0] = BOS
        whole = tables.score(ids)
        slow = Twin(tables)
        expected = [slow.p(word, context) for word, context in contexts(ids.tolist(), 4)]
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(whole.logprob, np.log([p for p, _ in expected]), rtol=1e-15)
        assert whole.matched.tolist() == [order for _, order in expected]
        for cut in (1, 511, 512, 513, 1024, 1500):
            begin = max(0, cut - 3)
            part = tables.score(ids[begin:], skip=cut - begin)
            count = len(part.logprob)
            if BOS not in ids[begin:cut].tolist() or ids[begin] == BOS:
                assert np.array_equal(part.logprob, whole.logprob[len(whole.logprob) - count :])


@given(
    lines,
    st.sampled_from(KINDS),
    st.integers(1, 5),
    st.lists(st.lists(events, max_size=30), max_size=5),
)
def test_sums_by_segment(texts: list[str], kind: str, order: int, segments: list[list[int]]) -> None:
    tables = model_tables(texts, kind, order)
    slow = Twin(tables)
    buffer = TotalsBuffer(len(segments))
    tables.sum(np.array([word for segment in segments for word in (BOS, *segment)], np.uint32), buffer.arrays)
    high, low, events, zeros, unseen, ends = (column.tolist() for column in buffer.arrays)
    for i, segment in enumerate(segments):
        p = [slow.p(word, context)[0] for word, context in contexts([BOS, *segment], order)]
        exact = Fraction((high[i] << 64) + low[i], 2**80)
        assert float(exact) == pytest.approx(math.fsum(math.log(value) for value in p if value > 0), rel=1e-14, abs=1e-18)
        assert (events[i], zeros[i]) == (len(segment), p.count(0.0))
        assert (unseen[i], ends[i]) == (segment.count(0), segment.count(EOS))


def test_sums_want_a_column_for_each_segment() -> None:
    tables = model_tables(["a b"], "laplace", 2)
    for ids, count in (([3, BOS], 1), ([BOS, 3], 2), ([BOS, 3, BOS], 1), ([BOS, 9], 1)):
        with pytest.raises(ValueError, match=r"column for each segment|begins with <s>|outside the vocabulary"):
            tables.sum(np.array(ids, np.uint32), TotalsBuffer(count).arrays)
