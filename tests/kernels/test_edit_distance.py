"""The kernel of edits against its twin and against rapidfuzz: the same alignment, not only the same distance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import edit_distance as twin

from lmgauge._kernels import _native
from lmgauge.tasks.texts import References, Texts
from lmgauge.text.segments import WHITE_SPACE

WORD, CHARACTER = 0, 1

# Few words, so that many alignments tie; with and without the ones that need more than a byte.
words = st.lists(st.sampled_from(["a", "b", "c", "ß", "中", "abcdefgh", "abcdefghi"]), max_size=90)
characters = st.text("ab 中\t\U0001f600", max_size=150)


def arrays(texts: Texts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return texts.data, texts.starts, texts.ends


def counted(references: Sequence[str | list[str]], hypotheses: Sequence[str], unit: int, parts: int = 1) -> list[list[int]]:
    many, texts = References.of_lists(references), Texts.of_strings(hypotheses)
    out = np.full((len(texts), 4), -1, dtype=np.int64)
    bounds = [len(texts) * i // parts for i in range(parts + 1)]
    for begin, end in pairwise(bounds):
        stop = np.zeros(1, dtype=np.uint8)
        _native.edit_counts(arrays(many.texts), many.offsets, arrays(texts), unit, begin, end, out.reshape(-1), stop)
    return out.tolist()


def operations(references: Sequence[str], hypotheses: Sequence[str], unit: int) -> list[list[int]]:
    one, other = Texts.of_strings(references), Texts.of_strings(hypotheses)
    stop = np.zeros(1, dtype=np.uint8)
    found, ends = _native.edit_operations(arrays(one), arrays(other), unit, 0, len(one), stop)
    return [part.tolist() for part in np.split(found, ends[:-1])]


def units(text: str, unit: int) -> list[str]:
    return text.split() if unit == WORD else list(text.strip())


def taken_by_rapidfuzz(reference: list[str], hypothesis: list[str]) -> list[int]:
    levenshtein = pytest.importorskip("rapidfuzz.distance").Levenshtein
    code = {"equal": twin.EQUAL, "replace": twin.SUBSTITUTE, "delete": twin.DELETE, "insert": twin.INSERT}
    steps = levenshtein.opcodes(reference, hypothesis)
    return [
        code[step.tag] for step in steps for _ in range(max(step.src_end - step.src_start, step.dest_end - step.dest_start))
    ]


def assert_agrees(reference: str, hypothesis: str, unit: int, *, with_twin: bool = True) -> list[int]:
    (found,) = operations([reference], [hypothesis], unit)
    one, other = units(reference, unit), units(hypothesis, unit)
    if with_twin:
        assert found == twin.align(one, other)
        assert found.count(twin.EQUAL) == len(found) - twin.distance(one, other)
    assert found == taken_by_rapidfuzz(one, other)
    assert counted([reference], [hypothesis], unit) == [[found.count(operation) for operation in range(4)]]
    return found


@given(words, words)
def test_words_are_aligned_as_the_twin_does(reference: list[str], hypothesis: list[str]) -> None:
    assert_agrees(" ".join(reference), "\t".join(hypothesis), WORD)


@given(characters, characters)
def test_characters_are_aligned_as_the_twin_does(reference: str, hypothesis: str) -> None:
    assert_agrees(reference, hypothesis, CHARACTER)


def changed(rng: random.Random, text: list[str], alphabet: Sequence[str], rate: float) -> list[str]:
    """A text with that share of its units deleted, replaced or doubled."""
    out: list[str] = []
    for unit in text:
        kind = rng.randrange(3) if rng.random() < rate else 3
        if kind:
            out.append(rng.choice(alphabet) if kind == 1 else unit)
        if kind == 2:
            out.append(rng.choice(alphabet))
    return out


@pytest.mark.parametrize("size", [63, 64, 65, 127, 128, 129, 600])
@pytest.mark.parametrize("kinds", [1, 2, 30])
def test_at_the_edges_of_blocks(size: int, kinds: int) -> None:
    rng = random.Random(size * 100 + kinds)
    alphabet = [f"w{i}" for i in range(kinds)]
    for rate in (0.05, 0.4, 1.0):
        reference = rng.choices(alphabet, k=size)
        assert_agrees(" ".join(reference), " ".join(changed(rng, reference, alphabet, rate)), WORD)


@pytest.mark.parametrize(("kinds", "rate"), [(2, 0.3), (5, 0.05), (4000, 0.2), (4000, 1.0)])
def test_long_texts_are_divided_as_rapidfuzz_does(kinds: int, rate: float) -> None:
    rng = random.Random(kinds)
    alphabet = [f"w{i}" for i in range(kinds)]
    reference = rng.choices(alphabet, k=2600)
    hypothesis = changed(rng, reference, alphabet, rate)
    assert 2 * len(reference) * len(hypothesis) // 8 > twin.LARGEST_MATRIX
    assert_agrees(" ".join(reference), " ".join(hypothesis), WORD)
    assert assert_agrees(" ".join(hypothesis), " ".join(reference), WORD)


def test_very_long_texts_too() -> None:
    rng = random.Random(3)
    alphabet = "abcdefghijklmnopqrstuvwxyz "
    reference = rng.choices(alphabet, k=20_000)
    for rate in (0.001, 0.1):
        hypothesis = changed(rng, reference, alphabet, rate)
        moved = [*hypothesis[9_000:], *hypothesis[:9_000]]
        assert_agrees("".join(reference), "".join(hypothesis), CHARACTER, with_twin=False)
        assert_agrees("".join(reference), "".join(moved), CHARACTER, with_twin=False)
    words = [f"w{int(rng.paretovariate(0.7))}" for _ in range(10_000)]
    assert assert_agrees(" ".join(words), " ".join(changed(rng, words, words, 0.15)), WORD, with_twin=False)
    # All of the hypothesis' first half is inserted.
    assert assert_agrees(" ".join(words[:1000]), " ".join(["x"] * 5000 + words[:999] + ["y"]), WORD, with_twin=False)


def test_a_line_of_ten_megabytes_needs_no_matrix() -> None:
    word = "ab" * 500
    line = " ".join(f"{word}{i}" for i in range(10_000))
    assert counted([line], [line.replace(f"{word}77 ", "")], WORD) == [[9_999, 0, 1, 0]]
    assert counted([line], [line[:-1]], CHARACTER) == [[len(line) - 1, 0, 1, 0]]
    assert counted([line], ["b b"], CHARACTER)[0][2:] == [len(line) - 3, 0]
    assert counted(["b b"], [line], CHARACTER)[0] == [3, 0, 0, len(line) - 3]


@given(st.lists(st.tuples(st.lists(words.map(" ".join), min_size=1, max_size=4), words.map(" ".join)), max_size=6))
def test_of_several_references_the_nearest_and_first_counts(segments: list[tuple[list[str], str]]) -> None:
    def best(references: list[str], hypothesis: str) -> list[int]:
        found = [twin.align(reference.split(), hypothesis.split()) for reference in references]
        nearest = min(found, key=lambda steps: len(steps) - steps.count(twin.EQUAL))
        return [nearest.count(operation) for operation in range(4)]

    references, hypotheses = [many for many, _ in segments], [hypothesis for _, hypothesis in segments]
    expected = [best(*segment) for segment in segments]
    assert counted(references, hypotheses, WORD) == expected
    assert counted(references, hypotheses, WORD, parts=3) == expected


def test_white_space_is_pythons() -> None:
    white = "".join(sorted(WHITE_SPACE))
    assert counted([f"{white}a{white}b{white}"], ["a b"], WORD) == [[2, 0, 0, 0]]
    assert counted([f"{white}a{white}b{white}"], [f"a{white}b"], CHARACTER) == [[2 + len(white), 0, 0, 0]]
    assert counted([white], [""], CHARACTER) == [[0, 0, 0, 0]]


def test_words_are_told_apart_by_all_their_bytes() -> None:
    rng = random.Random(0)
    long = ["".join(rng.choices("ab", k=rng.randrange(1, 20))) for _ in range(3000)]
    other = rng.sample(long, len(long))
    assert_agrees(" ".join(long[:400]), " ".join(other[:400]), WORD)


def test_a_long_call_ends_when_told_to() -> None:
    texts = Texts.of_strings(["ab" * 50_000])
    other = Texts.of_strings(["cd" * 50_000])
    out, stop = np.zeros(4, dtype=np.int64), np.ones(1, dtype=np.uint8)
    with pytest.raises(RuntimeError, match="stopped"):
        _native.edit_counts(arrays(texts), np.array([0, 1]), arrays(other), CHARACTER, 0, 1, out, stop)
    with pytest.raises(RuntimeError, match="stopped"):
        _native.edit_operations(arrays(texts), arrays(other), CHARACTER, 0, 1, stop)
    assert not out.any()


def test_what_does_not_fit_is_refused() -> None:
    texts, offsets, stop = arrays(Texts.of_strings(["a", "b"])), np.array([0, 1, 2]), np.zeros(1, dtype=np.uint8)
    out = np.zeros(8, dtype=np.int64)
    outside = (texts[0], texts[1], texts[2] + 1)
    for call in (
        (texts, offsets, texts, 2, 0, 2, out, stop),
        (texts, offsets, texts, 0, 0, 3, out, stop),
        (texts, offsets, texts, 0, 0, 2, out[:7], stop),
        (texts, offsets[:2], texts, 0, 0, 2, out, stop),
        (texts, offsets, outside, 0, 0, 2, out, stop),
        (texts, offsets, texts, 0, 0, 2, out, np.zeros(2, dtype=np.uint8)),
    ):
        with pytest.raises(ValueError):
            _native.edit_counts(*call)
    with pytest.raises(ValueError):
        _native.edit_operations(texts, outside, 0, 0, 2, stop)
