"""Search by text and regular expression: what Python's own search finds; a piece at a time."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tests.explore.conftest import Served, texts

from lmgauge.explore import search
from lmgauge.explore.search import Search


@pytest.mark.parametrize("text", ["dog", "DOG", "für", "FÜR", "東京", "<b>", ".", "a c", "$", "zebra the"])
@pytest.mark.parametrize("case", [False, True])
def test_text_is_found(two: Served, text: str, case: bool) -> None:
    fold = str if case else str.lower
    expected = [i for i, segment in enumerate(texts()) if fold(text) in fold(segment)]
    assert [item["segment"] for item in two.all(q=text, case=case)] == expected


@pytest.mark.parametrize("text", ["^the", "dog$", "^$", r"\bca?t\b", "(cat|dog) .*zebra", "f.r", "[東京]+", "Dog"])
@pytest.mark.parametrize("case", [False, True])
def test_regular_expressions_are_found(two: Served, text: str, case: bool) -> None:
    pattern = re.compile(text, 0 if case else re.IGNORECASE)
    expected = [i for i, segment in enumerate(texts()) if pattern.search(segment)]
    assert [item["segment"] for item in two.all(q=text, regex=True, case=case)] == expected


@pytest.mark.parametrize("text", ["((", "a**", "[z-a]", "(?P<", r"\1", "(?=a)", "(a{1000}){1000}", "*"])
def test_a_bad_expression_is_said(two: Served, text: str) -> None:
    assert "regular expression cannot be used" in two.refused("segments", q=text, regex=True)


def test_an_expression_that_is_slow_elsewhere_is_not_here(two: Served) -> None:
    answer = two.get("segments", q="(a*)*(a|aa)*(b|ba*)*x$", regex=True)
    assert answer["is_complete"]


def test_a_search_goes_on_where_it_stopped(two: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_PIECE", 500)
    index = two.explorer.index
    assert index is not None
    own = Search(index, "dog", False, False)
    sizes = [0]
    while sizes[-1] < index.size:
        sizes.append(own.advance(0.0))
    assert len(sizes) > 5
    assert all(np.diff(sizes) > 0)
    assert np.flatnonzero(own.matches(300)).tolist() == [i for i, text in enumerate(texts()) if "dog" in text]


def test_an_answer_before_the_search_has_ended(two: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmgauge.explore import selection

    monkeypatch.setattr(search, "_PIECE", 500)
    monkeypatch.setattr(selection, "SEARCH_SECONDS", 0.0)
    answers = [two.get("segments", q="hears", case=True)]
    while not answers[-1]["is_complete"]:
        answers.append(two.get("segments", q="hears", case=True))
    assert len(answers) > 5
    assert answers[0]["total"] < answers[-1]["total"] == sum("hears" in text for text in texts())
