"""Every kind of model scores text after given text, or refuses it in a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.models.network.server.toy_server import ToyServer, toy_scores, toy_tokens

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.custom import CustomModel
from lmgauge.models.network.options import ScoringOptions
from lmgauge.models.network.server.model import load_completions
from lmgauge.scores import ScoreBatch
from lmgauge.scores.distributions import Entropy, Rank
from lmgauge.scores.distributions.reduce import reduce
from lmgauge.text.segments import Segments

TRAINING = Corpus.from_strings(["the cat sat on the mat", "a dog sat on a log", "the dog ran"])
MODEL = lmgauge.train("witten-bell", TRAINING, order=3)
TEXT = Corpus.from_strings([" sat on the mat", "ran"], given=["the cat", "the  dog "])


class Own(CustomModel):
    """A model of one's own, by its distributions."""

    label = "own"

    def log_distribution(self, context_ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return MODEL.log_distribution(context_ids)


def test_a_model_of_ones_own_and_its_whole_distributions() -> None:
    own = Own(MODEL.vocabulary)
    expected = next(reduce(MODEL, TEXT, [Entropy(), Rank()]))
    (batch,) = own.score(TEXT)
    assert batch.logprob == pytest.approx(expected.logprob, abs=1e-12)
    (reduced,) = reduce(own, TEXT, [Entropy(), Rank()])  # contexts are made again from the rows and what was given
    assert reduced.extra["entropy"] == pytest.approx(expected.extra["entropy"], abs=1e-9)
    assert reduced.extra["rank"].tolist() == expected.extra["rank"].tolist()


def test_mixtures_of_models_that_number_their_tokens_in_another_way() -> None:
    other = lmgauge.train("laplace", Corpus.from_strings(["ran dog the", "a log on mat", "sat cat"]), order=2)
    mixture = lmgauge.mix([MODEL, other], weights=[0.5, 0.5])
    (batch,), (one,), (two,) = mixture.score(TEXT), MODEL.score(TEXT), other.score(TEXT)
    assert batch.logprob == pytest.approx(np.logaddexp(one.logprob, two.logprob) - np.log(2), abs=1e-12)
    assert batch.before is not None
    assert batch.before.ids.tolist() == MODEL.vocabulary.ids(["the", "cat", "the", "dog"]).tolist()
    (reduced,) = reduce(mixture, TEXT, [Entropy()])
    assert reduced.logprob == pytest.approx(batch.logprob, abs=1e-12)


def test_words_behind_white_space_of_any_kind_are_exact() -> None:
    """Given text may have white space that words do not give back; the text's own is what makes its bits a bound."""
    befores = ["a\n\nb", "a b", "a  b", "a b ", "a b ", "", "ab"]
    (batch,) = MODEL.score(Corpus.from_strings([" sat", " sat", "  sat", "sat", " sat", " sat", "c d"], given=befores))
    assert batch.lossy.tolist() == [False, False, True, False, True, True, False]
    assert batch.before is not None
    assert batch.before.crossing.tolist() == [False] * 6 + [True]


@pytest.mark.parametrize(
    "model",
    [lmgauge.train("laplace", TRAINING, context="stream"), lmgauge.cache(MODEL)],
    ids=["n-gram", "cache"],
)
def test_a_context_that_runs_on_takes_none(model: Any) -> None:
    with pytest.raises(UsageError, match="its context continues across segments"):
        list(model.score(TEXT))


def test_a_text_without_a_token_of_its_own() -> None:
    model = lmgauge.train("laplace", TRAINING, eos=False)
    with pytest.raises(InputError, match="<strings>, record 2: no token of the text ends behind the given text"):
        list(model.score(Corpus.from_strings([" sat", "  "], given=["the cat", "the"])))


class Deaf(Own):
    """A model with its own way to score, which passes over what is given."""

    def score(self, segments: Iterable[Segments], **options: Any) -> Iterator[ScoreBatch]:
        return super().score(replace(block, given_starts=None) for block in segments)


def test_a_model_that_takes_no_notice_is_found_out() -> None:
    for use in (
        lambda: lmgauge.evaluate(Deaf(MODEL.vocabulary), TEXT),
        lambda: list(reduce(Deaf(MODEL.vocabulary), TEXT, [])),
    ):
        with pytest.raises(UsageError, match="own: its own way to score takes no given text"):
            use()


def test_servers_score_what_comes_behind_the_boundary() -> None:
    text = Corpus.from_strings([" sat", "at", "x"], given=["the cat", "the c", ""])
    with ToyServer(bos="hidden").running() as toy:
        model = load_completions(toy.url, ScoringOptions())
        (batch,) = model.score(text)
        with pytest.raises(UsageError, match="a server cuts given text and what comes after it as one text"):
            list(model.score(Corpus.from_strings(["b"], given=["a"], boundary="apart")))
    assert batch.before is not None
    assert batch.segment_events.tolist() == [1, 1, 0]  # the first token of a context has no score here
    assert [batch.strings.tokens[i] for i in batch.token_ids[:2].tolist()] == [" sat", " cat"]
    assert batch.logprob[:2].tolist() == [toy_scores("the cat sat")[-1], toy_scores("the cat")[-1]]
    assert batch.ends[:2].tolist() == [4, 2]
    assert batch.before.crossing.tolist() == [False, True, False]
    assert len(toy_tokens("the cat")) == 2
