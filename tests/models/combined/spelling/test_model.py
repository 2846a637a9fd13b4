"""Models that spell: their rows are those of the model inside, and what is added says so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.models import SpelledModel
from lmgauge.scores import OOV, SEPARATOR, SPELLED, SPELLING

TEXT = Corpus.from_strings(["the cat  sat", "a dog\tsat ", " the dog ran", "an owl", "the bird sang a song"])
STRANGE = ["the zebra  sat", "", " \t", "ünder the\vΩmega", "cat"]


def of_words(**options: Any) -> SpelledModel:
    model = lmgauge.train("witten-bell", TEXT, **{"order": 2, "vocabulary": "spelled", **options})
    assert isinstance(model, SpelledModel)
    return model


def rows(model: lmgauge.LanguageModel, texts: list[str] = STRANGE, **options: Any) -> lmgauge.ScoreBatch:
    return next(iter(model.score(Corpus.from_strings(texts), **options)))


@pytest.mark.parametrize("options", [{}, {"tokenizer": "treebank"}, {"context": "stream"}, {"vocab_size": 2}])
def test_rows_are_those_of_the_model_inside(options: dict[str, Any]) -> None:
    model = of_words(**options)
    spelled, inside = rows(model), rows(model.inner)
    assert spelled.token_ids.tolist() == inside.token_ids.tolist()
    assert spelled.ends.tolist() == inside.ends.tolist()
    assert np.where(spelled.kind == SPELLED, OOV, spelled.kind).tolist() == inside.kind.tolist()
    assert not spelled.lossy.any()
    np.testing.assert_allclose(spelled.event_logprob(), inside.logprob, atol=1e-12)
    parts = spelled.extra[SPELLING] + spelled.extra[SEPARATOR]
    np.testing.assert_allclose(spelled.logprob, inside.logprob + parts)
    assert (spelled.extra[SPELLING] < 0).tolist() == (spelled.kind == SPELLED).tolist()
    assert np.isfinite(spelled.logprob).all()


def test_characters_pay_for_what_is_unseen_only() -> None:
    model = of_words(tokenizer="character")
    batch = rows(model)
    assert SEPARATOR not in batch.extra
    assert (batch.extra[SPELLING] < 0).tolist() == (batch.kind == SPELLED).tolist()
    with pytest.raises(UsageError, match="spells no words"):
        _ = model.spelling


def test_blocks_threads_and_strings_give_the_same_numbers() -> None:
    model = of_words()
    whole = rows(model).logprob
    each = [x for text in STRANGE for x in model.score_text(text).logprobs]
    assert each == whole.tolist()
    assert rows(model, threads=3).logprob.tolist() == whole.tolist()
    assert [x for scored in model.score_text(STRANGE) for x in scored.logprobs] == whole.tolist()


def test_reserved_tokens_mean_what_they_are_told_to() -> None:
    model = of_words()
    assert model.reserved == "refuse"
    with pytest.raises(InputError, match="reserved token"):
        rows(model, ["the <unk>"])
    as_unknown, as_word = (rows(model.with_reserved(policy), ["the <unk>"]) for policy in ("unk", "escape"))  # type: ignore[arg-type]
    assert as_unknown.kind.tolist() == as_word.kind.tolist() == [0, SPELLED, 2]
    assert as_unknown.logprob.tolist() == as_word.logprob.tolist()
    assert math.isfinite(as_word.logprob.sum())


def test_it_says_what_it_is() -> None:
    model = of_words()
    content = model.to_dict()
    assert (content["label"], content["vocabulary"], content["order"]) == ("wb2+spelled", "spelled", 2)
    assert content["fingerprint"] == model.fingerprint != model.inner.fingerprint
    assert content["speller"]["known_mass"] == model.spelling.known_mass
    assert of_words(tokenizer="character").learned() == {}
    assert model.tokens is None
    with pytest.raises(AttributeError, match="'SpelledModel' object has no attribute 'network'"):
        _ = model.network


def test_another_speller_is_another_model() -> None:
    model = of_words()
    other = lmgauge.spell(model.inner, TEXT, order=2)
    assert other.fingerprint != model.fingerprint
    assert lmgauge.spell(model.inner, TEXT).fingerprint == model.fingerprint


class Uniform(lmgauge.CustomModel):
    """A model of somebody's own: all words are as probable."""

    label, fingerprint = "uniform", "1" * 64

    def log_distribution(self, context_ids: Any) -> Any:
        logprob = np.full(len(self.vocabulary), -math.log(len(self.vocabulary) - 1))
        logprob[1] = -math.inf
        return logprob


def test_a_model_of_ones_own_can_be_spelled_but_not_kept(tmp_path: Any) -> None:
    model = lmgauge.spell(Uniform(["the", "cat"]), TEXT)
    assert model.score_text("the zebra").kinds == ("token", "spelled", "eos")
    assert np.isfinite(rows(model).logprob).all()
    with pytest.raises(UsageError, match=r"has no method save\(path\)"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_vocabulary_of_no_words_spells_all() -> None:
    assert of_words(words=[]).score_text("the cat").kinds == ("spelled", "spelled", "eos")
    with pytest.raises(InputError, match="no word"):
        lmgauge.train("witten-bell", Corpus.from_strings([" ", "\t"]), vocabulary="spelled")


def test_score_takes_blocks_of_text() -> None:
    with pytest.raises(UsageError, match="score_text takes a string"):
        of_words().score("the cat")  # type: ignore[arg-type]
