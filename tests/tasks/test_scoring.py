"""What is blank, by `str.isspace` over all of Unicode; where nothing else is left, an error and never a zero."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.share import ErrorShare, Share

from lmgauge.base.errors import InputError, UsageError
from lmgauge.tasks.scoring import Blanks, blank_texts, block_of_strings
from lmgauge.tasks.texts import References, Texts
from lmgauge.text.segments import WHITE_SPACE

SPACES = "".join(sorted(WHITE_SPACE))
lines = st.text(st.sampled_from(SPACES + "aß中。、”€\u2800\u1681\u200b"), max_size=4)


def looked_at(hypotheses: list[str], references: list[str | list[str | None]]) -> Blanks:
    return Blanks.of(Texts.of_strings(hypotheses), References.of_lists(references))


def test_every_character_of_unicode_is_told_as_python_does() -> None:
    characters = [c for c in map(chr, range(1, sys.maxunicode + 1)) if not 0xD800 <= ord(c) <= 0xDFFF]
    assert [characters[i] for i in blank_texts(Texts.of_strings(characters))] == [c for c in characters if c.isspace()]


@given(st.lists(lines, max_size=20))
def test_blank_is_white_space_or_nothing(texts: list[str]) -> None:
    assert blank_texts(Texts.of_strings(texts)).tolist() == [i for i, text in enumerate(texts) if not text.strip()]


def test_counts_and_where_the_first_are() -> None:
    found = looked_at(["a", "", " \t"], [["x", "y"], ["z"], ["w", "\u3000", ""]])
    assert found == Blanks(3, 6, 2, 2, 1, 2)
    assert found.notes("Online-B") == [
        "2 of 3 hypotheses of Online-B are blank, the first that of segment 2",
        "2 of 6 references are blank, the first that of segment 3",
    ]
    assert looked_at(["a"], ["b"]).notes() == []


@given(st.lists(st.tuples(lines, lines), max_size=12), st.integers(0, 12))
def test_parts_join_to_the_whole(pairs: list[tuple[str, str]], cut: int) -> None:
    def part(chosen: list[tuple[str, str]]) -> Blanks:
        return looked_at([h for h, _ in chosen], [r for _, r in chosen])

    assert part(pairs[:cut]).joined(part(pairs[cut:])) == part(pairs)


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(InputError, match="no segment of X"):
        Blanks().check(Share(), "X")
    with pytest.raises(InputError, match="all 2 hypotheses of X are blank"):
        looked_at(["", " "], ["a", "b"]).check(Share(), "X")
    with pytest.raises(InputError, match="all 3 references are blank"):
        looked_at(["a", "b"], [["", " "], [""]]).check(Share())
    looked_at(["a", ""], [["", " "], ["b"]]).check(Share())


def test_a_rate_of_errors_has_a_value_also_where_one_side_is_blank() -> None:
    for found in (looked_at(["", ""], ["a", "b"]), looked_at(["a", "b"], ["", ""])):
        found.check(ErrorShare())
        assert len(found.notes()) == 1
    with pytest.raises(InputError, match="no segment"):
        Blanks().check(ErrorShare())


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        (None, ["a"], "a list with a hypothesis for each segment is needed, not NoneType"),
        (["a"], None, "for each segment is needed, not NoneType"),
        ({"a": ["x"]}, ["a"], "is needed, not dict"),
        ({"a"}, ["a"], "is needed, not set"),
        (["a"], [None], "the references of segment 1 are NoneType"),
        ([1], ["a"], "hypothesis 1 is int"),
    ],
)
def test_what_is_no_list_of_strings_is_refused(hypotheses: Any, references: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        block_of_strings(Share(), {"": hypotheses}, references)


def test_documents_are_a_list_with_a_name_for_each_segment() -> None:
    with pytest.raises(InputError, match="1 documents for 2 segments"):
        block_of_strings(Share(), {"": ["a", "b"]}, ["a", "b"], documents=["d"])
    with pytest.raises(UsageError, match="documents is one string"):
        block_of_strings(Share(), {"": ["a", "b"]}, ["a", "b"], documents="ab")
