"""The kernel of chrF against a twin of multisets: any alphabet, any order, any number of references and threads."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import chrf as twin

from lmgauge._kernels import _native
from lmgauge.tasks.texts import References, Texts
from lmgauge.text.segments import WHITE_SPACE

WHITE = "".join(sorted(WHITE_SPACE))
# Few letters, so that n-grams repeat; code points of every length in UTF-8, marks that combine, all white space.
ALPHABET = "aab.,!ab" + "ä߿́तक্‌中語の" + "\U0001f600\U0001f468‍\U0001f469\U0010ffff" + WHITE
lines = st.text(st.sampled_from(ALPHABET), max_size=40)
anything = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=30)
texts = st.one_of(
    lines, anything, st.text("ab ", max_size=60), st.text("".join(map(chr, range(33, 127))) + "  ", max_size=30)
)
segments = st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=4)), min_size=1, max_size=5)


def counted(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    char_order: int = 6,
    word_order: int = 0,
    beta: float = 2,
    whitespace: bool = False,
    eps_smoothing: bool = False,
    parts: int = 1,
) -> list[list[int]]:
    packed, others = Texts.of_strings(hypotheses), References.of_lists(references)
    out = np.zeros((len(hypotheses), 3 * (char_order + word_order)), dtype=np.int64)
    options = (char_order, word_order, float(beta**2), eps_smoothing, whitespace)
    bounds = [len(hypotheses) * i // parts for i in range(parts + 1)]
    for begin, end in pairwise(bounds):
        _native.chrf_statistics(
            (packed.data, packed.starts, packed.ends),
            (others.texts.data, others.texts.starts, others.texts.ends),
            others.offsets,
            options,
            begin,
            end,
            out,
        )
    return out.tolist()


@given(
    segments,
    st.integers(0, 9),
    st.integers(1, 4),
    st.sampled_from([1, 2, 3, 0.5]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
)
def test_the_counts_are_those_of_multisets(
    given_segments: list[tuple[str, list[str]]],
    char_order: int,
    word_order: int,
    beta: float,
    whitespace: bool,
    eps_smoothing: bool,
    parts: int,
) -> None:
    hypotheses, references = [h for h, _ in given_segments], [r for _, r in given_segments]
    found = counted(
        hypotheses,
        references,
        char_order=char_order,
        word_order=word_order,
        beta=beta,
        whitespace=whitespace,
        eps_smoothing=eps_smoothing,
        parts=parts,
    )
    assert found == [
        twin.statistics(
            h,
            r,
            char_order=char_order,
            word_order=word_order,
            beta=beta,
            whitespace=whitespace,
            eps_smoothing=eps_smoothing,
        )
        for h, r in given_segments
    ]


@pytest.mark.parametrize("space", sorted(WHITE))
def test_all_white_space_is_left_out_and_separates_words(space: str) -> None:
    found = counted([f"ab{space}c"], [["abc"]], char_order=3, word_order=1)
    assert found == [[3, 3, 3, 2, 2, 2, 1, 1, 1, 2, 1, 0]]
    kept = counted([f"ab{space}c"], [["abc"]], char_order=1, whitespace=True)
    assert kept == [[4, 3, 3]]


def test_a_long_text_is_counted_as_a_short_one() -> None:
    """Tables that grow, and shrink again for the next segment."""
    generator = random.Random(1)
    long = ["".join(generator.choices("abc d\u4e2d", k=20_000)) for _ in range(2)]
    hypotheses, references = ["a b", long[0], "a b", "b"], [["a b"], [long[1]], ["a c"], ["b"]]
    found = counted(hypotheses, references, word_order=2)
    assert found == [twin.statistics(h, r, word_order=2) for h, r in zip(hypotheses, references, strict=True)]


def test_one_letter_a_million_times() -> None:
    """All n-grams of an order fall into one slot; nothing is quadratic."""
    n = 1_000_000
    found = counted(["a" * n], [["a" * (n // 2)]], char_order=3)
    assert found == [[n, n // 2, n // 2, n - 1, n // 2 - 1, n // 2 - 1, n - 2, n // 2 - 2, n // 2 - 2]]


@pytest.mark.parametrize(
    ("begin", "end", "columns", "offsets", "options"),
    [
        (0, 3, 3, [0, 1, 2], (1, 0, 4.0, False, False)),
        (2, 1, 3, [0, 1, 2], (1, 0, 4.0, False, False)),
        (0, 2, 6, [0, 1, 2], (1, 0, 4.0, False, False)),
        (0, 2, 3, [0, 1], (1, 0, 4.0, False, False)),
        (0, 2, 3, [0, 2, 1], (1, 0, 4.0, False, False)),
        (0, 2, 3, [0, 1, 3], (1, 0, 4.0, False, False)),
        (0, 2, 3, [0, 1, 2], (-1, 2, 4.0, False, False)),
    ],
)
def test_what_does_not_fit_is_refused(
    begin: int, end: int, columns: int, offsets: list[int], options: tuple[int, int, float, bool, bool]
) -> None:
    packed = Texts.of_strings(["a", "b"])
    arrays = (packed.data, packed.starts, packed.ends)
    out = np.zeros((2, columns), dtype=np.int64)
    with pytest.raises(ValueError, match=r"range|shapes|references|offsets|orders"):
        _native.chrf_statistics(arrays, arrays, np.array(offsets, dtype=np.int64), options, begin, end, out)
    assert not out.any()
