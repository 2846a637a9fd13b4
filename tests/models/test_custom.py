"""Models of one's own: rows as those of a trained model, from a function over ids."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.custom import CustomModel, score_segments
from lmgauge.models.ngram.model import NgramModel
from lmgauge.models.protocol import LanguageModel

LINES = ["the cat  sat", "", "the dog unseen", " 日本 cat"]


@pytest.fixture(scope="module")
def trained() -> NgramModel:
    return lmgauge.train("witten-bell", Corpus.from_strings(["the cat sat", "the dog", "日本 cat"]), order=3)


class Wrapped(CustomModel):
    """An n-gram model that is only asked for distributions."""

    def __init__(self, model: NgramModel) -> None:
        super().__init__(model.vocabulary)
        self.model = model

    def log_distribution(self, context_ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        return self.model.log_distribution(context_ids)


@pytest.mark.parametrize("block_bytes", [1, 1 << 20])
def test_rows_are_those_of_the_model_behind(trained: NgramModel, block_bytes: int) -> None:
    own = list(Wrapped(trained).score(Corpus.from_strings(LINES, block_bytes=block_bytes)))
    theirs = list(trained.score(Corpus.from_strings(LINES, block_bytes=block_bytes)))
    assert len(own) == len(theirs)
    for a, b in zip(own, theirs, strict=True):
        for name in ("segments", "segment_events", "token_ids", "kind", "ends", "lossy"):
            assert getattr(a, name).tolist() == getattr(b, name).tolist(), name
        assert a.logprob == pytest.approx(b.logprob, rel=1e-12)


def test_it_is_a_language_model_and_can_be_evaluated(trained: NgramModel) -> None:
    model = Wrapped(trained)
    assert isinstance(model, LanguageModel)
    found, expected = lmgauge.evaluate([model, trained], Corpus.from_strings(LINES))
    assert found.perplexity == pytest.approx(expected.perplexity, rel=1e-12)
    assert (found.model, found.oov, found.bytes) == ("custom", expected.oov, expected.bytes)
    assert model.score_block(next(iter(Corpus.from_strings(["the cat"])))).ends.tolist() == [3, 7, 7]


def test_scores_of_another_length_are_refused(trained: NgramModel) -> None:
    with pytest.raises(UsageError, match=r"the scores of 5 ids have shape \(5,\)"):
        list(
            score_segments(Corpus.from_strings(LINES), trained.tokenizer, trained.vocabulary, lambda ids: np.zeros(len(ids)))
        )


def test_reserved_words(trained: NgramModel) -> None:
    def ids_of(**options: str) -> list[int]:
        batches = score_segments(
            Corpus.from_strings(["the <unk>"]),
            trained.tokenizer,
            trained.vocabulary,
            lambda ids: np.zeros(len(ids) - 1),
            **options,  # type: ignore[arg-type]
        )
        return next(iter(batches)).kind.tolist()

    with pytest.raises(InputError, match="reserved token <unk>"):
        ids_of()
    assert ids_of(reserved="unk") == [0, 1, 2]


def test_a_model_must_say_something() -> None:
    with pytest.raises(UsageError, match="no log_distribution of its own"):
        next(CustomModel(["a"]).score(Corpus.from_strings(["a"])))
