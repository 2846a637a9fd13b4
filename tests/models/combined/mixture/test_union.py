"""Mixtures of models that know different words: one rule, and what follows from it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.base.errors import InputError
from lmgauge.models.combined.mixture.compatibility import agreeing
from lmgauge.models.combined.mixture.mixing import find_weights
from lmgauge.models.combined.mixture.model import MixtureModel
from lmgauge.text.vocabulary import BOS

TEST = ["the cat sat", "a bird sat on the moon", "", "the moon ran", "bird"]


def model(lines: list[str], kind: str = "witten-bell", order: int = 3, **options: object) -> NgramModel:
    return lmgauge.train(kind, Corpus.from_strings(lines), order=order, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def parts() -> tuple[NgramModel, NgramModel]:
    """One that knows `cat`, one that knows `bird`; both know `the` and `sat`."""
    return model(["the cat sat", "the cat ran"]), model(["the bird sat", "a bird sat"], order=2)


def events(one: lmgauge.LanguageModel, lines: list[str]) -> list[tuple[str, float, int]]:
    """Token, probability and kind of each event."""
    return [
        (batch.strings.token(i), math.exp(p), kind)  # type: ignore[attr-defined]
        for batch in one.score(Corpus.from_strings(lines))
        for i, p, kind in zip(batch.token_ids.tolist(), batch.logprob.tolist(), batch.kind.tolist(), strict=True)
    ]


def test_each_event_by_hand(parts: tuple[NgramModel, NgramModel]) -> None:
    first, second = parts
    mixture = MixtureModel(parts, [0.25, 0.75])
    assert mixture.label == "mix(wb3+wb2,union)"
    assert mixture.vocabulary.tokens[3:] == ["the", "cat", "sat", "ran", "bird", "a"]
    for line in TEST:
        both = zip(events(first, [line]), events(second, [line]), events(mixture, [line]), strict=True)
        for (word_a, p, _), (word_b, q, _), (word, mixed, kind) in both:
            assert word == (word_a if word_a != "<unk>" else word_b)
            expected = 0.25 * p * (word_a == word) + 0.75 * q * (word_b == word)
            assert mixed == pytest.approx(expected, rel=1e-12), word
            assert kind == (1 if word == "<unk>" else 2 if word == "</s>" else 0)


lines = st.lists(st.lists(st.sampled_from("abcde"), max_size=5).map(" ".join), min_size=1, max_size=5)


@settings(max_examples=40)
@given(lines.filter(any), lines.filter(any), st.floats(0, 1), st.booleans(), st.lists(st.sampled_from("abcdex")))
def test_distributions_sum_to_one_over_the_union(
    one: list[str], other: list[str], weight: float, closed: bool, words: list[str]
) -> None:
    vocabulary = "closed" if closed else "open"
    parts = [model(one, vocabulary=vocabulary), model(other, "modified-kneser-ney", 2)]
    mixture = MixtureModel(parts, [weight, 1 - weight])
    assert set(mixture.vocabulary.tokens) == {*parts[0].vocabulary.tokens, *parts[1].vocabulary.tokens}
    assert not mixture.vocabulary.closed
    context = [BOS, *mixture.vocabulary.ids(words).tolist()]
    assert float(np.exp(mixture.log_distribution(context)).sum()) == pytest.approx(1.0, abs=1e-6)
    (batch,) = mixture.score(Corpus.from_strings([" ".join(words)]))
    history = [BOS]
    for token, logprob in zip(batch.token_ids.tolist(), batch.logprob.tolist(), strict=True):
        assert logprob == pytest.approx(float(mixture.log_distribution(history)[token]), rel=1e-9)
        history.append(token)


def test_over_one_vocabulary_nothing_changes() -> None:
    words = ["b", "a", "c"]
    parts = [model(["a b c"], words=words), model(["c b a"], "laplace", words=words[::-1])]
    mixture = MixtureModel(parts, [0.5, 0.5])
    assert mixture.label == "mix(wb3+laplace3)"
    assert mixture.notes == []
    assert mixture.vocabulary.tokens == parts[0].vocabulary.tokens


def test_the_signature_and_a_note_say_it(parts: tuple[NgramModel, NgramModel]) -> None:
    result = lmgauge.evaluate(MixtureModel(parts, [0.5, 0.5]), Corpus.from_strings(TEST))
    assert "model:mix(wb3+wb2,union)@" in result.signature
    assert any("4 of 6 words are known to some of its models only" in note for note in result.notes)
    assert result.oov_rate == pytest.approx(3 / 13)  # on, moon, moon: the words that neither knows


def test_weights_on_a_text_with_words_of_either(parts: tuple[NgramModel, NgramModel], tmp_path: Path) -> None:
    corpus = Corpus.from_strings(TEST)
    fit = find_weights(parts, None, corpus)
    assert fit.partly_known == 5  # cat, a, bird, ran, bird
    assert fit.component_perplexities == (math.inf, math.inf)
    assert all(0 < weight < 1 for weight in fit.weights)
    where_known = fit.perplexities_where_known
    assert len(where_known) == 3
    assert where_known[2] < max(where_known[:2])
    mixture = MixtureModel(parts, fit.weights, estimation=fit.to_dict())
    assert lmgauge.evaluate(mixture, corpus).perplexity == pytest.approx(fit.perplexity)
    worse = [find_weights(parts, (w, 1 - w), corpus).perplexity for w in (fit.weights[0] + 0.05, fit.weights[0] - 0.05)]
    assert min(worse) >= fit.perplexity
    assert "only some of the models know" in str(mixture)
    mixture.save(tmp_path / "mixed")
    again = lmgauge.load_model(tmp_path / "mixed")
    assert again.fingerprint == mixture.fingerprint
    assert again.vocabulary.tokens == mixture.vocabulary.tokens
    assert events(again, TEST) == events(mixture, TEST)
    assert str(again) == str(mixture)


def test_audit_passes(parts: tuple[NgramModel, NgramModel]) -> None:
    checked = lmgauge.audit(MixtureModel(parts, [0.5, 0.5]), Corpus.from_strings(TEST * 3))
    assert checked.passed


def test_given_text_is_of_the_union(parts: tuple[NgramModel, NgramModel]) -> None:
    mixture = MixtureModel(parts, [0.5, 0.5])
    (whole,) = mixture.score(Corpus.from_strings(["the cat bird moon sat"]))
    (rest,) = mixture.score(Corpus.from_strings([" moon sat"], given=["the cat bird"]))
    assert rest.before is not None
    assert [*rest.before.ids.tolist(), *rest.token_ids.tolist()] == whole.token_ids.tolist()
    assert rest.logprob.tolist() == whole.logprob[3:].tolist()


def test_mixtures_of_mixtures(parts: tuple[NgramModel, NgramModel]) -> None:
    inner = MixtureModel(parts, [0.5, 0.5])
    outer = MixtureModel([inner, model(["a moon"], order=1)], [0.5, 0.5])
    assert outer.vocabulary.tokens[3:] == ["the", "cat", "sat", "ran", "bird", "a", "moon"]
    for context in ([BOS], [BOS, 4], [BOS, 7]):
        assert float(np.exp(outer.log_distribution(context)).sum()) == pytest.approx(1.0, abs=1e-6)


def test_what_stays_refused(parts: tuple[NgramModel, NgramModel]) -> None:
    with pytest.raises(InputError, match="tokenizer"):
        agreeing([parts[0], model(["abc"], tokenizer="character")])
    with pytest.raises(InputError, match="leaves out </s>"):
        agreeing([parts[0], model(["a b"], eos=False)])
