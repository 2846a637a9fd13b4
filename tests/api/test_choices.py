"""`lmgauge.pairs` and `lmgauge.multiple_choice`: files, strings, and what cannot be used."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.settings import PairFields, QuestionFields

PAIRS = [("the cat sits", "the cat sit", "number"), ("the dogs sit", "the dogs sits", "number"), ("a dog", "dog a", "order")]


@pytest.fixture(scope="module")
def model() -> Any:
    text = Corpus.from_strings(["the cat sits", "the cats sit", "a dog sits", "the dogs sit", "which pet sits a dog"])
    return lmgauge.train("witten-bell", text, order=3)


def as_file(folder: Path, ending: str) -> Path:
    path = folder / f"pairs{ending}"
    rows = [{"sentence_good": good, "sentence_bad": bad, "linguistics_term": by} for good, bad, by in PAIRS]
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == ".tsv":
        path.write_text("".join("\t".join(pair) + "\n" for pair in PAIRS))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("ending", [".jsonl", ".tsv", ".parquet"])
def test_files_of_every_kind_give_what_strings_give(model: Any, tmp_path: Path, ending: str) -> None:
    ours = lmgauge.pairs(model, PAIRS).to_dict()
    theirs = lmgauge.pairs(model, as_file(tmp_path, ending)).to_dict()
    for name in ("accuracies", "groups", "items"):
        assert ours[name] == theirs[name]


def test_two_text_files(model: Any, tmp_path: Path) -> None:
    for i, name in enumerate(("good", "bad")):
        (tmp_path / name).write_text("".join(pair[i] + "\n" for pair in PAIRS))
    result = lmgauge.pairs(model, tmp_path / "good", tmp_path / "bad")
    assert result.accuracy().accuracy == lmgauge.pairs(model, PAIRS).accuracy().accuracy
    assert result.groups == ()
    with (tmp_path / "bad").open("a") as file:
        file.write("one more\n")
    with pytest.raises(InputError, match="3 good texts and 4 bad ones"):
        lmgauge.pairs(model, tmp_path / "good", tmp_path / "bad")


def test_rows_are_written(model: Any, tmp_path: Path) -> None:
    path = as_file(tmp_path, ".jsonl")
    result = lmgauge.pairs(model, path, output=tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").to_pydict() == result.rows
    assert result.rows["id"] == [f"{path}:{line}" for line in (1, 2, 3)]
    with pytest.raises(UsageError, match="-o"):
        lmgauge.pairs(model, path, output=path)


def test_what_is_not_pairs(model: Any, tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("a\n")
    for texts, message in ((plain, "second file of bad texts"), ("ab", "a file|no such|not"), ([("a",)], "pairs are")):
        with pytest.raises((UsageError, InputError), match=message):
            lmgauge.pairs(model, texts)
    header = tmp_path / "header.tsv"
    header.write_text("good\tbad\na\tb\n")
    with pytest.raises(InputError, match="looks like a header"):
        lmgauge.pairs(model, header, fields=PairFields(by="none"))
    with pytest.raises(InputError, match="no column 3; by none"):
        lmgauge.pairs(model, header)
    assert lmgauge.pairs(model, header, fields=PairFields(good="good", bad="bad", by="none")).items == 1
    with pytest.raises(UsageError, match="are for files"):
        lmgauge.pairs(model, PAIRS, fields=PairFields(by="none"))


QUESTION = {"question": "which pet sits", "choices": [" a dog", " the cat", " a dog sits"], "answer": 0, "of": "pets"}


def ask(model: Any, folder: Path, *records: dict[str, Any], fields: QuestionFields | None = None) -> lmgauge.results.Choices:
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return lmgauge.multiple_choice(model, path, fields=fields)


@pytest.mark.parametrize("answer", [0, "0", "A", " a dog"])
def test_the_right_answer_has_a_number_a_letter_or_its_words(model: Any, tmp_path: Path, answer: object) -> None:
    result = ask(model, tmp_path, QUESTION | {"answer": answer}, fields=QuestionFields(by="of"))
    assert (result.accuracy().right, result.groups, result.options) == (1, ("pets",), (3, 3))
    assert result.chance == pytest.approx(1 / 3)
    assert result.rows["right"] == [0]


def test_answers_are_scored_after_their_question(model: Any, tmp_path: Path) -> None:
    """The log-probability of an answer is that of the whole less that of the question alone."""
    (own,) = ask(model, tmp_path, QUESTION).rows["logprobs"]
    question = model.score_text(QUESTION["question"]).logprobs[:-1]  # </s> does not come after it
    for nats, answer in zip(own, QUESTION["choices"], strict=True):
        whole = model.score_text(QUESTION["question"] + answer)
        assert nats == pytest.approx(whole.log_probability - sum(question))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": 3}, "right answer is '3'"),
        ({"answer": "D"}, "right answer is 'D'"),
        ({"answer": ""}, "right answer is ''"),
        ({"choices": [" a dog"]}, "single answer"),
        ({"choices": [" a dog", ""]}, "empty"),
        ({"choices": " a dog"}, "single answer|list"),
    ],
)
def test_questions_that_cannot_be_asked(model: Any, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        ask(model, tmp_path, QUESTION, QUESTION | change)
    assert re.search(r"questions\.jsonl(:|, record )2", str(caught.value))


def test_data_frames(model: Any) -> None:
    pytest.importorskip("pandas")
    result = lmgauge.pairs({"one": model, "two": model}, PAIRS)
    frame = result.to_pandas()
    assert len(frame) == 2 * 2 * 3  # models, measures, all and two groups
    assert frame.interval_low.le(frame.accuracy).all()
    assert list(result.items_to_pandas().model) == ["one"] * 3 + ["two"] * 3
