"""Spelled models mixed: one speller around the mixture, or byte by byte; saved, loaded, refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, ModelFileError, UsageError
from lmgauge.models.combined.mixture.compatibility import agreeing
from lmgauge.models.combined.mixture.mixing import fit_weights, together
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


@pytest.fixture(scope="module")
def kinds() -> list[LanguageModel]:
    """Words, characters and bytes of one text."""
    return [words(order=2), train(order=3, vocabulary="spelled", tokenizer="character"), train(order=4, tokenizer="byte")]


# -- one speller ----------------------------------------------------------------------------------------------------------


def test_models_of_one_text_have_one_speller() -> None:
    """Whatever the order and the smoothing: what rare words and white space are like is a property of the text."""
    models = [words(order=1), words("kneser-ney", order=3), words("laplace", order=2)]
    assert len({model.speller.fingerprint for model in models}) == 1
    assert together(models).spelled is models[0]


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
    assert together(parts).read_as == "tokens"
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


# -- byte by byte -----------------------------------------------------------------------------------------------------------


def test_words_characters_and_bytes_are_mixed_byte_by_byte(kinds: list[LanguageModel], tmp_path: Path) -> None:
    mixed = lmgauge.mix(kinds, corpus(HELD_OUT), output=tmp_path / "mixed")
    assert isinstance(mixed, MixtureModel)
    assert (mixed.read_as, mixed.label, mixed.tokenizer.name) == ("bytes", "mix(wb2+spelled+wb3+spelled+wb4,bytes)", "byte")
    assert mixed.vocabulary.closed
    assert mixed.estimation["events"] == sum(len(line.encode()) + 1 for line in HELD_OUT)
    again = lmgauge.load_model(tmp_path / "mixed")
    assert (again.fingerprint, again.label, total(again)) == (mixed.fingerprint, mixed.label, total(mixed))
    assert mixed.to_dict()["read_as"] == "bytes"
    assert mixed.with_reserved("escape").read_as == "bytes"
    assert total(mixed) >= max(map(total, kinds[:2])) - 1e-6


def test_its_distributions_sum_to_one_after_any_bytes(kinds: list[LanguageModel]) -> None:
    mixed = lmgauge.mix(kinds, weights=[0.3, 0.3, 0.4])
    for begin in (b"", b"the c", b"the ", b"\xc3", b"\xff\x00", b"b\xc3("):
        context = np.array([1, *(3 + byte for byte in begin)], np.uint32)
        assert np.exp(mixed.log_distribution(context)).sum() == pytest.approx(1, abs=1e-6)


def test_it_is_sampled_audited_and_compared(kinds: list[LanguageModel], tmp_path: Path) -> None:
    mixed = lmgauge.mix(kinds, weights=[0.3, 0.3, 0.4])
    assert lmgauge.sample(mixed, count=2, seed=3, max_tokens=20)
    result = lmgauge.evaluate(mixed, corpus(HELD_OUT))
    assert result.bits_per_byte is not None
    audit = lmgauge.audit(mixed, corpus(["the cat", "é "]), levels=["coverage", "normalization", "causality"], contexts=5)
    assert audit.passed


def test_words_of_different_texts_are_mixed_byte_by_byte() -> None:
    """Their spellers differ, and no speller fits the mixture."""
    models = [words(order=2), train(lines=OTHER, order=2, vocabulary="spelled")]
    mixed = lmgauge.mix(models, weights=[0.5, 0.5])
    assert isinstance(mixed, MixtureModel)
    assert mixed.read_as == "bytes"


def test_a_mixture_of_bytes_is_a_component_like_any_other(kinds: list[LanguageModel], tmp_path: Path) -> None:
    inside = lmgauge.mix(kinds[:2], weights=[0.5, 0.5])
    mixed = lmgauge.mix([inside, kinds[2]], weights=[0.5, 0.5], output=tmp_path / "mixed")
    flat = lmgauge.mix(kinds, weights=[0.25, 0.25, 0.5])
    assert total(mixed) == pytest.approx(total(flat), abs=1e-9)
    assert total(lmgauge.load_model(tmp_path / "mixed")) == total(mixed)


# -- what is refused --------------------------------------------------------------------------------------------------------


def test_a_model_that_is_not_spelled_is_refused_beside_one_that_is(kinds: list[LanguageModel]) -> None:
    with pytest.raises(UsageError, match=r"wb1 cannot be read as bytes: .*lmgauge spell MODEL --train TEXT"):
        lmgauge.mix([kinds[0], train(order=1)], weights=[0.5, 0.5])
    with pytest.raises(UsageError, match="does not predict the ends of lines"):
        lmgauge.mix([kinds[0], train(order=1, eos=False)], weights=[0.5, 0.5])


def test_paths_are_named_in_messages(tmp_path: Path) -> None:
    words(order=1).save(tmp_path / "spelled")
    train(order=1).save(tmp_path / "plain")
    with pytest.raises(UsageError, match=r"plain cannot be read as bytes"):
        lmgauge.mix([tmp_path / "spelled", tmp_path / "plain"], weights=[0.5, 0.5])


def test_models_without_a_speller_are_mixed_as_before() -> None:
    with pytest.raises(InputError, match="train both with the same --tokenizer"):
        lmgauge.mix([train(order=1), train(order=1, tokenizer="character")], weights=[0.5, 0.5])
    assert lmgauge.mix([train(order=1), train(order=2)], weights=[0.5, 0.5]).read_as == "tokens"


def test_spelled_models_are_no_components_of_tokens() -> None:
    with pytest.raises(UsageError, match="a spelled model cannot be a component"):
        agreeing([words(order=1), words(order=2)])
    with pytest.raises(UsageError, match="tokens or as bytes, not as 'letters'"):
        MixtureModel([train(order=1), train(order=2)], [0.5, 0.5], read_as="letters")  # type: ignore[arg-type]


def test_bytes_have_no_static_mixture(kinds: list[LanguageModel]) -> None:
    with pytest.raises(UsageError, match="made of n-grams of the same tokens"):
        lmgauge.mix(kinds, weights=[0.3, 0.3, 0.4], static=True)


@pytest.mark.parametrize("read_as", ["letters", None, 1, ["bytes"], "tokens"])
def test_another_reading_in_the_folder_is_refused(kinds: list[LanguageModel], tmp_path: Path, read_as: Any) -> None:
    lmgauge.mix(kinds, weights=[0.3, 0.3, 0.4], output=tmp_path / "mixed")
    file = tmp_path / "mixed" / "config.json"
    config = json.loads(file.read_text()) | {"read_as": read_as}
    file.write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match="edited or damaged"):
        lmgauge.load_model(tmp_path / "mixed")
    from lmgauge.models.protocol import digest_of

    file.write_text(json.dumps(config | {"sha256": digest_of(config)}))
    with pytest.raises(ModelFileError):
        lmgauge.load_model(tmp_path / "mixed")


def test_a_component_that_lost_its_speller_is_refused(kinds: list[LanguageModel], tmp_path: Path) -> None:
    import shutil

    lmgauge.mix(kinds, weights=[0.3, 0.3, 0.4], output=tmp_path / "mixed")
    shutil.rmtree(tmp_path / "mixed" / "component-1" / "spelling")
    with pytest.raises(ModelFileError, match="a folder was exchanged"):
        lmgauge.load_model(tmp_path / "mixed")
