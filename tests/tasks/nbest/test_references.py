"""References and speakers by the ids of utterances."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmgauge.errors import InputError
from lmgauge.tasks.nbest.reading import references_of, speakers_of
from lmgauge.tasks.settings import NbestReading

READING = NbestReading()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ref", "u2 the cat\nu1 a  dog\n\n"),
        ("ref.tsv", "u1\ta  dog\nu2\tthe cat"),
        ("ref.tsv", "text\tid\na  dog\tu1\nthe cat\tu2\n"),
        ("ref.trn", "\ufeffa  dog (u1)\n;; a comment (u9)\nthe cat (u2)\n"),
        ("ref.jsonl", '{"id": "u1", "text": "a  dog"}\n{"id": "u2", "text": "the cat"}\n'),
    ],
)
def test_every_form_says_the_same(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert references_of(["u1", "u2"], tmp_path / name, READING) == (["a  dog", "the cat"], [])


def test_punctuation_is_read_the_same_from_every_form_and_tags_are_noted(tmp_path: Path) -> None:
    (tmp_path / "ref.trn").write_text("wait; a;tag dog (u1)\n")
    (tmp_path / "ref").write_text("u1 wait; a dog\n")
    for name, notes in (("ref", 0), ("ref.trn", 1)):
        texts, said = references_of(["u1"], tmp_path / name, READING)
        assert (texts, len(said)) == (["wait; a dog"], notes)
    assert said[0].startswith(f"{tmp_path / 'ref.trn'}: 1 word has marks of sclite, such as 'a;tag'")
    (tmp_path / "ref.trn").write_text("{ a / b } c (u1)\n")
    texts, said = references_of(["u1"], tmp_path / "ref.trn", READING)
    assert (texts, said) == (["a c"], [f"{tmp_path / 'ref.trn'}: 1 reference has alternatives, of which the first is taken"])


def test_an_utterance_without_words_and_references_without_lists(tmp_path: Path) -> None:
    (tmp_path / "ref").write_text("u1\nu2 a dog\nu3 b\n")
    references, notes = references_of(["u1"], tmp_path / "ref", READING)
    assert references == [""]
    assert notes == [f"{tmp_path / 'ref'}: 2 of 3 have no n-best list and are not counted"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("ref", "u2 a\n", "ref: has no reference of 'u1'; its ids are such as 'u2'"),
        ("ref", "", "has no reference of 'u1'; it is empty"),
        ("ref", "u1 a\nu1 b\n", "ref:2: the id 'u1' is on line 1 too"),
        ("ref.trn", "a (u1)\nb (u1)\n", "ref.trn:2: the id 'u1' is on line 1 too"),
        ("ref.trn", "{ a / b c (u1)\n", "ref.trn:1: { is not closed"),
        ("ref.jsonl", '{"id": "u1"}\n', "ref.jsonl:1: a record needs the fields 'id' (an id) and 'text' (a text)"),
        ("ref.jsonl", '{"id": "u1", "text": "a"}\nu2 b\n', "ref.jsonl:2: not valid JSON"),
    ],
)
def test_what_is_refused_says_where(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        references_of(["u1"], tmp_path / name, READING)
    assert says in str(caught.value)


def test_speakers(tmp_path: Path) -> None:
    (tmp_path / "utt2spk").write_text("u1 anna\nu2 ben\nu3\n")
    assert speakers_of(["u2", "u1"], tmp_path / "utt2spk") == ["ben", "anna"]
    for absent in ("u3", "u4"):
        with pytest.raises(InputError, match=f"does not say who speaks '{absent}'"):
            speakers_of([absent], tmp_path / "utt2spk")


def test_words_in_brackets_at_the_end_of_all_lines_are_no_ids(tmp_path: Path) -> None:
    (tmp_path / "ref").write_text("u1 a dog (barks)\nu2 a cat (purrs)\n")
    assert references_of(["u1", "u2"], tmp_path / "ref", READING)[0] == ["a dog (barks)", "a cat (purrs)"]
