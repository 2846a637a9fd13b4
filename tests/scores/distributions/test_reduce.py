"""The engine: every model the same, whatever the blocks, the tiles and the events that are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge.base.errors import InputError, UsageError
from lmgauge.models.custom import CustomModel
from lmgauge.scores.context_policy import EventContexts
from lmgauge.scores.distributions.blocks import by_event
from lmgauge.scores.distributions.reduce import reduce, reduce_pair, together
from lmgauge.scores.distributions.reductions import Divergences, Entropy, KullbackLeibler, Mass, Moments, Rank, TopK, direct
from lmgauge.scores.distributions.tile import Tile
from lmgauge.text.documents import Corpus
from lmgauge.text.vocabulary import BOS

LINES = ["a b c", "b c a", "", "a b", "c c c c"]
TEXT = ["a b x", "", "c b a"]
ALL = [Entropy(), Rank(), TopK(3), Moments(), Mass(), Mass((3, 4), "of_two")]


def models() -> dict[str, Any]:
    corpus = Corpus.from_strings(LINES)
    small, large = (lmgauge.train("witten-bell", corpus, order=order) for order in (1, 3))
    other = lmgauge.train("laplace", Corpus.from_strings(["c b a", "b"]), order=2)  # the ids in another order
    stream = lmgauge.train("kneser-ney", Corpus.from_strings([" ".join(LINES)] * 2), order=3, context="stream")
    return {"ngram": large, "stream": stream, "mixture": lmgauge.mix([large, small], weights=[0.3, 0.7])} | {
        "reordered": lmgauge.mix([large, other], weights=[0.5, 0.5])
    }


def slow(model: Any, text: Corpus) -> list[np.ndarray[Any, Any]]:
    """The log-probabilities at every event, [vocabulary] each, by one question an event."""
    found = []
    before = np.array([BOS], np.uint32)
    for batch in model.score(text):
        contexts = EventContexts(
            batch.token_ids, batch.segment_events, bos=BOS, runs_on=model.context_policy.runs_on, before=before
        )
        before = contexts.ids
        found += [model.log_distribution(context) for context in contexts]
    return found


@pytest.mark.parametrize("name", ["ngram", "stream", "mixture", "reordered"])
@pytest.mark.parametrize("block_bytes", [3, 1000])
def test_columns_are_those_of_the_distributions(name: str, block_bytes: int) -> None:
    model = models()[name]
    text = Corpus.from_strings(TEXT, block_bytes=block_bytes)
    expected = slow(model, text)
    batches = list(reduce(model, text, ALL))
    plain = list(model.score(text))
    assert [batch.logprob.tolist() for batch in batches] == [batch.logprob.tolist() for batch in plain]
    columns = {key: np.concatenate([batch.extra[key] for batch in batches]) for key in batches[0].extra}
    ids = np.concatenate([batch.token_ids for batch in batches])
    for row, logprob in enumerate(expected):
        p = np.exp(logprob)
        inside = logprob[p > 0]
        assert columns["entropy"][row] == pytest.approx(-(np.exp(inside) * inside).sum(), rel=1e-9)
        assert columns["rank"][row] == 1 + np.count_nonzero(logprob > logprob[ids[row]])
        assert columns["top_logprobs"][row] == pytest.approx(np.sort(logprob)[::-1][:3].tolist())
        assert columns["top_ids"][row].tolist() == np.argsort(-logprob, kind="stable")[:3].tolist()
        deviation = np.sqrt((np.exp(inside) * (inside - (np.exp(inside) * inside).sum()) ** 2).sum())
        assert columns["logprob_deviation"][row] == pytest.approx(deviation, rel=1e-9, abs=1e-12)
        assert columns["mass"][row] == pytest.approx(1)
        assert columns["of_two"][row] == pytest.approx(p[3] + p[4])


@pytest.mark.parametrize("name", ["ngram", "stream", "mixture"])
def test_some_events_are_the_rows_of_all(name: str) -> None:
    model = models()[name]
    text = Corpus.from_strings(TEXT, block_bytes=3)
    whole = list(reduce(model, text, ALL))
    chosen = np.array([1, 2, 5, 7])
    some = list(reduce(model, text, ALL, events=chosen))
    assert sum(map(len, some)) == len(chosen)
    for key in ("entropy", "rank", "mass"):
        everything = np.concatenate([batch.extra[key] for batch in whole])
        assert np.concatenate([batch.extra[key] for batch in some]).tolist() == everything[chosen].tolist()
    logprob = np.concatenate([batch.logprob for batch in whole])
    assert np.concatenate([batch.logprob for batch in some]).tolist() == logprob[chosen].tolist()
    owners = np.concatenate([batch.row_segments() for batch in whole])[chosen]
    assert np.concatenate([batch.row_segments() for batch in some]).tolist() == owners.tolist()


def test_a_model_that_has_only_log_distribution() -> None:
    class Coin(CustomModel):
        label = "coin"

        def log_distribution(self, context_ids: Any) -> Any:
            return np.array([-np.inf, -np.inf, *np.log([0.2, 0.4, 0.4])])

    batches = list(reduce(Coin(["a", "b"]), Corpus.from_strings(["a b", "b"]), [Rank(), Mass(), TopK(9)]))
    assert batches[0].extra["rank"].tolist() == [1, 1, 3, 1, 3]
    assert batches[0].extra["mass"].tolist() == pytest.approx([1] * 5)
    assert batches[0].extra["top_ids"].shape == (5, 5)
    assert batches[0].extra["top_logprobs"][0, -1] == -np.inf


def test_first_tokens_without_scores_are_refused() -> None:
    model = models()["ngram"]

    class Unscored:
        label, vocabulary = "unscored", model.vocabulary
        context_policy = type(model.context_policy)(first="unscored")

    with pytest.raises(UsageError, match="whole contexts"):
        next(by_event(Unscored(), [], None))  # type: ignore[arg-type]


def test_two_models_event_by_event() -> None:
    ready = models()
    a, b = ready["ngram"], ready["mixture"]
    text = Corpus.from_strings(TEXT, block_bytes=3)
    rows = list(reduce_pair(a, b, text, Divergences((1, 2))))
    columns = {key: np.concatenate([found[key] for _, _, found in rows]) for key in rows[0][2]}
    for row, (one, other) in enumerate(zip(slow(a, text), slow(b, text), strict=True)):
        expected = direct(one, other)
        for key, value in zip(("kl_ab", "kl_ba", "js", "tv"), expected, strict=True):
            assert columns[key][row] == pytest.approx(value, rel=1e-9 if key in ("kl_ab", "kl_ba") else 1e-6, abs=1e-15)
        assert columns["overlap_1"][row] == float(np.argmax(one) == np.argmax(other))
    assert np.concatenate([batch.logprob for batch, _, _ in rows]).tolist() == pytest.approx(
        np.concatenate([batch.logprob for batch in a.score(text)]).tolist()
    )
    chosen = np.array([0, 4])
    some = list(reduce_pair(a, b, text, Divergences((1,)), events=chosen))
    assert np.concatenate([found["kl_ab"] for _, _, found in some]).tolist() == columns["kl_ab"][chosen].tolist()


def test_tiles_of_any_sizes_meet() -> None:
    generator = np.random.default_rng(1)
    for _ in range(50):
        cuts = [np.sort(generator.integers(0, 20, 4)) for _ in range(3)]
        parts = [np.split(np.arange(20), cut) for cut in cuts]
        tiles = [[Tile(lambda part=part: part[:, None] * 1.0, part) for part in pieces if len(part)] for pieces in parts]
        met = list(together(*map(iter, tiles)))
        for at in range(3):
            assert np.concatenate([group[at].targets for group in met]).tolist() == list(range(20))
            assert np.concatenate([group[at].logprob[:, 0] for group in met]).tolist() == list(range(20))
        assert all(len({len(tile) for tile in group}) == 1 for group in met)


def test_a_text_that_cannot_be_scored() -> None:
    with pytest.raises(InputError, match="<unk>"):
        list(reduce(models()["ngram"], Corpus.from_strings(["a <unk>"]), [Entropy()]))


def test_models_that_cut_the_text_into_different_events() -> None:
    """In other numbers of them, or in the same number of others: neither is laid side by side."""
    words = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2)
    letters = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2, tokenizer="character")
    renamed = lmgauge.train("witten-bell", Corpus.from_strings([line[::-1].upper() for line in LINES]), order=2)
    for other in (letters, renamed):
        for reduction in (Divergences(()), KullbackLeibler()):
            with pytest.raises(InputError, match="cut the text into different events"):
                list(reduce_pair(words, other, Corpus.from_strings(["a b c", "c"]), reduction))
