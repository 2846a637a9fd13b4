"""Clipped n-gram matches against counters of tuples: any words, any references, any order, any number of threads."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import bleu as twin

from lmgauge._kernels import _native
from lmgauge.tasks.texts import References, Texts

LENGTHS = ("closest", "shortest", "average")

few_words = st.lists(st.sampled_from(["a", "b", "ab", "the"]), max_size=12).map(" ".join)
odd_words = st.lists(
    st.sampled_from(
        ["abcdefg", "abcdefgh", "abcdefghi", "abcdefghj", "“abcdefg", "“abcdefh", "é", "\u00c2x", "x\x01y", "“", "”"]
    ),
    max_size=8,
).map("\u3000".join)
any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
texts = few_words | odd_words | any_text


def counted(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], order: int, length: str, ranges: int = 1
) -> np.ndarray:
    h, r = Texts.of_strings(hypotheses), References.of_lists(references)
    out = np.full((len(h), 2 + 2 * order), -1, dtype=np.int64)
    bounds = np.linspace(0, len(h), ranges + 1).astype(int)
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        _native.bleu_statistics(
            (h.data, h.starts, h.ends),
            (r.texts.data, r.texts.starts, r.texts.ends),
            *(r.offsets, order, LENGTHS.index(length), begin, end, out.reshape(-1)),
        )
    return out


@given(
    st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=4)), max_size=6),
    st.integers(1, 6) | st.just(64),
    st.sampled_from(LENGTHS),
    st.integers(1, 3),
)
def test_counts_are_those_of_the_twin(segments: list[tuple[str, list[str]]], order: int, length: str, ranges: int) -> None:
    expected = [twin.statistics(hypothesis, references, order, length) for hypothesis, references in segments]
    found = counted([h for h, _ in segments], [r for _, r in segments], order, length, ranges)
    assert found.tolist() == expected


@given(st.lists(few_words, min_size=1, max_size=5), few_words, st.randoms())
def test_the_order_of_references_changes_nothing(references: list[str], hypothesis: str, random: object) -> None:
    shuffled = sorted(references, key=lambda _: random.random())  # type: ignore[attr-defined]
    first, second = counted([hypothesis] * 2, [references, shuffled], 4, "closest").tolist()
    assert first == second


@given(texts, texts)
def test_a_small_segment_behind_a_large_one(hypothesis: str, reference: str) -> None:
    """The tables keep what a segment before left in them."""
    large = " ".join(f"w{i % 700}" for i in range(2000))
    alone = counted([hypothesis], [[reference]], 4, "closest")
    behind = counted([large, hypothesis, large], [[large], [reference], [large]], 4, "closest")
    assert behind[1].tolist() == alone[0].tolist()
    assert behind[0].tolist() == behind[2].tolist() == [2000, 2000, 2000, 1999, 1998, 1997, 2000, 1999, 1998, 1997]


def test_words_that_end_where_the_data_ends() -> None:
    for size in range(1, 20):
        word = "x" * size
        assert counted([word], [[word]], 1, "closest").tolist() == [[1, 1, 1, 1]]
        assert counted([word], [[word[:-1] + "y"]], 1, "closest").tolist() == [[1, 1, 0, 1]]


def test_clipping_takes_the_reference_that_has_most() -> None:
    """Papineni et al. (2002), section 2.1, example 2: "the" seven times, of which two count."""
    rows = counted(["the the the the the the the"], [["the cat is on the mat", "there is a cat on the mat"]], 2, "closest")
    assert rows.tolist() == [[7, 7, 2, 0, 7, 6]]


def test_lengths() -> None:
    references = [["a b c d", "a b", "a b c d e f"]]
    assert counted(["x x x"], references, 1, "closest")[0, 1] == 2
    assert counted(["x x x x"], references, 1, "closest")[0, 1] == 4
    assert counted(["x x x"], references, 1, "shortest")[0, 1] == 2
    assert counted(["x x x"], references, 1, "average")[0, 1] == 4 * 720720
    assert counted([""], [["a", ""]], 1, "closest")[0].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("words", [["w"], ["a", "b"], [f"word{i}" for i in range(50_000)]])
def test_a_line_of_a_million_words_takes_linear_time(words: list[str]) -> None:
    def seconds(count: int) -> float:
        line = " ".join(words[i % len(words)] for i in range(count))
        begin = time.process_time()
        row = counted([line], [[line]], 4, "closest")[0].tolist()
        assert row == [count, count, *(count - n for n in range(4)), *(count - n for n in range(4))]
        return time.process_time() - begin

    short = min(seconds(100_000) for _ in range(3))
    assert seconds(1_000_000) < 60 * short + 0.5


def test_shapes_are_checked() -> None:
    texts, references = Texts.of_strings(["a"]), References.of_lists(["a"])
    arrays = (texts.data, texts.starts, texts.ends)
    with pytest.raises(ValueError, match="shapes"):
        _native.bleu_statistics(arrays, arrays, references.offsets, 4, 0, 0, 1, np.zeros(9, dtype=np.int64))
    with pytest.raises(ValueError, match="order"):
        _native.bleu_statistics(arrays, arrays, references.offsets, 65, 0, 0, 1, np.zeros(132, dtype=np.int64))
