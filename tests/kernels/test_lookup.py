"""Scoring against the back-off recursion over dictionaries, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.reference import kernels as twin

from lmgauge import Corpus, train
from lmgauge._kernels import _native
from lmgauge.models.ngram.tables import NgramTables
from lmgauge.text.vocabulary import BOS, EOS

words = st.integers(0, 7)
lines = st.lists(st.lists(st.sampled_from("abcde"), max_size=8).map(" ".join), min_size=1, max_size=10).filter(any)
KINDS = ["modified-kneser-ney", "witten-bell", "good-turing", "laplace", "mle"]


def values(bits: int) -> float:
    return float(np.array(bits, np.uint32).view(np.float32))


class Twin:
    """A model as dictionaries: n-gram -> (probability, weight)."""

    def __init__(self, tables: NgramTables) -> None:
        self.grams: dict[twin.Gram, tuple[float, float]] = {}
        for gram in twin.decode_tables(tables.tables):
            self.grams |= {g: (values(first), values(second)) for g, (first, second) in gram.items()}
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


def test_links_to_suffixes() -> None:
    tables = model_tables(["a b c a b", "b c a", "c c"], "witten-bell", 4)
    below: NDArray[np.uint32] = np.zeros(0, np.uint32)
    grams = twin.decode_tables(tables.tables)
    at = [dict(zip(g, np.flatnonzero(t[:, 0]).tolist(), strict=True)) for g, t in zip(grams, tables.tables, strict=True)]
    for k, table in enumerate(tables.tables):
        links = np.empty(len(table), np.uint32)
        lower = [tables.tables[k - 1]] if k else []
        _native.link_suffixes(table, lower, tables.longest[k - 1] if k else 0, below, links)
        for gram, slot in at[k].items():
            assert links[slot] == (gram[1] if k == 0 else at[k - 1][gram[1:]])
        assert set(links[table[:, 0] == 0].tolist()) <= {2**32 - 1}
        below = links


def test_a_table_that_was_tampered_with_is_told() -> None:
    tables = model_tables(["a b c a b", "b c a", "c c"], "witten-bell", 3)
    table = tables.tables[0]
    checksum, entries, longest, bad = _native.check_table(table, 0, len(table), 8, 8)
    assert bad == -1
    assert entries == np.count_nonzero(table[:, 0])
    assert longest == tables.longest[0]
    parts = [_native.check_table(table, i, min(i + 3, len(table)), 8, 8)[0] for i in range(0, len(table), 3)]
    assert sum(parts) % 2**64 == checksum
    slot = int(np.flatnonzero(table[:, 0])[0])
    for probability, weight in ((np.nan, 1), (1.5, 1), (-1.5, 1), (0.5, np.nan), (0.5, -1), (0.5, np.inf)):
        changed = table.copy()
        changed.view(np.float32).reshape(-1, 4)[slot, 2:] = probability, weight
        assert _native.check_table(changed, 0, len(table), 8, 8)[3] == slot
    assert _native.check_table(table, 0, len(table), 2, 8)[3] >= 0
    assert _native.check_table(table, 0, len(table), 8, 3)[3] >= 0
    empty = table.copy()
    empty[np.flatnonzero(table[:, 0] == 0)[0], 1] = 1
    assert _native.check_table(empty, 0, len(table), 8, 8)[3] >= 0


def test_ids_outside_the_vocabulary_are_refused() -> None:
    tables = model_tables(["a b"], "witten-bell", 2)
    for call in (tables.score, tables.whole(eos=True).after):
        with pytest.raises(ValueError, match="outside the vocabulary"):
            call(np.array([1, 8], np.uint32))
