"""Class-based models against their enumeration in tests/reference, stored and loaded, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.commands import ok, refused
from tests.reference.class_model import conditional

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.models.combined.class_model import ClassDefinitions, ClassModel, read_classes
from lmgauge.text.vocabulary import BOS

TRAIN = ["on DAY we rest", "CITY on DAY", "we ride to CITY", "DAY DAY CITY", "rest on may"]
EXPANSIONS = (
    ("DAY", 0.5, "sunday"), ("DAY", 0.3, "may"), ("DAY", 0.2, "we"),
    ("CITY", 0.75, "paris"), ("CITY", 0.25, "sunday"),
)  # fmt: skip
WORDS = ["on", "we", "rest", "ride", "to", "may", "sunday", "paris", "new"]


def class_model(kind: str = "witten-bell", order: int = 3, **options: Any) -> ClassModel:
    ngram = lmgauge.train(kind, Corpus.from_strings(TRAIN), order=order, **options)  # type: ignore[arg-type]
    return ClassModel(ngram, ClassDefinitions(EXPANSIONS))


def parses(model: ClassModel) -> dict[str, list[tuple[str, float]]]:
    """Plain words are themselves, `may` and `we` are also days; what nobody knows is `<unk>`."""
    found: dict[str, list[tuple[str, float]]] = {"new": [("<unk>", 1.0)], "</s>": [("</s>", 1.0)]}
    for word in WORDS[:-1]:
        found[word] = [(word, 1.0)] if word in model.ngram.vocabulary else []
        found[word] += [(name, p) for name, p, member in EXPANSIONS if member == word]
    return found


lines = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=5)
MODELS = [class_model(), class_model("modified-kneser-ney", 2), class_model("absolute-discounting", 4), class_model(order=1)]


@settings(max_examples=60)
@given(st.sampled_from(MODELS), lines)
def test_every_event_is_the_sum_over_all_parses(model: ClassModel, texts: list[str]) -> None:
    def p(token: str, before: tuple[str, ...]) -> float:
        logprob = model.ngram.log_distribution(
            np.array([model.ngram.vocabulary.id(t) if t != "<s>" else BOS for t in before])
        )
        return float(np.exp(logprob[model.ngram.vocabulary.id(token)]))

    (batch,) = model.score(Corpus.from_strings(texts))
    expected = [value for text in texts for value in conditional([*text.split(), "</s>"], parses(model), p)]
    assert np.exp(batch.logprob) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=40)
@given(st.sampled_from(MODELS), lines)
def test_distributions_sum_to_one_and_are_what_is_scored(model: ClassModel, texts: list[str]) -> None:
    (batch,) = model.score(Corpus.from_strings(texts, block_bytes=1 << 20))
    history, rows = [BOS], zip(batch.token_ids.tolist(), batch.logprob.tolist(), strict=True)
    for token, logprob in rows:
        whole = model.log_distribution(history)
        assert float(np.exp(whole).sum()) == pytest.approx(1.0, abs=1e-6)
        assert float(whole[token]) == pytest.approx(logprob, rel=1e-9)
        history = [BOS] if token == 2 else [*history, token]


def test_blocks_and_threads_change_nothing() -> None:
    texts = ["on sunday we rest", "", "may", "paris on may we we", "new new sunday"] * 3
    model = MODELS[0]
    (whole,) = model.score(Corpus.from_strings(texts))
    parts = list(model.score(Corpus.from_strings(texts, block_bytes=20), threads=3))
    assert len(parts) > 3
    assert [value for part in parts for value in part.logprob.tolist()] == whole.logprob.tolist()
    assert lmgauge.audit(model, Corpus.from_strings(texts)).passed


def test_vocabulary_and_names() -> None:
    model = MODELS[0]
    assert model.vocabulary.tokens[3:] == ["on", "we", "rest", "ride", "to", "may", "sunday", "paris"]
    assert model.label == "class-wb3"
    assert model.notes == []
    assert model.score_text("DAY").kinds == ("oov", "eos")  # the name of a class is not a word


def test_impossible_words_do_not_end_the_sentence() -> None:
    model = ClassModel(
        lmgauge.train("mle", Corpus.from_strings(["DAY CITY"]), order=2, vocabulary="closed"), ClassDefinitions(EXPANSIONS)
    )
    scored = model.score_text("paris sunday paris")
    assert scored.logprobs[0] == -np.inf
    assert scored.logprobs[1] == -np.inf  # nothing follows a city but the end
    assert scored.logprobs[2] == pytest.approx(np.log(0.75 * 0.5 / (0.5 + 0.25)))


def test_from_files_to_a_folder_and_back(tmp_path: Path) -> None:
    lmgauge.models.write_arpa(class_model().ngram, tmp_path / "class.arpa")
    (tmp_path / "classes.txt").write_text(ClassDefinitions(EXPANSIONS).to_text(), encoding="utf-8")
    (tmp_path / "test.txt").write_text("on sunday we rest\nparis\n", encoding="utf-8")
    ok("convert", tmp_path / "class.arpa", tmp_path / "class", "--classes", tmp_path / "classes.txt")
    loaded = lmgauge.load_model(tmp_path / "class")
    read = lmgauge.models.read_class_model(tmp_path / "class.arpa", tmp_path / "classes.txt")
    assert loaded.fingerprint == read.fingerprint
    assert "class-arpa3" in ok("eval", "-m", tmp_path / "class", tmp_path / "test.txt", "--signature").stdout
    assert "class-arpa3" in ok("info", tmp_path / "class").stdout
    mixed = lmgauge.mix([tmp_path / "class", tmp_path / "class.arpa"], tmp_path / "test.txt", output=tmp_path / "mixed")
    assert lmgauge.load_model(tmp_path / "mixed").fingerprint == mixed.fingerprint
    unchanged = lmgauge.load_model(tmp_path / "class")
    assert isinstance(unchanged, ClassModel)
    unchanged.save(tmp_path / "class")  # over its own folder
    classes = tmp_path / "class" / "classes.txt"
    classes.write_text(classes.read_text().replace("0.3", "0.31"))
    with pytest.raises(ModelFileError, match="fingerprint"):
        lmgauge.load_model(tmp_path / "class")
    classes.write_text("OTHER a\n")
    with pytest.raises(ModelFileError, match="damaged"):
        lmgauge.load_model(tmp_path / "class")
    out = ["--classes", tmp_path / "classes.txt"]
    assert "is a folder" in refused("convert", tmp_path / "class.arpa", tmp_path / "x.arpa", *out)
    assert "would replace" in refused("convert", tmp_path / "class.arpa", tmp_path / "classes.txt", *out)


def test_what_is_unusual_is_said() -> None:
    ngram = MODELS[0].ngram
    odd = ClassModel(ngram, ClassDefinitions((("DAY", 0.5, "sunday"), ("MONTH", 1.0, "june"))))
    assert ["do not sum to one" in note or "never come" in note for note in odd.notes] == [True, True]
    assert "june" not in odd.vocabulary
    with pytest.raises(UsageError, match="none of the 1 classes"):
        ClassModel(ngram, ClassDefinitions((("MONTH", 1.0, "june"),)))
    with pytest.raises(UsageError, match="sentences as contexts"):
        class_model(context="stream")


def read(folder: Path, content: bytes | str) -> ClassDefinitions:
    path = folder / "classes.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_classes(path)


def test_probabilities_may_be_left_out_and_words_look_like_numbers(tmp_path: Path) -> None:
    text = "\ufeffDAY 0.75 Monday\r\n\n  DAY\t2.5e-1\tSunday \nONE word\nNUMBER 7\nNUMBER .5 .5\nA a\u00a0b"
    assert read(tmp_path, text).expansions == (
        ("DAY", 0.75, "Monday"),
        ("DAY", 0.25, "Sunday"),
        ("ONE", 1.0, "word"),
        ("NUMBER", 1.0, "7"),
        ("NUMBER", 0.5, ".5"),
        ("A", 1.0, "a\u00a0b"),
    )
    assert read(tmp_path, read(tmp_path, text).to_text()).expansions == read(tmp_path, text).expansions


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("A 1 a\nCITY 0.5 New York\n", r"line 2: class 'CITY' stands for 2 words in a row \('New York'\)"),
        ("CITY New York", "2 words in a row"),
        ("DAY", "line 1: class 'DAY' has no word"),
        ("DAY 1.5 Monday", "not a probability"),
        ("DAY 0 Monday", "not a probability"),
        ("DAY -1 Monday", "not a probability"),
        ("DAY 1e999 Monday", "not a probability"),
        ("DAY 0.5 <unk>", "neither classes nor words"),
        ("</s> 0.5 end", "neither classes nor words"),
        ("\n \n", "no class is defined"),
        (b"DAY 1 \xff", "not UTF-8 at byte 7"),
    ],
)
def test_files_are_refused(tmp_path: Path, content: bytes | str, message: str) -> None:
    with pytest.raises((InputError, ModelFileError), match=message):
        read(tmp_path, content)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_classes(tmp_path / "nothing")


def test_any_bytes_are_read_or_refused(tmp_path: Path) -> None:
    draw = random.Random(17)
    pieces = [
        b"A ",
        b"0.5 ",
        b"a",
        b"\n",
        b"\t",
        b"\xff",
        b"\x00",
        b"nan ",
        b"1e5 ",
        b"<s>",
        "é".encode(),
        b"\r",
        b"+ ",
        b"- ",
    ]
    for _ in range(300):
        content = b"".join(draw.choices(pieces, k=draw.randrange(12)))
        try:
            definitions = read(tmp_path, content)
        except (InputError, ModelFileError):
            continue
        assert all(0 < p <= 1 and name and word for name, p, word in definitions.expansions)
