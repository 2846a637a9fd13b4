"""Whole distributions of a model whose unseen words are spelled: those of the model inside, with rows that are spelled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus
from lmgauge.scores.distributions import Divergences, Entropy, Rank, TopK, reduce, reduce_pair
from lmgauge.scores.distributions.blocks import of_events

TRAIN = ["the cat sat on the mat", "a dog  ran to the cat", "the dog sat", "zebras ran quickly"] * 2
TEXT = ["the quokka  sat on a mat", "dogs ran\t", "", "the cat"]


def model_of(kind: str) -> Any:
    text = Corpus.from_strings(TRAIN)
    if kind == "mixture":
        inner = [lmgauge.train("witten-bell", text, order=order, min_count=3) for order in (1, 3)]
        spelled = model_of("n-gram")
        return lmgauge.models.SpelledModel(lmgauge.mix(inner, weights=[0.4, 0.6]), spelled.speller, spelled.separators)
    return lmgauge.train("witten-bell", text, order=2, min_count=3, vocabulary="spelled")


@pytest.mark.parametrize("kind", ["n-gram", "mixture"])
@pytest.mark.parametrize("events", [None, [0, 1, 5, 9]])
def test_columns_are_those_of_the_model_inside_and_rows_are_spelled(kind: str, events: list[int] | None) -> None:
    model, text = model_of(kind), Corpus.from_strings(TEXT)
    chosen = None if events is None else np.array(events)
    reductions = [Entropy(), Rank(), TopK(2)]
    (batch,) = reduce(model, text, reductions, events=chosen)
    (inside,) = reduce(model.inner, text, reductions, events=chosen)
    (rows,) = model.score(text)
    at = slice(None) if chosen is None else chosen
    np.testing.assert_allclose(batch.logprob, rows.logprob[at], rtol=0, atol=1e-12)
    assert batch.kind.tolist() == rows.kind[at].tolist()
    for name in ("entropy", "rank", "top_ids", "top_logprobs"):
        np.testing.assert_array_equal(batch.extra[name], inside.extra[name])
    for name in ("spelling", "separator"):
        np.testing.assert_array_equal(batch.extra[name], rows.extra[name][at])


def test_pairs_are_compared_as_the_models_inside_are() -> None:
    text = Corpus.from_strings(TEXT)
    a = model_of("n-gram")
    b = lmgauge.train("witten-bell", Corpus.from_strings(TRAIN), order=1, min_count=3, vocabulary="spelled")
    ((_, _, columns),) = reduce_pair(a, b, text, Divergences())
    ((_, _, inside),) = reduce_pair(a.inner, b.inner, text, Divergences())
    np.testing.assert_array_equal(columns["kl_ab"], inside["kl_ab"])
    assert of_events(a) is a.inner
    assert of_events(a.inner) is a.inner


def test_divergences_are_over_events_and_say_so() -> None:
    text = Corpus.from_strings(TEXT)
    spelled = model_of("n-gram")
    other = lmgauge.train("witten-bell", Corpus.from_strings(TRAIN), order=1, min_count=3)
    result = lmgauge.divergence(spelled, other, text)
    assert result.kl_ab_nats == lmgauge.divergence(spelled.inner, other, text).kl_ab_nats
    assert any("events of the vocabulary are compared" in note for note in result.notes)


def test_a_stored_base_is_of_events(tmp_path: Any) -> None:
    text, spelled = Corpus.from_strings(TEXT), model_of("n-gram")
    saved = lmgauge.save_base(spelled, text, tmp_path / "base")
    assert any("events of the vocabulary are compared" in note for note in saved.notes)
    assert lmgauge.divergence(tmp_path / "base", spelled, text).kl_ab_nats.value == pytest.approx(0.0, abs=1e-6)
