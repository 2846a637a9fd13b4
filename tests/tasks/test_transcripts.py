"""The formats of speech tools, line by line; any lines are read, or refused in words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.edit_distance import distance

from lmgauge.base.errors import InputError
from lmgauge.tasks.settings import Reading
from lmgauge.tasks.texts import References, Texts
from lmgauge.tasks.transcripts import (
    Readings,
    Utterance,
    UtteranceIds,
    format_of,
    formats_of,
    marks_notes,
    nearest_readings,
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
    units = {word: word.lower() for word in words}
    assert (one.text, one.readings is None) == (first, False)
    assert nearest_readings(one, Utterance("", heard, {}), units)[1:] == (nearest, heard)
    assert nearest_readings(Utterance("", heard, {}), one, units)[1:] == (heard, nearest)


def paths(readings: Readings, at: int) -> list[list[str]]:
    if not at:
        return [[]]
    ways = readings[at]
    return [[*before, *([word] if word else [])] for begin, word in ways for before in paths(readings, begin)]


PARTS = st.sampled_from(["a", "b", "c", "(a)", "@", "{ a / b }", "{ a b / @ }", "{ { c / b } / a } ", "{ b / c a }"])


SIDES = st.lists(PARTS, max_size=4).map(" ".join)


@given(SIDES, SIDES, st.sampled_from(["abc", "aab", "a b"]))
def test_no_other_readings_are_nearer(said: str, heard: str, units: str) -> None:
    unit_of = {word: unit.strip() for word, unit in zip("abc", units, strict=True)}
    both = list(read_trn(lines(f"{said} (s-1)", f"{heard} (s-1)")))
    every = [paths(one.readings, len(one.readings) - 1) if one.readings else [one.text.split()] for one in both]
    errors, *chosen = nearest_readings(*both, unit_of)

    def edits(*pair: list[str]) -> int:
        return distance(*([unit_of[word] for word in words if unit_of[word]] for words in pair))

    ours, theirs = (text.split() for text in chosen)
    assert (ours in every[0], theirs in every[1]) == (True, True)
    assert errors == edits(ours, theirs) == min(edits(*pair) for pair in product(*every))


def test_a_segment_too_long_to_choose_in_is_refused() -> None:
    with pytest.raises(InputError, match="too long to choose among its alternatives"):
        nearest_readings(*[Utterance("", " ".join("a" * 6000), {})] * 2, {"a": "a"})


def test_tags_behind_words_are_taken_off() -> None:
    (one,) = read_trn(lines(r"a aa\;a b\;b;tag1;tag2 c;;tag ; / @ (s-1)"))
    assert (one.text, one.readings) == ("a aa;a b;b c ; /", None)
    assert one.marked == (r"b\;b;tag1;tag2", "c;;tag", "@")
    (word,) = read_ctm(lines("r A 0 1 said;tag"))
    assert (" ".join(word[1].tokens), word[1].marked) == ("said", ("said;tag",))
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


def test_ctm_alternatives_are_one_word_with_the_latest_middle() -> None:
    texts = ["r A 1 .2 the .9", "r A * * <ALT_BEGIN>", "r A 2 1 it", "r A * * <ALT>", "r A 3 .4 is", "r A * * and/or"]
    the, both, last = (word for _, word in read_ctm(lines(*texts, "r A * * <ALT_END>", "r A 4 .2 @")))
    assert (the.begin, the.middle, the.tokens) == (1.0, 1.1, ("the",))
    assert (both.begin, both.middle, both.tokens) == (2.0, 3.2, ("{", "it", "/", "is", "and/or", "}"))
    assert (both.place, last.marked) == ("f:7", ("@",))


@pytest.mark.parametrize(
    ("reader", "line", "message"),
    [
        (read_trn, "no id", "f:1: no id in round brackets"),
        (read_trn, "{ a (s-1)", "f:1: { is not closed"),
        (read_trn, "a } (s-1)", "f:1: } without a { before it"),
        (read_stm, "r A anna 0", "f:1: 4 fields"),
        (read_stm, "r A anna 2 1 a", "ends (1 s) before it begins (2 s)"),
        (read_stm, "r A anna x 1 a", "'x' is not a time in seconds"),
        (read_stm, "r A anna 0 inf a", "'inf' is not a time in seconds"),
        (read_ctm, "r A 0 1", "f:1: 4 fields"),
        (read_ctm, "r A nan 1 a", "'nan' is not a time in seconds"),
        (read_ctm, "r A * * <ALT_END>", "f:1: <ALT_END> where alternatives are not open"),
        (read_ctm, "r A * * <ALT_BEGIN>", "f:1: <ALT_BEGIN> without <ALT_END>"),
        (read_ctm, "r A * * a", "f:1: '*' is not a time in seconds"),
    ],
)
def test_faults_are_named_with_their_place(reader: Callable[..., Iterator[Any]], line: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        list(reader(lines(line)))
    assert message in str(error.value)


def test_alternatives_in_ctm_without_any_time_are_refused() -> None:
    texts = ["r A * * <ALT_BEGIN>", "r A * * it", "r A * * <ALT_END>"]
    with pytest.raises(InputError, match="f:3: alternatives without a word that has times"):
        list(read_ctm(lines(*texts)))


@given(st.lists(st.text(st.sampled_from(" \t{}/()@;\\*<>AB.1-é"), max_size=30), max_size=4), st.sampled_from(READERS))
def test_any_lines_are_read_or_refused(texts: list[str], reader: Callable[..., Iterator[Any]]) -> None:
    with suppress(InputError):
        list(reader(lines(*texts)))


def test_formats_by_name() -> None:
    names = ["a.TRN", "b.stm.bz2", "c.ctm", "exp/text", "text.gz", "d.txt", "context"]
    assert [format_of(name, None) for name in names] == ["trn", "stm", "stm", "kaldi", "kaldi", None, None]
    assert format_of("a.trn", "text") is None
    assert format_of("a.txt", "kaldi") == "kaldi"


KALDI = ["utt-1 hello world", "utt-2 good\tbye", "utt-3"]
TRN = ["hello world (s1-1)", "good (hm) bye (s1-2) ", "(s1-3)"]


def note(references: list[str], *outputs: list[str], size: int = 2) -> str | None:
    """What is said of lists of lines that come in blocks of `size` segments."""
    ids = UtteranceIds(len(outputs))
    for at in range(0, len(references), size):
        texts = [Texts.of_strings(lines[at : at + size]) for lines in (references, *outputs)]
        ids.add(References.single(texts[0]), texts[1:])
    return ids.note(["ref", *(f"out{k}" for k in range(1, len(outputs) + 1))])


def test_kaldi_and_trn_are_noticed() -> None:
    kaldi, trn = note(KALDI, KALDI), note(TRN, TRN)
    assert kaldi is not None
    assert kaldi.startswith("ref and out1: every line begins with an id (utt-1), as in Kaldi text")
    assert trn is not None
    assert trn.startswith("ref and out1: every line ends with an id (s1-1), as in sclite trn")
    assert kaldi.endswith("--format kaldi")


def test_stm_and_ctm_are_noticed_though_their_lines_are_not_parallel() -> None:
    stm = [";; comment", "rec A anna 0.0 4.2 <O> the cat", "rec A anna 4.2 5 sat"]
    ctm = ["rec A 0.1 0.2 the 0.9", "rec A 0.4 0.2 cat 0.8", "rec A 4.3 0.1 sat"]
    found = note(stm, ctm)
    assert found is not None
    assert found.endswith("as in stm, and it is scored as words: take it out, or, for wer and cer, give --format stm")
    assert note(stm, ["the cat", "sat", "down"]) is None


@pytest.mark.parametrize("lines", [KALDI, TRN])
def test_so_they_are_in_another_order_and_beside_files_without(lines: list[str]) -> None:
    assert note(lines, lines[::-1]) is not None
    found = note(lines, ["hello world", "good bye", ""], lines)
    assert found is not None
    assert found.startswith("ref and out2: every line ")


@pytest.mark.parametrize(
    "lines",
    [
        [],
        KALDI[:1],  # one line tells too little
        [*KALDI, ""],
        [*KALDI, "utt-1 again"],
        ["hello world", "good bye", "well"],
        ["twenty-one of them", "well-known names"],
        ["hello (laughter)", "bye (cough)"],
        [*TRN, "no id"],
        ["a (b) 1)", "c (d) 2)"],
        ["2 a", "2 b"],
    ],
)
def test_other_lines_are_not(lines: list[str]) -> None:
    assert note(lines, lines) is None


def test_references_or_outputs_alone_are_not() -> None:
    assert note(KALDI, ["hello world", "good bye", ""]) is None
    assert note(["hello world", "good bye", ""], KALDI) is None
    assert note(KALDI, [line.replace("utt", "x") for line in KALDI]) is None


@pytest.mark.parametrize("size", [1, 7, 1000, 5000])
def test_the_first_thousand_lines_decide(size: int) -> None:
    ids = [f"id{i} word" for i in range(1000)]
    assert note([*ids, "none"], [*ids, "none"], size=size) is not None
    assert note([*ids[:-1], "none"], [*ids[:-1], "none"], size=size) is None


@pytest.mark.parametrize("language", ["ar", "cs", "de", "en", "ko", "th", "tr", "zh-Hant"])
def test_sentences_have_none(language: str, data: Path) -> None:
    lines = (data / f"pud.{language}.txt").read_text("utf-8").split("\n")[:-1]
    assert note(lines, lines) is None
    assert all(note(lines[at : at + 2], lines[at : at + 2]) is None for at in range(0, len(lines) - 1, 2))


def formats(folder: Path, reading: Reading | None = None, **files: list[str]) -> list[str | None]:
    """The formats of files with these lines; a file is called as its keyword, with a dot for the underscore."""
    paths = [folder / name.replace("_", ".") for name in files]
    for path, lines in zip(paths, files.values(), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return list(formats_of([str(path) for path in paths], reading or Reading()).values())


def test_files_with_the_same_ids_are_recognized_in_any_order_and_form(tmp_path: Path) -> None:
    trn = ["bye (utt-2)", "hello word (utt-1)", "(utt-3)"]
    assert formats(tmp_path, ref=KALDI, a=KALDI[::-1], b=trn) == ["kaldi", "kaldi", "trn"]
    assert formats(tmp_path, ref=trn, a=KALDI) == ["trn", "kaldi"]
    assert formats(tmp_path, Reading(format="text"), ref=KALDI, a=KALDI) == [None, None]


def test_beside_a_name_that_says_so_ids_need_not_look_like_ids(tmp_path: Path) -> None:
    words = ["anna hello", "ben bye", "carl"]
    assert formats(tmp_path, ref_trn=["hello (Anna)", "bye (Ben)"], a_txt=words) == ["trn", "kaldi"]
    assert formats(tmp_path, text=words, a_txt=["bye (ben)", "hello (anna)"]) == ["kaldi", "trn"]
    assert formats(tmp_path, text=words, a_txt=["hello", "good bye", ""]) == ["kaldi", None]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_are_not_read_to_recognize_them(tmp_path: Path) -> None:
    (tmp_path / "ref.txt").write_text("".join(f"{line}\n" for line in KALDI))
    os.mkfifo(tmp_path / "a.trn")
    os.mkfifo(tmp_path / "b")
    for name, form in (("a.trn", "trn"), ("b", None)):
        assert [*formats_of([str(tmp_path / "ref.txt"), str(tmp_path / name)], Reading()).values()] == [None, form]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["The cat sat", "A dog barks"], ["The cat sits", "A dog barks"]),
        (["2 cats", "3 dogs"], ["2 cats", "3 hogs"]),
        (["1984 was", "2024 is"], ["1984 was", "2024 is"]),
        (["well-known names", "so-called ones"], ["well-known name", "so-called one"]),
        (["A1", "B2", "C3 d"], ["A1", "B2", "C3 d"]),  # words of which most stand alone
        (["A1 b"], ["A1 b"]),
        (KALDI, KALDI[:2]),
        (KALDI, [*KALDI[:2], "utt-4"]),
        (KALDI, ["hello world", "good bye", ""]),
        ([*KALDI, "utt-1 again"], [*KALDI, "utt-1 again"]),
        ([*KALDI, ""], [*KALDI, ""]),
        ([], []),
    ],
)
def test_first_words_are_not_taken_for_ids(tmp_path: Path, ours: list[str], theirs: list[str]) -> None:
    assert formats(tmp_path, ref=ours, a=theirs) == [None, None]
    assert formats(tmp_path, ref_txt=ours, a_txt=theirs) == [None, None]


@pytest.mark.parametrize("language", ["ar", "cs", "de", "en", "ko", "th", "tr", "zh-Hant"])
def test_sentences_are_not_recognized(language: str, data: Path) -> None:
    path = str(data / f"pud.{language}.txt")
    assert set(formats_of([path, path], Reading()).values()) == {None}


def test_many_first_words_that_all_differ_and_are_the_same_in_both_files_are_noted() -> None:
    names = [chr(97 + i // 5) + "aeiou"[i % 5] + "n" for i in range(20)]
    lines = [f"{name} said" for name in names]
    found = note(lines, lines[::-1])
    assert found is not None
    assert "every line begins with a word of its own (aan), the same ones: perhaps ids" in found
    assert note(lines[1:], lines[:0:-1]) is None
    assert note(lines, [*lines[1:], "one said"]) is None


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=5))
def test_any_text_can_be_looked_at(lines: list[str]) -> None:
    assert (note(lines, lines) is None) == (note(lines, lines, size=1) is None)
