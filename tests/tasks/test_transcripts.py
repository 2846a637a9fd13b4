"""The formats of speech tools, line by line; any lines are read, or refused in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.edit_distance import distance

from lmgauge.errors import InputError
from lmgauge.tasks.transcripts import (
    Readings,
    format_of,
    marks_notes,
    nearest_reading,
    read_ctm,
    read_kaldi,
    read_stm,
    read_trn,
)

READERS: list[Callable[[Iterator[tuple[str, str]]], Iterator[Any]]] = [read_kaldi, read_trn, read_stm, read_ctm]


def lines(*texts: str) -> Iterator[tuple[str, str]]:
    return ((text, f"f:{i}") for i, text in enumerate(texts, start=1))


def test_kaldi() -> None:
    one, two, three = read_kaldi(lines("anna_1 the\tcat ", "ben-2", "x {a / b}"))
    assert (one.id, one.text, one.labels) == ("anna_1", "the\tcat", {"speaker": "anna"})
    assert (two.id, two.text) == ("ben-2", "")
    assert (three.text, three.readings, three.labels) == ("{a / b}", None, {})
    with pytest.raises(InputError, match="f:2: the line is blank"):
        list(read_kaldi(lines("a b", " ")))


def test_trn() -> None:
    utterances = list(read_trn(lines(";; comment", "", "the {cat/cats} and/or (uh) (s-1)", "( / ) (s-2) ", "(s-3)")))
    assert [(one.id, one.text) for one in utterances] == [("s-1", "the cat and/or uh"), ("s-2", "( / )"), ("s-3", "")]
    assert [one.readings is None for one in utterances] == [False, True, True]


@pytest.mark.parametrize(
    ("text", "first", "heard", "nearest"),
    [
        ("a { b / c d } e", "a b e", "a c d f", "a c d e"),
        ("a { b / c d } e", "a b e", "a x y e", "a b e"),
        ("a { @ / b } c", "a c", "a c", "a c"),
        ("a { @ / b } c", "a c", "a b c", "a b c"),
        ("{ a { b / c } / d } {e/f}g", "a b e g", "D f g", "d f g"),
        ("{ { a / b } / c } { @ / @ }", "a", "x", "a"),
        ("(a) (b c)", "a (b c)", "(b c)", "(b c)"),
        ("(a) b", "a b", "b", "b"),
        ("{a;tag/b}", "a", "", "a"),
        ("{a/@}", "a", "", ""),
    ],
)
def test_of_alternatives_the_nearest_counts_and_of_equals_the_first(text: str, first: str, heard: str, nearest: str) -> None:
    (one,) = read_trn(lines(f"{text} (s-1)"))
    words = {word for ways in one.readings or () for _, word in ways if word} | {*heard.split()}
    assert (one.text, one.readings is None) == (first, False)
    assert nearest_reading(one.readings or (), heard, {word: word.lower() for word in words}) == nearest


def paths(readings: Readings, at: int) -> list[list[str]]:
    if not at:
        return [[]]
    ways = readings[at]
    return [[*before, *([word] if word else [])] for begin, word in ways for before in paths(readings, begin)]


PARTS = st.sampled_from(["a", "b", "c", "(a)", "@", "{ a / b }", "{ a b / @ }", "{ { c / b } / a } ", "{ b / c a }"])


@given(st.lists(PARTS, min_size=1, max_size=4).map(" ".join), st.lists(st.sampled_from("abc"), max_size=5))
def test_no_other_reading_is_nearer(text: str, heard: list[str]) -> None:
    (one,) = read_trn(lines(f"{text} (s-1)"))
    if one.readings is not None:
        every = paths(one.readings, len(one.readings) - 1)
        chosen = nearest_reading(one.readings, " ".join(heard), {word: word for word in "abc"}).split()
        assert chosen in every
        assert distance(chosen, heard) == min(distance(words, heard) for words in every)


def test_a_segment_too_long_to_choose_in_is_refused() -> None:
    with pytest.raises(InputError, match="too long to choose among its alternatives"):
        nearest_reading(((),) * 6000, " ".join("a" * 6000), {"a": "a"})


def test_tags_behind_words_are_taken_off() -> None:
    (one,) = read_trn(lines(r"a aa\;a b\;b;tag1;tag2 c;;tag ; @ (s-1)"))
    assert (one.text, one.readings) == ("a aa;a b;b c ;", None)
    assert one.marked == (r"b\;b;tag1;tag2", "c;;tag", "@")
    (word,) = read_ctm(lines("r A 0 1 said;tag"))
    assert (word[1].text, word[1].marked) == ("said", ("said;tag",))
    assert list(marks_notes("f", [one])) == [
        r"f: 3 words have marks of sclite, such as 'b\\;b;tag1;tag2', 'c;;tag' and 1 more: what follows a semicolon is a "
        r"tag, and @ is nothing, so neither is scored (write \; for a semicolon)"
    ]


def test_a_semicolon_at_the_end_of_a_word_is_punctuation() -> None:
    (one,) = read_trn(lines("he  came; and;; went; (s-1)"))
    assert (one.text, one.readings, one.marked) == ("he  came; and;; went;", None, ())
    assert not list(marks_notes("f", [one]))


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


def test_of_alternatives_in_ctm_the_words_of_the_first_are_read() -> None:
    texts = ["r A 1 .2 the .9", "r A * * <ALT_BEGIN>", "r A 2 1 it", "r A * * <ALT>", "r A 3 .4 is it", "r A * * <ALT_END>"]
    the, it, last = (word for _, word in read_ctm(lines(*texts, "r A 4 .2 @")))
    assert (the.begin, the.middle, the.text, the.is_one_of_several) == (1.0, 1.1, "the", False)
    assert (it.middle, it.text, it.is_one_of_several) == (2.5, "it", True)
    assert (last.text, last.marked) == ("", ("@",))


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
