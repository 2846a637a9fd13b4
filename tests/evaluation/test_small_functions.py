"""What small functions of `evaluation` give for an example each."""

from __future__ import annotations

from lmgauge.evaluation import evaluate, origin
from lmgauge.evaluation.audit import checks, spelling, subject
from lmgauge.evaluation.comparison import comparability


def test_results() -> None:
    assert checks.in_nine_digits(-0.1234567891) == "-0.123456789"
    assert checks.in_nine_digits(float("nan")) == "NaN"


def test_parts_of_rows() -> None:
    assert subject.unseen_noun("word") == "unseen word"
    assert subject.unseen_noun("character") == "unseen character"


def test_spelling() -> None:
    assert spelling.byte_named("<0x0A>") == 10
    assert spelling.byte_named("<0xZZ>") is None


def test_origin() -> None:
    assert origin.lossy_reason(origin.Origin("mine", unit="word")).short == "white space lost"


def test_comparability() -> None:
    assert comparability.choose_documents([], [], None, asked=False).by == "unknown"


def test_notes() -> None:
    assert [note.partition(":")[0] for note in evaluate.whole_text_notes(evaluate.EventSums(crossing_tokens=3))] == [
        "segments that begin inside a token which begins in the given text"
    ]
