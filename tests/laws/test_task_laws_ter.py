"""Laws of TER over any words."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.tasks.metrics.compiled import LENGTH_SCALE
from lmgauge.tasks.metrics.ter import TER
from lmgauge.tasks.texts import References, Texts

sentences = st.lists(st.sampled_from(["a", "b", "c", "d", "ä", "的"]), max_size=30).map(" ".join)
segments = st.lists(st.tuples(sentences, st.lists(sentences, min_size=1, max_size=3)), min_size=1, max_size=6)


def rows(pairs: list[tuple[str, list[str]]], threads: int = 1) -> list[list[int]]:
    hypotheses, references = Texts.of_strings([h for h, _ in pairs]), References.of_lists([tuple(r) for _, r in pairs])
    return TER().statistics(hypotheses, references, threads).tolist()


@given(segments, st.integers(1, 4))
def test_segments_do_not_depend_on_their_neighbours(pairs: list[tuple[str, list[str]]], threads: int) -> None:
    assert rows(pairs, threads) == [row for pair in pairs for row in rows([pair])]


@given(sentences)
def test_a_text_needs_no_edit_to_itself(text: str) -> None:
    assert rows([(text, [text])]) == [[0, len(text.split()) * LENGTH_SCALE]]


@given(sentences, sentences)
def test_edits_are_bounded_by_lengths(hypothesis: str, reference: str) -> None:
    n, m = len(hypothesis.split()), len(reference.split())
    ((edits, _),) = rows([(hypothesis, [reference])])
    assert abs(n - m) <= edits <= max(n, m)


@given(sentences, st.lists(sentences, min_size=1, max_size=4), sentences)
def test_a_further_reference_never_costs(hypothesis: str, references: list[str], further: str) -> None:
    (before,), (after,) = rows([(hypothesis, references)]), rows([(hypothesis, [*references, further])])
    assert after[0] <= before[0]
    assert rows([(hypothesis, references[::-1])]) == [before]


@given(segments)
def test_the_corpus_is_the_sum_of_its_segments(pairs: list[tuple[str, list[str]]]) -> None:
    table = np.array(rows(pairs))
    score = TER().score(table.sum(axis=0), None)
    assert score.num_edits == sum(edits for edits, _ in table.tolist())
    assert score.score == TER().scores(table.sum(axis=0, keepdims=True).astype(np.float64))[0]
