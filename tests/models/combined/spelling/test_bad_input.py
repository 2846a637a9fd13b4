"""Spellers of other alphabets, of next to nothing, and texts that are hard to spell: finite, sane, and in linear time."""

from __future__ import annotations

import time

import numpy as np
import pytest

import lmgauge
from lmgauge.base.errors import InputError
from lmgauge.models.combined.spelling.learn import learn_spelling
from lmgauge.models.combined.spelling.model import SpelledModel
from lmgauge.models.model_settings import SpellerSettings
from lmgauge.models.ngram.settings import NgramTrainingSettings
from lmgauge.models.ngram.training import train_ngram


def spelled(lines: list[str], words: list[str] | None = None, **options: int) -> SpelledModel:
    corpus = lmgauge.Corpus.from_strings(lines)
    settings = NgramTrainingSettings("witten-bell", order=2, words=words, reserved="escape")
    return learn_spelling(train_ngram(settings, corpus), corpus, SpellerSettings(**options))


@pytest.mark.parametrize("lines", [["a"], ["a a a"], ["x y z"] * 5, ["aaaa aaa aa a"], ["a" * 100], ["", "a"], ["日本語"]])
@pytest.mark.parametrize("max_count", [None, 1])
@pytest.mark.parametrize("order", [1, 8, 20])
def test_a_speller_learns_from_next_to_nothing(lines: list[str], max_count: int | None, order: int) -> None:
    model = spelled(lines, max_count=max_count, order=order)
    assert 0 < model.spelling.known_mass < 1
    scored = model.score_text("b  zzz Ж\u3000é ")
    assert np.isfinite(scored.logprobs).all()
    assert "oov" not in scored.kinds


def test_a_text_without_words_teaches_no_spelling() -> None:
    with pytest.raises(InputError, match="no word"):
        spelled([" ", "\t"], words=["a"])


def test_a_vocabulary_of_no_words_spells_all() -> None:
    model = spelled(["the cat", "a cat"], words=[])
    scored = model.score_text("the cat sat")
    assert scored.kinds == ("spelled", "spelled", "spelled", "eos")
    assert np.isfinite(scored.logprobs).all()


@pytest.mark.parametrize("text", ["", " ", "\t \u3000", " \v\f"])
def test_texts_of_white_space_have_a_probability(text: str) -> None:
    scored = spelled(["the cat", "a cat"]).score_text(text)
    assert scored.kinds[-1] == "eos"
    assert np.isfinite(scored.logprobs).all()


def test_other_alphabets_cost_more_but_not_everything() -> None:
    model = spelled(["the cat sat on the mat", "a dog"])
    (latin,), (cyrillic,), (chinese,) = (
        model.spelling.logprobs(next(iter(lmgauge.Corpus.from_strings([word])))) / len(word)
        for word in ("tac", "кот", "猫猫猫")
    )
    assert -20 < chinese < latin < 0
    assert -20 < cyrillic < latin


def test_long_words_take_linear_time() -> None:
    model = spelled(["the cat sat on the mat"])
    model.score_text("tac")
    seconds = []
    for length in (20_000, 200_000):
        text = "tжac" * (length // 4)
        begin = time.process_time()
        assert np.isfinite(model.score_text(text).logprobs).all()
        seconds.append(time.process_time() - begin)
    assert seconds[1] < 60 * max(seconds[0], 0.005)
