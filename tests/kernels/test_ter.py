"""The TER kernel against its twin, and against the clock where texts are long."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import ter as twin

from lmgauge._kernels import _native
from lmgauge.tasks.texts import References, Texts

SCALE = 720720


def counted(pairs: list[tuple[str, list[str]]], begin: int = 0, end: int | None = None) -> list[list[int]]:
    hypotheses = Texts.of_strings([h for h, _ in pairs])
    references = References.of_lists([r for _, r in pairs])
    out = np.full((len(pairs), 2), -1, dtype=np.int64)
    mine = (hypotheses.data, hypotheses.starts, hypotheses.ends)
    theirs = (references.texts.data, references.texts.starts, references.texts.ends)
    _native.ter_statistics(mine, theirs, references.offsets, begin, len(pairs) if end is None else end, out)
    return out.tolist()


def edits(hypothesis: str, reference: str) -> int:
    return counted([(hypothesis, [reference])])[0][0]


def assert_agrees(hypothesis: str, reference: str) -> None:
    words = reference.split()
    assert counted([(hypothesis, [reference])]) == [[twin.edits(hypothesis.split(), words), len(words) * SCALE]]


def disordered(reference: list[str], rng: random.Random, vocabulary: int) -> list[str]:
    """What a system may make of a reference: blocks moved, words lost, added and changed."""
    words = list(reference)
    for _ in range(rng.randint(0, 6)):
        at = rng.randrange(len(words) + 1)
        block = words[at : at + rng.randint(1, 12)]
        kind = rng.choice(["move", "move", "lose", "add", "change"])
        new = [f"{rng.randrange(vocabulary + 2)}" for _ in range(rng.randint(1, 8))]
        words[at : at + len(block)] = new if kind == "change" else [*new, *block] if kind == "add" else []
        if kind == "move":
            to = rng.randrange(len(words) + 1)
            words[to:to] = block
    return words


@given(st.text("ab", max_size=24).map(" ".join), st.text("ab", max_size=24).map(" ".join))
def test_two_words_only_have_many_ties(hypothesis: str, reference: str) -> None:
    assert_agrees(hypothesis, reference)


@pytest.mark.parametrize("longest", [6, 15, 30, 45])
@pytest.mark.parametrize("vocabulary", [3, 10, 200])
def test_moved_words(vocabulary: int, longest: int) -> None:
    rng = random.Random(f"{vocabulary} {longest}")
    for _ in range(600 // longest):
        reference = [f"{rng.randrange(vocabulary)}" for _ in range(rng.randint(0, longest))]
        assert_agrees(" ".join(disordered(reference, rng, vocabulary)), " ".join(reference))


@pytest.mark.parametrize("length", [49, 50, 63, 64, 65, 80, 130])
def test_where_the_beam_ends(length: int) -> None:
    """The window moves, and the reference has more words than a machine word has bits."""
    rng = random.Random(length)
    reference = [f"{rng.randrange(800)}" for _ in range(length)]
    hypothesis = disordered(reference, rng, 800)
    assert_agrees(" ".join(hypothesis), " ".join(reference))
    # 30 words lost in front and 30 added at the end leave the beam altogether.
    assert_agrees(" ".join([*hypothesis[30:], *(f"new{k}" for k in range(30))]), " ".join(reference))


@pytest.mark.parametrize(
    ("rows", "columns"), [(1, 200), (200, 1), (1, 50), (1, 51), (2, 100), (2, 101), (3, 160), (120, 20), (0, 9)]
)
def test_very_different_lengths(rows: int, columns: int) -> None:
    """Above 50 reference words for each word of the hypothesis the beam widens."""
    rng = random.Random(rows * 1000 + columns)
    for vocabulary in (2, 40, 500):
        for _ in range(4):
            reference = [f"{rng.randrange(vocabulary)}" for _ in range(columns)]
            hypothesis = [f"{rng.randrange(vocabulary)}" for _ in range(rows)]
            assert_agrees(" ".join(hypothesis), " ".join(reference))


def test_the_beam_hides_what_is_far_away() -> None:
    """The one word that is right stands 199 columns from the diagonal's end: the plain distance would be 199."""
    assert edits("w0", " ".join(f"w{k}" for k in range(200))) == 200
    assert edits("w0", " ".join(f"w{k}" for k in range(20))) == 19


def test_the_paper_s_example() -> None:
    """Snover et al. (2006), section 3: one shift, two substitutions, one insertion."""
    reference = "SAUDI ARABIA denied THIS WEEK information published in the AMERICAN new york times"
    assert edits("THIS WEEK THE SAUDIS denied information published in the new york times", reference) == 4


def test_once_a_thousand_shifts_were_tried_none_is_made() -> None:
    """Two words only can be shifted in many ways, and use up the tries before those for the first twelve words end."""
    words = [f"{k}" for k in range(12)]
    two, others = "bbbbbbaabbbaaabbaaabbababaabaabbabbbabbb", "bbababaaababbbaabbabbbabaabbabbaaaaabbaa"
    found = {}
    for length in (0, 30, 40):
        hypothesis, reference = [*words[6:], *words[:6], *two[:length]], [*words, *others[:length]]
        found[length] = (edits(" ".join(hypothesis), " ".join(reference)), twin.table(hypothesis, reference)[-1][-1])
    assert found == {0: (1, 12), 30: (11, 21), 40: (25, 25)}


def test_of_several_references_the_fewest_edits_and_the_average_length() -> None:
    assert counted([("a b c", ["a b", "a b c d e", "x"])]) == [[1, (2 + 5 + 1) * SCALE // 3]]
    assert counted([("a b c", ["", "a"]), ("", ["a b"]), ("", [""])]) == [[2, SCALE // 2], [2, 2 * SCALE], [0, 0]]


def test_white_space_is_python_s() -> None:
    assert counted([("a\u3000b\u2028c\u00a0d\x1fe\t f", ["a b c d e f"])]) == [[0, 6 * SCALE]]
    assert edits("a\u200bb", "a b") == 2


def test_only_the_rows_asked_for_are_written() -> None:
    pairs = [("a", ["b"])] * 4
    assert counted(pairs, 1, 3) == [[-1, -1], [1, SCALE], [1, SCALE], [-1, -1]]


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="1 to 16 references"):
        counted([("a", ["a"] * 17)])
    with pytest.raises(ValueError, match="range"):
        counted([("a", ["a"])], 0, 2)


@pytest.mark.parametrize("kind", ["equal words", "other lengths", "changed words", "moved words"])
def test_a_line_of_300_000_words_takes_no_minutes(kind: str) -> None:
    many = 300_000
    reference = ["word"] * many if kind in ("equal words", "other lengths") else [f"{k % 5003}" for k in range(many)]
    hypothesis = reference[: many - many // 20] if kind == "other lengths" else list(reference)
    if kind == "changed words":
        hypothesis[::10] = ["?"] * len(hypothesis[::10])
    if kind == "moved words":
        hypothesis[0:many:500], hypothesis[1:many:500] = hypothesis[1:many:500], hypothesis[0:many:500]
    wrong = sum(a != b for a, b in zip(hypothesis, reference, strict=False)) + len(reference) - len(hypothesis)
    began = time.process_time()
    found = edits(" ".join(hypothesis), " ".join(reference))
    assert time.process_time() - began < 30
    assert wrong // 2 <= found <= wrong
