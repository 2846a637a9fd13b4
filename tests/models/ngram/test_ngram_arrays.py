"""N-grams as arrays: to tables and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus
from lmgauge.models.ngram.ngram_arrays import add_to_contexts, levels_of, reweighted, tables_of

LINES = ["the cat sat on the mat", "the dog sat", "a cat and a dog sat on a mat", "the mat"]


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_there_and_back(order: int) -> None:
    model = lmgauge.train("modified-kneser-ney", Corpus.from_strings(LINES), order=order, prune=1e-2)
    levels = levels_of(model.tables)
    again = levels_of(tables_of(model.tables.unigrams, levels))
    for one, other in zip(levels, again, strict=True):
        for name in ("parents", "words", "suffixes", "probabilities", "weights", "listed"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_links_name_the_beginning_and_the_end() -> None:
    model = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=4)
    spelled = [[(i,) for i in range(len(model.vocabulary))]]
    for level in levels_of(model.tables):
        assert np.all(np.diff(level.keys.astype(np.int64)) > 0)
        grams = [(*spelled[-1][p], w) for p, w in zip(level.parents.tolist(), level.words.tolist(), strict=True)]
        assert [gram[1:] for gram in grams] == [spelled[-1][s] for s in level.suffixes.tolist()]
        spelled.append(grams)


def test_weights_of_a_model_that_sums_to_one_are_made_again() -> None:
    model = lmgauge.train("good-turing", Corpus.from_strings(LINES), order=3)
    levels = levels_of(model.tables)
    unigrams, renewed = reweighted(model.tables.unigrams, levels)
    assert unigrams == pytest.approx(model.tables.unigrams, abs=1e-5)
    for before, after in zip(levels, renewed, strict=True):
        assert after.weights == pytest.approx(before.weights, abs=1e-5)
        assert np.array_equal(after.probabilities, before.probabilities)


@given(st.lists(st.floats(0, 1, width=32), max_size=50), st.randoms(use_true_random=False), st.integers(0, 50))
def test_sums_of_contexts_do_not_depend_on_their_order(values: list[float], random: Any, cut: int) -> None:
    total = math.fsum(values) or 1.0
    probabilities = np.array([value / total for value in values], np.float32).astype(np.float64)
    one, other = np.zeros(3), np.zeros((2, 3))
    contexts = np.full(len(values), 1, np.uint32)
    add_to_contexts(one, contexts, probabilities)
    shuffled = random.sample(probabilities.tolist(), len(values))
    for part, sums in zip((shuffled[:cut], shuffled[cut:]), other, strict=True):
        add_to_contexts(sums, contexts[: len(part)], np.array(part))
    assert one.tolist() == other.sum(axis=0).tolist()
    assert one.tolist() == [0, pytest.approx(math.fsum(probabilities), abs=len(values) * 2.0**-53), 0]
