"""Ids of utterances: recognized in the files that speech tools write, noticed where in doubt, and not found in sentences."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.tasks.settings import Reading
from lmgauge.tasks.texts import References, Texts
from lmgauge.tasks.transcripts import UtteranceIds, formats_of

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
