"""Search by text and regular expression: what Python's own search finds; a piece at a time."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.explore.conftest import Served, texts

from lmgauge.explore import search
from lmgauge.explore.search import Pattern, Search


@pytest.mark.parametrize("text", ["dog", "DOG", "für", "FÜR", "東京", "<b>", ".", "a c", "$", "zebra the"])
@pytest.mark.parametrize("case", ["", "1"])
def test_text_is_found(two: Served, text: str, case: str) -> None:
    fold = str if case else str.lower
    expected = [i for i, segment in enumerate(texts()) if fold(text) in fold(segment)]
    assert [item["segment"] for item in two.all(q=text, case=case)] == expected


@pytest.mark.parametrize("text", ["^the", "dog$", "^$", r"\bca?t\b", "(cat|dog) .*zebra", "f.r", "[東京]+", "Dog"])
@pytest.mark.parametrize("case", ["", "1"])
def test_regular_expressions_are_found(two: Served, text: str, case: str) -> None:
    pattern = re.compile(text, 0 if case else re.IGNORECASE)
    expected = [i for i, segment in enumerate(texts()) if pattern.search(segment)]
    assert [item["segment"] for item in two.all(q=text, regex=1, case=case)] == expected


@pytest.mark.parametrize("text", ["((", "a**", "[z-a]", "(?P<", r"\1", "(?=a)", "(a{1000}){1000}", "*"])
def test_a_bad_expression_is_said(two: Served, text: str) -> None:
    assert "regular expression cannot be used" in two.refused("segments", q=text, regex=1)


def test_a_long_search_is_refused(two: Served) -> None:
    assert "1,001 characters" in two.refused("segments", q="x" * 1001)


def test_an_expression_that_is_slow_elsewhere_is_not_here(two: Served) -> None:
    answer = two.get("segments", q="(a*)*(a|aa)*(b|ba*)*x$", regex=1)
    assert answer["is_complete"]


def test_a_search_goes_on_where_it_stopped(two: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_PIECE", 500)
    index = two.explorer.index
    assert index is not None
    own = Search(index, Pattern("dog"), tmp_path / "matches")
    sizes = [0]
    while own.size < index.size:
        own.advance(0.0)
        sizes.append(own.size)
    assert len(sizes) > 5
    assert all(np.diff(sizes) > 0)
    own.close()
    assert not (tmp_path / "matches").exists()
    assert np.flatnonzero(own.matches(300)).tolist() == [i for i, text in enumerate(texts()) if "dog" in text]


def test_an_answer_before_the_search_has_ended(two: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmgauge.explore import selection

    monkeypatch.setattr(search, "_PIECE", 500)
    monkeypatch.setattr(selection, "SEARCH_SECONDS", 0.0)
    answers = [two.get("segments", q="hears", case=1)]
    while not answers[-1]["is_complete"]:
        answers.append(two.get("segments", q="hears", case=1))
    assert len(answers) > 5
    assert answers[0]["total"] < answers[-1]["total"] == sum("hears" in text for text in texts())


def test_a_search_that_gave_way_to_others_answers_with_what_it_has(
    two: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_PIECE", 500)
    index = two.explorer.index
    assert index is not None
    own = Search(index, Pattern("dog"), tmp_path / "matches")
    own.advance(0.0)
    size = own.size
    own.close()
    own.advance(1.0)  # by a request that had it already
    assert 0 < own.size == size
    assert len(own.matches(size)) == size


def test_searches_that_are_forgotten_leave_no_file(two: Served, tmp_path: Path) -> None:
    index = two.explorer.index
    assert index is not None
    searches = search.Searches(index, tmp_path)
    for number in range(30):
        searches.of(Pattern(f"the {number}")).advance(1.0)
    assert len(list(tmp_path.iterdir())) < 10
    searches.close()
    assert not list(tmp_path.iterdir())
