"""N-best lists in each format, what is refused, and bytes of chance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.tasks.nbest import share

from lmgauge.base.errors import InputError, LmgaugeError, UsageError
from lmgauge.tasks.nbest.reading import NbestLists, is_cost, read_nbest, references_of, speakers_of
from lmgauge.tasks.settings import NbestReading

READING = NbestReading()


def as_dict(lists: NbestLists) -> dict[str, list[tuple[str, float]]]:
    bounds = zip(lists.ids, lists.offsets[:-1].tolist(), lists.offsets[1:].tolist(), strict=True)
    return {u: [(lists.texts[i], round(float(lists.scores[0, i]), 9)) for i in range(a, b)] for u, a, b in bounds}


def one_file(folder: Path, text: str | bytes, name: str = "lists", **fields: object) -> NbestLists:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_nbest(path, NbestReading(**fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("write", [share.write_jsonl, share.write_kaldi, share.write_espnet])
def test_every_format_says_the_same(tmp_path: Path, write: object) -> None:
    lists = read_nbest(write(tmp_path / "lists"), READING)  # type: ignore[operator]
    assert {u: as_dict(lists)[u] for u in sorted(lists.ids)} == share.UTTERANCES


def test_several_files_and_folders_and_globs(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    share.write_jsonl(tmp_path / "s" / "one.jsonl")
    (tmp_path / "more.jsonl").write_text('{"id": 3, "text": "x", "score": 1}\n')
    assert read_nbest([tmp_path / "s", tmp_path / "more.jsonl"], READING).ids == ("u1", "u2", "3")
    assert read_nbest(str(tmp_path / "s*"), READING).ids == ("u1", "u2")
    assert read_nbest(str(tmp_path / "s" / "*.jsonl"), READING).ids == ("u1", "u2")


def test_lists_of_texts_with_lists_of_scores(tmp_path: Path) -> None:
    line = '{"id": "u", "hyps": ["a b", "a"], "am": [-1, -2], "lm": [-3, -4]}'
    lists = one_file(tmp_path, line, score=("am", "lm"))
    assert lists.texts == ("a b", "a")
    assert lists.scores.tolist() == [[-1, -2], [-3, -4]]


def test_objects_in_a_named_list_with_named_fields(tmp_path: Path) -> None:
    line = '{"key": 7, "n": [{"words": "a", "scores": {"am": 1, "lm": 2}}, {"words": "b", "scores": {"lm": 4, "am": 3}}]}'
    lists = one_file(tmp_path, line, id="key", field="words", hypotheses="n")
    assert (lists.ids, lists.score_names, lists.scores.tolist()) == (("7",), ("am", "lm"), [[1, 3], [2, 4]])
    assert one_file(tmp_path, line, id="key", field="words", hypotheses="n", score=("lm",)).scores.tolist() == [[2, 4]]


def test_hypotheses_of_an_utterance_may_stand_apart_and_costs_change_their_sign(tmp_path: Path) -> None:
    rows = [("a", "x", 1), ("b", "y", 2), ("a", "z", 3)]
    lists = one_file(
        tmp_path, "\n".join(f'{{"id": "{u}", "text": "{t}", "ac_cost": {c}}}' for u, t, c in rows), score=("ac_cost",)
    )
    assert as_dict(lists) == {"a": [("x", -1), ("z", -3)], "b": [("y", -2)]}
    assert [name for name in ("lm_cost", "acwt", "lmwt.rnn", "acoustic", "score") if is_cost(name)] == [
        "lm_cost",
        "acwt",
        "lmwt.rnn",
    ]


def test_signs_for_no_word_are_left_out_and_counted(tmp_path: Path) -> None:
    lists = one_file(tmp_path, '{"id": "u", "text": "<s> a <eps>  b <unk> </s>"}\n{"id": "u", "text": " a  b "}')
    assert lists.texts == ("a b <unk>", "a  b")
    assert lists.notes == ("3 signs for no word (</s>, <eps>, <s>) are left out of the hypotheses",)


def test_ten_ranks_are_in_order(tmp_path: Path) -> None:
    for i in range(1, 12):
        (tmp_path / f"{i}best_recog").mkdir()
        (tmp_path / f"{i}best_recog" / "text").write_text(f"u h{i}\n")
    assert read_nbest(tmp_path, READING).texts == tuple(f"h{i}" for i in range(1, 12))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "lists: the file is empty"),
        ("a dog barks\n", "lists:1: is not a line of an n-best list"),
        ('{"id": "u"}', "lists:1: field 'text' is missing, which holds the text; the fields are 'id'"),
        ('{"text": "u"}', "lists:1: field 'id' is missing"),
        ('{"id": true, "text": ""}', "field 'id' holds something else"),
        ('\n{"id": "u", "text": 1}', "lists:2: field 'text' holds something else than the text"),
        ('{"id": "u", "text": "a", "score": "x"}', "lists:1: 'x' is not a number"),
        ('{"id": "u", "text": "a", "score": NaN}', "not a finite number"),
        ('{"id": "u", "text": "a", "score": 1e999}', "not a finite number"),
        ('{"id": "u", "text": "a", "score": ' + "9" * 400 + "}", "not a finite number"),
        ('{"id": "u", "text": "a\\u0000"}', "the text holds NUL or a lone surrogate"),
        ('{"id": "u", "text": "a\\ud800"}', "the text holds NUL or a lone surrogate"),
        ('{"id": "u", "text": "a", "score": 1}\n{"id": "u", "text": "b"}', "lists:2: has the scores none, hypo"),
        ('{"id": "u", "nbest": []}', "holds no list of hypotheses"),
        ('{"id": "u", "nbest": [3]}', "hypothesis 1: a text, or an object with a text, is needed"),
        ('{"id": "u", ', "lists:1: not valid JSON"),
        ("[" * 100_000, "is not a line of an n-best list"),
        ('{"a":' * 100_000, "lists:1: not"),
        (b'{"id": "u", "text": "\xff"}', "lists:1: is not UTF-8 at byte 22"),
        ("NBestList1.0\n(-100) a\n", "lists:1: is not a line of an n-best list"),
    ],
)  # fmt: skip
def test_what_is_refused_says_where(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(InputError) as caught:
        one_file(tmp_path, text)
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path))


def test_folders_that_are_not_lists_are_refused(tmp_path: Path) -> None:
    def refused(match: str, **fields: object) -> None:
        with pytest.raises(InputError, match=match):
            read_nbest(tmp_path, NbestReading(**fields))  # type: ignore[arg-type]

    refused("holds no n-best lists")
    refused("has no folder 1best_recog", format="espnet")
    refused("has no file `text`", format="kaldi")
    (tmp_path / "text").write_text("u1 a dog\n")
    refused(r"text:1: 'u1' is not the id of a hypothesis")
    (tmp_path / "text").write_text("u1-1 a dog\nu1-1 a\n")
    refused(r"text:2: the id 'u1-1' is on line 1 too")
    (tmp_path / "text").write_text("u1-1 a dog\n")
    (tmp_path / "ac_cost").write_text("u1-2 3\n")
    refused(r"ac_cost: has no score of 'u1-1'")
    (tmp_path / "ac_cost").write_text("u1-1 x\n")
    refused(r"ac_cost:1: 'x' is not a number")
    refused(r"lm_cost.*no such file", score=("lm_cost",))


def test_the_rest_that_is_refused(tmp_path: Path) -> None:
    file = share.write_jsonl(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").write_bytes(file.read_bytes())
    with pytest.raises(InputError, match=r"b.jsonl:1: utterance 'u1' is in .*a.jsonl too"):
        read_nbest([file, tmp_path / "b.jsonl"], READING)
    with pytest.raises(InputError, match="lists of kaldi are folders"):
        read_nbest(file, NbestReading(format="kaldi"))
    with pytest.raises(UsageError, match="unknown format 'htk'"):
        read_nbest(file, NbestReading(format="htk"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no n-best list"):
        read_nbest([], READING)
    with pytest.raises(InputError, match="no such file"):
        read_nbest(tmp_path / "none", READING)


@pytest.mark.parametrize(
    ("lists", "error"),
    [
        ({}, "there are no hypotheses"),
        ({"u": []}, "its list is empty"),
        ({"u": "a dog"}, "a list of hypotheses is needed, not str"),
        ({"u": [("a", -1.0), "b"]}, "has the scores none"),
        ({"u": [("a", float("nan"))]}, "not a finite number"),
        ({"u": [("a", 1, 2)]}, "is not a text"),
        ({"u": [3]}, "is not a text"),
    ],
)
def test_lists_in_memory_that_are_refused(lists: dict, error: str) -> None:
    with pytest.raises(LmgaugeError, match=error):
        NbestLists.of_hypotheses(lists)


SEEDS = [
    b'{"id": "u1", "text": "a dog <eps>", "score": -3.25, "nbest": ["a", {"text": "b", "scores": {"am": 1}}]}\n' * 2,
    b"u1-1 a dog\nu1-2 a dock\nu2-1 x\n",
    b"u1 a dog\nu2 a dock\nu3\n",
    b'{"id": "u1", "text": "a dog barks at the mail"}\n{"id": "u1", "text": "a dock barks at the male"}\n',
]
FOLDERS = {
    1: ("kaldi/text", "kaldi/ac_cost", b"u1-1 3.5\nu1-2 4\nu2-1 1e3\n"),
    2: (
        "espnet/1best_recog/text",
        "espnet/1best_recog/score",
        b"u1 tensor(-3.5)\nu2 -4\nu3 tensor(-1e3, device='cuda:0')\n",
    ),
}
"""Of the seeds that are lists in folders: file of texts, file of scores, and these."""

SIGNS = b'\0\n \t"{}[]():,.-0189enE\xff\xc3<'


def mutated(generator: random.Random, seed: bytes) -> bytes:
    """A few bytes changed, left out, doubled, or taken from other formats."""
    text = bytearray(seed)
    for _ in range(generator.randint(1, 4)):
        place = generator.randrange(len(text) + 1)
        kind = generator.randrange(4)
        if kind == 0 and place < len(text):
            text[place] = (
                generator.choice(b'\0\n \t"{}[]():,.-0189enE\xff\xc3<')
                if generator.random() < 0.8
                else generator.randrange(256)
            )
        elif kind == 1:
            del text[place : place + generator.randint(1, 9)]
        elif kind == 2:
            text[place:place] = text[place : place + generator.randint(1, 20)]
        else:
            other = generator.choice(SEEDS)
            begin = generator.randrange(len(other))
            text[place:place] = other[begin : begin + generator.randint(1, 30)]
    return bytes(text)


def fuzz(folder: Path, count: int, seed: int = 1, seeds: Sequence[int] = range(len(SEEDS))) -> tuple[int, int]:
    """Read mutated lists; how many were read, and how many refused in words. Anything else is an error of ours."""
    generator, read, refused = random.Random(seed), 0, 0
    for texts, _, _ in FOLDERS.values():
        (folder / texts).parent.mkdir(parents=True)
    for i in range(count):
        which = seeds[i % len(seeds)]
        path = folder / "lists"
        if which in FOLDERS:
            texts, scores, own = FOLDERS[which]
            path = folder / texts.partition("/")[0]
            (folder / texts).write_bytes(mutated(generator, SEEDS[which]))
            (folder / scores).write_bytes(mutated(generator, own) if generator.random() < 0.7 else own)
        else:
            path.write_bytes(mutated(generator, SEEDS[which]))
        try:
            lists = read_nbest(path, READING)
        except LmgaugeError:
            refused += 1
        else:
            assert len(lists.texts) == lists.offsets[-1] > 0
            assert np.isfinite(lists.scores).all()
            read += 1
    return read, refused


def test_bytes_of_chance_are_read_or_refused_in_words(tmp_path: Path) -> None:
    read, refused = fuzz(tmp_path, 1500)
    assert read > 60
    assert refused > 100


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
        ("ref.trn", ";;\n{ a / b } c (u1)\n", "ref.trn:2: the reference has alternatives"),
        ("ref.jsonl", '{"id": "u1"}\n', "ref.jsonl:1: a record needs the fields 'id' (an id) and 'text' (a text)"),
        ("ref.jsonl", '{"id": "u1", "text": "a"}\nu2 b\n', "ref.jsonl:2: not valid JSON"),
    ],
)
def test_references_that_are_refused_say_where(tmp_path: Path, name: str, text: str, says: str) -> None:
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
