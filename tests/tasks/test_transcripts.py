"""The formats of speech tools, line by line; any lines are read, or refused in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.errors import InputError, UsageError
from lmgauge.tasks.transcripts import format_of, marks_notes, read_ctm, read_kaldi, read_stm, read_trn, trn_line

READERS: list[Callable[[Iterator[tuple[str, str]]], Iterator[Any]]] = [read_kaldi, read_trn, read_stm, read_ctm]


def lines(*texts: str) -> Iterator[tuple[str, str]]:
    return ((text, f"f:{i}") for i, text in enumerate(texts, start=1))


def test_kaldi() -> None:
    one, two, three = read_kaldi(lines("anna_1 the\tcat ", "ben-2", "x {a / b}"))
    assert (one.id, one.text, one.labels) == ("anna_1", "the\tcat", {"speaker": "anna"})
    assert (two.id, two.text) == ("ben-2", "")
    assert (three.text, three.lattice, three.labels) == ("{a / b}", None, {})
    with pytest.raises(InputError, match="f:2: the line is blank"):
        list(read_kaldi(lines("a b", " ")))


def test_trn() -> None:
    utterances = list(read_trn(lines(";; comment", "", "the {cat/cats} and/or (uh) (s-1)", "( / ) (s-2) ", "(s-3)")))
    assert [(one.id, one.text) for one in utterances] == [("s-1", "the cat and/or uh"), ("s-2", "( / )"), ("s-3", "")]
    assert [one.lattice is None for one in utterances] == [False, True, True]


def test_tags_behind_words_are_taken_off() -> None:
    (one,) = read_trn(lines(r"a aa\;a b\;b;tag1;tag2 c;;tag ; @ (s-1)"))
    assert (one.text, one.lattice) == ("a aa;a b;b c ;", None)
    assert one.marked == (r"b\;b;tag1;tag2", "c;;tag", "@")
    (word,) = read_ctm(lines("r A 0 1 said;tag"))
    assert (word[1].tokens, word[1].marked) == (("said",), ("said;tag",))
    assert marks_notes("f", [one]) == [
        r"f: 3 words have marks of sclite, such as 'b\\;b;tag1;tag2', 'c;;tag' and 1 more: what follows a semicolon is a "
        r"tag, and @ is nothing, so neither is scored (write \; for a semicolon)"
    ]


def test_a_semicolon_at_the_end_of_a_word_is_punctuation() -> None:
    (one,) = read_trn(lines("he  came; and;; went; (s-1)"))
    assert (one.text, one.lattice, one.marked) == ("he  came; and;; went;", None, ())
    assert marks_notes("f", [one]) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("s-1", "a { b"), ("s-1", "a { b / c }"), ("s-1", "@"), ("s-1", "(uh)"), ("s-1", ";; a"), ("s(1)", "a"), ("s 1", "a")],
)
def test_what_trn_would_read_in_another_way_is_not_written(name: str, text: str) -> None:
    with pytest.raises(UsageError, match="cannot be written as trn"):
        trn_line(name, text)


def test_stm() -> None:
    texts = [
        "r A anna 0 1 <O,F> a { b / @ }",
        "r A ben 1.5 2 IGNORE_TIME_SEGMENT_IN_SCORING",
        "r A ben 2 3",
        "r A b 3 4 <b> c",
    ]
    one, two, three, four = read_stm(lines(*texts))
    assert (one.channel, one.begin, one.end, one.utterance.text) == (("r", "a"), 0.0, 1.0, "a b")
    assert one.utterance.labels == {"speaker": "anna", "file": "r", "channel": "A", "label": "O,F"}
    assert [segment.is_ignored for segment in (one, two, three, four)] == [False, True, False, False]
    assert (three.utterance.text, four.utterance.labels["label"]) == ("", "b")


def test_ctm_alternatives_are_one_word_with_the_latest_middle() -> None:
    texts = ["r A 1 .2 the .9", "r A * * <ALT_BEGIN>", "r A 2 1 it", "r A * * <ALT>", "r A 3 .4 is it", "r A * * <ALT_END>"]
    (_, the), (_, both) = read_ctm(lines(*texts))
    assert (the.begin, the.middle, the.tokens) == (1.0, 1.1, ("the",))
    assert (both.begin, both.middle, len(both.tokens)) == (2.0, 3.2, 5)


@pytest.mark.parametrize(
    ("reader", "line", "message"),
    [
        (read_trn, "no id", "f:1: no id in round brackets"),
        (read_trn, "{ a (s-1)", "f:1: { is not closed"),
        (read_stm, "r A anna 0", "f:1: 4 fields"),
        (read_stm, "r A anna 2 1 a", "ends (1 s) before it begins (2 s)"),
        (read_stm, "r A anna x 1 a", "'x' is not a time in seconds"),
        (read_stm, "r A anna 0 inf a", "'inf' is not a time in seconds"),
        (read_ctm, "r A 0 1", "f:1: 4 fields"),
        (read_ctm, "r A nan 1 a", "'nan' is not a time in seconds"),
        (read_ctm, "r A * * <ALT_END>", "f:1: <ALT_END> where alternatives are not open"),
        (read_ctm, "r A * * <ALT_BEGIN>", "f:1: <ALT_BEGIN> without <ALT_END>"),
    ],
)
def test_faults_are_named_with_their_place(reader: Callable[..., Iterator[Any]], line: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        list(reader(lines(line)))
    assert message in str(error.value)


@given(st.lists(st.text(st.sampled_from(" \t{}/()@;\\*<>AB.1-é"), max_size=30), max_size=4), st.sampled_from(READERS))
def test_any_lines_are_read_or_refused(texts: list[str], reader: Callable[..., Iterator[Any]]) -> None:
    with suppress(InputError):
        list(reader(lines(*texts)))


def test_formats_by_name() -> None:
    names = ["a.TRN", "b.stm.bz2", "c.ctm", "exp/text", "text.gz", "d.txt", "context"]
    assert [format_of(name, None) for name in names] == ["trn", "stm", "stm", "kaldi", "kaldi", None, None]
    assert format_of("a.trn", "text") is None
    assert format_of("a.txt", "kaldi") == "kaldi"
