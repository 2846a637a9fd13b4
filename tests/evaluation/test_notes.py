"""Notes of a whole text: what was given, and what the unseen words make of its perplexity."""

from __future__ import annotations

import lmgauge
from lmgauge import Corpus

MODEL = lmgauge.train("witten-bell", Corpus.from_strings(["the cat sat", "the dog ran"]), order=2)


def notes(given: list[str], boundary: str = "joint") -> list[str]:
    corpus = Corpus.from_strings([" sat", "sat"], given=given, boundary=boundary)  # type: ignore[arg-type]
    return [note for note in lmgauge.evaluate(MODEL, corpus).notes if "given text" in note]


def test_how_many_bytes_were_given_and_which_tokens_lie_across() -> None:
    shown = "11 bytes of given text are shown but not scored or counted; it is cut into tokens "
    assert notes(["the cat", "the "]) == [f"{shown}together with what follows it"]
    assert notes(["the cat", "the "], "apart") == [f"{shown}on its own"]
    assert notes(["the cat", "thex"])[:1] == [
        "segments that begin inside a token which begins in the given text: 1 of 2; such a token is scored whole, for the "
        "bytes behind the boundary"
    ]


def test_a_text_without_given_text_has_no_such_note_and_many_unseen_words_have_one() -> None:
    result = lmgauge.evaluate(MODEL, texts=["zork quux"])
    assert [note for note in result.notes if "given" in note] == []
    assert any("100 % of the tokens are unseen words" in note for note in result.notes)
