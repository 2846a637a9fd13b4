"""Substitutions of words and phrases: as a search from left to right would make them, and read from files of pairs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.base.errors import InputError, LmgaugeError
from lmgauge.tasks.substitutions import Substitutions

words = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(" ".join)
targets = st.lists(st.sampled_from("abx"), max_size=2).map(" ".join)
texts = st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=1, max_size=3)


def slowly(text: list[str], pairs: dict[str, str]) -> list[str]:
    """Left to right, at each word the longest phrase that begins there."""
    result: list[str] = []
    while text:
        for size in range(len(text), 0, -1):
            phrase = " ".join(text[:size])
            if phrase in pairs:
                result += pairs[phrase].split()
                text = text[size:]
                break
        else:
            result.append(text[0])
            text = text[1:]
    return result


@given(texts, st.dictionaries(words, targets, min_size=1, max_size=4))
def test_the_longest_phrase_is_substituted_from_left_to_right(lists: list[list[str]], pairs: dict[str, str]) -> None:
    whole = "\0".join(" ".join(text) for text in lists)
    result = Substitutions.of(pairs).applied(whole).split("\0")
    assert [text.split() for text in result] == [slowly(text, pairs) for text in lists]


def test_files_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(";; spellings\ncolour\tcolor\n\num\t\n[ gonna ]  =>  [ going to ] / [ ] __ [ ]\nand so on => etc\n")
    read = Substitutions.of(path)
    assert read == Substitutions.of({"colour": "color", "um": "", "gonna": "going to", "and so on": "etc"})
    assert read.applied("um colour gonna  colours and so on") == " color going to  colours etc"
    assert read.digest == Substitutions(read.pairs[::-1]).digest != Substitutions.of({"a": "b"}).digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\n", "pairs:1: a word or phrase, a TAB"),
        ("\tb\n", "pairs:1: a word or phrase"),
        ("a\tb\tc\n", "pairs:1: a word or phrase"),
        ("a\tb\na\tc\n", "pairs:2: 'a' was substituted otherwise"),
        ("a => { b / c }\n", "alternatives of GLM files are not read"),
        ("a => b / [x] __ [ ]\n", "contexts and alternatives"),
        (";; none\n", "holds no substitution"),
    ],
)
def test_lines_that_are_not_pairs_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pairs"
    path.write_text(text)
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        Substitutions.of(str(path))


@pytest.mark.parametrize("given", [3, {"": "a"}, {"a": 1}, "no-such-file"])
def test_what_holds_no_pairs_is_refused(given: object) -> None:
    with pytest.raises(LmgaugeError):
        Substitutions.of(given)  # type: ignore[arg-type]


@given(st.text(st.sampled_from("ab \t=>[]{}/;_\n"), max_size=40))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any-pairs"
    path.write_text(text)
    with suppress(InputError):
        assert Substitutions.of(path).pairs
