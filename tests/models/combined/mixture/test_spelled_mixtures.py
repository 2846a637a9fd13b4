"""Spelled models mixed: one speller around the mixture; saved, loaded, refused."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.models.combined.mixture.compatibility import agreeing
from lmgauge.models.combined.mixture.mixing import fit_weights
from lmgauge.models.combined.mixture.model import MixtureModel
from lmgauge.models.combined.spelling.model import SpelledModel
from lmgauge.models.protocol import LanguageModel

LINES = ["the cat sat on the mat", "the  dog ran, for the cat", "a bird ät das Brot", "tabs\tare here", "x y z"]
OTHER = ["the dog sat", "some  other words", "das Brot ät the bird"]
HELD_OUT = ["the cat  ran", "unseen word é", " das bird"]


def corpus(lines: list[str] = LINES) -> Corpus:
    return Corpus.from_strings(lines)


def train(kind: str = "witten-bell", lines: list[str] = LINES, **options: Any) -> Any:
    learn: Any = lmgauge.train
    return learn(kind, corpus(lines), **options)


def words(kind: str = "witten-bell", **options: Any) -> Any:
    return train(kind, vocabulary="spelled", **options)


def total(model: LanguageModel, texts: list[str] = HELD_OUT) -> float:
    return math.fsum(value for batch in model.score(corpus(texts)) for value in batch.logprob.tolist())


# -- one speller ----------------------------------------------------------------------------------------------------------


def test_models_of_one_text_have_one_speller() -> None:
    """Whatever the order and the smoothing: what rare words and white space are like is a property of the text."""
    models = [words(order=1), words("kneser-ney", order=3), words("laplace", order=2)]
    assert len({model.speller.fingerprint for model in models}) == 1
    assert lmgauge.mix(models, weights=[0.5, 0.25, 0.25]).speller is models[0].speller  # type: ignore[union-attr]


def test_one_speller_is_put_around_the_mixture() -> None:
    models = [words(order=1), words("kneser-ney", order=3)]
    mixed = lmgauge.mix(models, weights=[0.25, 0.75])
    assert isinstance(mixed, SpelledModel)
    assert isinstance(mixed.inner, MixtureModel)
    assert mixed.label == "mix(wb1+kn3)+spelled"
    assert mixed.weights == (0.25, 0.75)
    assert [component.label for component in mixed.components] == ["wb1", "kn3"]
    rows = [next(iter(model.score(corpus(HELD_OUT)))) for model in (*models, mixed)]
    expected = np.log(0.25 * np.exp(rows[0].logprob) + 0.75 * np.exp(rows[1].logprob))
    assert rows[2].logprob == pytest.approx(expected, abs=1e-12)
    assert rows[2].kind.tolist() == rows[0].kind.tolist()


def test_weights_are_those_of_the_models_inside() -> None:
    models = [words(order=1), words("kneser-ney", order=3)]
    spelled = lmgauge.mix(models, corpus(HELD_OUT))
    inside = lmgauge.mix([model.inner for model in models], corpus(HELD_OUT))
    assert spelled.weights == inside.weights
    # Letters and white space are equal in both, so that rows of the spelled models have the same best weights.
    rows = [next(iter(model.score(corpus(HELD_OUT)))).logprob for model in models]
    fit = fit_weights(np.array(rows))
    assert fit.weights == pytest.approx(spelled.weights, abs=1e-6)


def test_over_a_union_the_known_words_are_those_of_all() -> None:
    """Vocabularies differ and spellers do not: a word that one model knows is not spelled by the other one."""
    parts = [words(order=2), words(order=2, min_count=2)]
    mixed = lmgauge.mix(parts, weights=[0.5, 0.5])
    assert isinstance(mixed, SpelledModel)
    assert mixed.spelling.known_mass == pytest.approx(parts[0].spelling.known_mass, abs=1e-12)
    assert mixed.spelling.known_mass > parts[1].spelling.known_mass
    assert mixed.label.endswith("union)+spelled")
    kinds = mixed.score_text("cat dogs").kinds
    assert kinds == ("token", "spelled", "eos")


def test_a_mixture_with_a_speller_is_saved_and_replaced(tmp_path: Path) -> None:
    models = [words(order=1), words("kneser-ney", order=3)]
    mixed = lmgauge.mix(models, corpus(HELD_OUT), output=tmp_path / "mixed")
    names = {file.name for file in (tmp_path / "mixed").iterdir()}
    assert names == {"config.json", "component-1", "component-2", "spelling"}
    again = lmgauge.load_model(tmp_path / "mixed")
    assert (again.fingerprint, again.label, total(again)) == (mixed.fingerprint, mixed.label, total(mixed))
    again.save(tmp_path / "mixed")  # type: ignore[attr-defined]
    lmgauge.mix([train(order=1), train(order=2)], weights=[0.5, 0.5], output=tmp_path / "mixed")
    assert isinstance(lmgauge.load_model(tmp_path / "mixed"), MixtureModel)


def test_the_report_says_that_letters_are_left_out() -> None:
    mixed = lmgauge.mix([words(order=1), words(order=2)], corpus(HELD_OUT))
    assert isinstance(mixed, SpelledModel)
    from lmgauge.report.models import mixture_blocks

    notes = [str(block) for block in mixture_blocks(mixed)]
    assert any("perplexities are without spelled letters" in note for note in notes)
    assert "perplexity" in mixed.estimation


def test_characters_are_mixed_over_their_union() -> None:
    models = [train(lines=lines, vocabulary="spelled", tokenizer="character", order=2) for lines in (LINES, OTHER)]
    mixed = lmgauge.mix(models, weights=[0.5, 0.5])
    assert isinstance(mixed, SpelledModel)
    assert total(mixed) > -math.inf


def test_a_static_mixture_has_the_speller(tmp_path: Path) -> None:
    models = [words(order=1), words("kneser-ney", order=3)]
    mixed = lmgauge.mix(models, weights=[0.5, 0.5])
    static = lmgauge.mix(models, corpus(HELD_OUT), weights=[0.5, 0.5], static=True, output=tmp_path / "static")
    assert isinstance(static.model, SpelledModel)
    assert static.ngrams == (21, 26, 23)
    seen = ["the cat sat", "das Brot", "z"]
    assert total(lmgauge.load_model(tmp_path / "static"), seen) == pytest.approx(total(static.model, seen))
    of_one = lmgauge.mix([mixed], static=True)
    assert of_one.model.fingerprint == static.model.fingerprint
    with pytest.raises(UsageError, match="a spelled model is a folder"):
        lmgauge.mix(models, weights=[0.5, 0.5], static=True, output=tmp_path / "static.arpa")


# -- what is refused --------------------------------------------------------------------------------------------------------


def test_models_that_cut_text_differently_are_refused(tmp_path: Path) -> None:
    """One line says what differs and what to do, whether the models are spelled or not, by their paths if they have any."""
    spelled, plain = words(order=2), train(order=1)
    characters = train(order=3, vocabulary="spelled", tokenizer="character")
    what = r"'character'.*'whitespace'.*the same --tokenizer, or compare them in bits per byte \(lmgauge compare\)$"
    for other in (spelled, plain):
        with pytest.raises(InputError, match=what):
            lmgauge.mix([other, characters], weights=[0.5, 0.5])
    spelled.save(tmp_path / "words")
    characters.save(tmp_path / "letters")
    with pytest.raises(InputError, match=r"letters cuts text by .*words by"):
        lmgauge.mix([tmp_path / "words", tmp_path / "letters"], corpus(HELD_OUT), static=True)


def test_models_that_spell_differently_are_refused(tmp_path: Path) -> None:
    first = words(order=2)
    for other in (train(order=1), train(lines=OTHER, order=2, vocabulary="spelled")):
        with pytest.raises(UsageError, match=r"^wb2\+spelled spells .*lmgauge spell MODEL --train TEXT --replace"):
            lmgauge.mix([first, other], weights=[0.5, 0.5])
        with pytest.raises(UsageError, match=r"^wb2\+spelled spells"):
            lmgauge.mix([other, first], weights=[0.5, 0.5])
    first.save(tmp_path / "spelled")
    train(order=1).save(tmp_path / "plain")
    with pytest.raises(UsageError, match=r"spelled spells"):
        lmgauge.mix([tmp_path / "plain", tmp_path / "spelled"], weights=[0.5, 0.5])
    with pytest.raises(UsageError, match=r"spells"):
        agreeing([words(order=1), words(order=2)])


def test_models_of_different_texts_are_mixed_once_one_text_has_spelled_them() -> None:
    models = [train(order=2), train(lines=OTHER, order=2)]
    mixed = lmgauge.mix([lmgauge.spell(model, corpus(LINES + OTHER)) for model in models], weights=[0.5, 0.5])
    assert isinstance(mixed, SpelledModel)
    assert total(mixed) > -math.inf


def test_a_mixture_of_earlier_versions_over_bytes_is_refused(tmp_path: Path) -> None:
    from lmgauge.models.protocol import digest_of

    lmgauge.mix([words(order=1), words(order=2)], weights=[0.5, 0.5], output=tmp_path / "mixed")
    file = tmp_path / "mixed" / "config.json"
    config = json.loads(file.read_text()) | {"read_as": "bytes"}
    file.write_text(json.dumps(config | {"sha256": digest_of(config)}))
    with pytest.raises(ModelFileError, match=r"earlier versions.*the same --tokenizer.*lmgauge compare"):
        lmgauge.load_model(tmp_path / "mixed")


def test_a_component_that_was_exchanged_is_refused(tmp_path: Path) -> None:
    lmgauge.mix([train(order=1), train(order=2)], weights=[0.5, 0.5], output=tmp_path / "mixed")
    shutil.rmtree(tmp_path / "mixed" / "component-1")
    train("laplace", order=1).save(tmp_path / "mixed" / "component-1")
    with pytest.raises(ModelFileError, match="a folder was exchanged"):
        lmgauge.load_model(tmp_path / "mixed")
