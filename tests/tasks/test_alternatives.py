"""Alternatives in transcripts: the nearest reading is that of a search through all readings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.errors import InputError
from lmgauge.tasks import alternatives
from lmgauge.tasks.alignment import align
from lmgauge.tasks.alternatives import Lattice, Mark, Token

Part = str | tuple["Parts", ...]
Parts = list["Part"]

WORDS = st.sampled_from(["a", "b", "c", "(b)", "@"])
PARTS = st.recursive(
    st.lists(WORDS, max_size=3),
    lambda inner: st.lists(st.one_of(WORDS, st.lists(inner, min_size=1, max_size=3).map(tuple)), max_size=3),
    max_leaves=8,
)


def tokens(parts: Parts) -> Iterator[Token]:
    for part in parts:
        if isinstance(part, str):
            yield part
        else:
            for k, alternative in enumerate(part):
                yield Mark.NEXT if k else Mark.BEGIN
                yield from tokens(alternative)
            yield Mark.END


def readings(parts: Parts) -> list[list[str]]:
    """All readings, the first alternatives first."""
    choices: list[list[list[str]]] = []
    for part in parts:
        if isinstance(part, tuple):
            choices.append([reading for alternative in part for reading in readings(alternative)])
        elif part == "@":
            choices.append([[]])
        else:
            choices.append([["b"], []] if part == "(b)" else [[part]])
    return [[word for words in chosen for word in words] for chosen in product(*choices)]


def edits(reference: Sequence[str], hypothesis: Sequence[str]) -> int:
    alignment = align(" ".join(reference), " ".join(hypothesis))
    return alignment.substitutions + alignment.deletions + alignment.insertions


@given(PARTS, PARTS)
def test_the_nearest_readings_are_those_of_a_search(reference: Parts, hypothesis: Parts) -> None:
    ours, theirs = Lattice.of_tokens(tokens(reference), "r:1"), Lattice.of_tokens(tokens(hypothesis), "h:1")
    said, heard = ours.nearest(theirs)
    assert said in readings(reference)
    assert heard in readings(hypothesis)
    assert edits(said, heard) == min(edits(*pair) for pair in product(readings(reference), readings(hypothesis)))
    assert ours.first_reading() == readings(reference)[0]


@given(PARTS, st.lists(st.sampled_from("abc"), max_size=4))
def test_rows_at_once_are_cells_one_by_one(reference: Parts, words: list[str]) -> None:
    ours = alternatives._Expanded(Lattice.of_tokens(tokens(reference), "r:1"), lambda word: (word,))
    theirs = alternatives._Expanded(Lattice.of_tokens(words, "h:1"), lambda word: (word,))
    assert theirs.is_chain
    assert (alternatives._costs_beside_chain(ours, theirs) == alternatives._costs(ours, theirs)).all()


def test_of_equals_the_alternative_named_first() -> None:
    lattice = Lattice.of_tokens([Mark.BEGIN, "x", Mark.NEXT, "y", Mark.END], "r:1")
    assert lattice.nearest(Lattice.of_tokens(["z"], "h:1")) == (["x"], ["z"])


def test_units_decide_what_is_near() -> None:
    lattice = Lattice.of_tokens([Mark.BEGIN, "x", Mark.NEXT, "Y", Mark.END, ","], "r:1")
    units = {"x": ("x",), "Y": ("y",), "y": ("y",), ",": ()}
    assert lattice.nearest(Lattice.of_tokens(["y"], "h:1"), units.__getitem__) == (["Y"], ["y"])


@pytest.mark.parametrize("wrong", [[Mark.END], [Mark.NEXT], [Mark.BEGIN, "a"], [Mark.BEGIN, Mark.BEGIN, Mark.END]])
def test_braces_must_match(wrong: list[Token]) -> None:
    with pytest.raises(InputError, match=r"r:7: .*alternatives are written \{ a / b \}"):
        Lattice.of_tokens(wrong, "r:7")


def test_what_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alternatives, "MOST_CELLS", 10)
    long = Lattice.of_tokens(["a"] * 5, "r:1")
    with pytest.raises(InputError, match="too long to choose among"):
        long.nearest(long)
