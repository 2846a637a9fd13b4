"""Stepping word by word is scoring: for every kind of model, with every option, over random texts."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.test_model_laws import models, texts

from lmgauge import Corpus, NgramModel
from lmgauge.models.ngram.decoder_state import NgramState
from lmgauge.models.ngram.ngram_arrays import levels_of
from lmgauge.models.scored_text import ScoredText
from lmgauge.text.vocabulary import BOS


def events(model: NgramModel, line: str) -> tuple[list[int], list[float]]:
    """Ids and logarithms of a line by the score table."""
    (batch,) = model.score(Corpus.from_strings([line]))
    return batch.token_ids.tolist(), batch.logprob.tolist()


def walk(model: NgramModel, ids: list[int], *, bos: bool = True) -> tuple[list[float], NgramState]:
    state, logprobs = model.begin(bos=bos), []
    for word in ids:
        logprob, state = model.step(state, word)
        logprobs.append(logprob)
    return logprobs, state


@given(models(), texts(unseen=True))
def test_a_sentence_stepped_is_a_sentence_scored(model: NgramModel, lines: list[str]) -> None:
    for line in lines:
        ids, expected = events(model, line)
        assert walk(model, ids)[0] == expected  # to the last bit
        words = [model.vocabulary.token(word) for word in ids]
        if "<unk>" not in words:  # reserved as a string
            state = model.begin()
            for word, logprob in zip(words, expected, strict=True):
                stepped, state = model.step(state, word)
                assert stepped == logprob


@given(models(), texts(unseen=True))
def test_a_batch_of_steps_is_the_steps(model: NgramModel, lines: list[str]) -> None:
    sentences = [events(model, line)[0] for line in lines]
    longest = max(map(len, sentences))
    states = [model.begin() for _ in sentences]
    last = len(model.vocabulary) - 1
    batch = model.step_batch(model.begin(), [last] * len(sentences))[1]
    assert list(batch) == [model.step(model.begin(), last)[1]] * len(sentences)
    cells = model.step_batch(states, np.full(len(states), last))[1]
    assert list(cells) == list(batch)
    for i in range(longest):
        alive = [k for k, ids in enumerate(sentences) if i < len(ids)]
        words = np.array([sentences[k][i] for k in alive])
        logprobs, after = model.step_batch([states[k] for k in alive], words)
        steps = [model.step(states[k], sentences[k][i]) for k in alive]
        assert logprobs.tolist() == [logprob for logprob, _ in steps]
        assert list(after) == [state for _, state in steps]
        for k, state in zip(alive, after, strict=True):
            states[k] = state


@given(models(), texts(unseen=True))
def test_equal_states_have_equal_futures(model: NgramModel, lines: list[str]) -> None:
    """By the definition: the last order - 1 ids are all that any model sees, so what comes after them says it all."""
    seen: dict[NgramState, tuple[list[int], list[float]]] = {}
    every = [word for word in range(len(model.vocabulary)) if word != BOS]
    for line in lines:
        ids = events(model, line)[0]
        for end in range(len(ids) + 1):
            state = walk(model, ids[:end])[1]
            future = model.step_batch(state, np.array(every))[0].tolist()
            other, expected = seen.setdefault(state, (ids[:end], future))
            assert future == expected
            context = [BOS, *ids[:end]]
            with np.errstate(divide="ignore"):
                whole = model.log_distribution(context)[every]
            np.testing.assert_allclose(future, whole, rtol=1e-6, atol=1e-6)
            if other != ids[:end]:  # two histories, one state: also two steps on
                for word in every[:4]:
                    ahead = [walk(model, [*history, word])[1] for history in (other, ids[:end])]
                    assert ahead[0] == ahead[1]
                    assert hash(ahead[0]) == hash(ahead[1])


@given(models(), texts(unseen=True), st.randoms(use_true_random=False))
def test_distinct_states_are_those_of_a_dict(model: NgramModel, lines: list[str], random: object) -> None:
    listed = [walk(model, events(model, line)[0])[1] for line in lines]
    states = model.step_batch(listed, [model.vocabulary.token(len(model.vocabulary) - 1)] * len(listed))[1]
    first, place = states.distinct()
    expected: dict[NgramState, int] = {}
    for state in states:
        expected.setdefault(state, len(expected))
    assert [states[int(i)] for i in first] == list(expected)
    assert place.tolist() == [expected[state] for state in states]


@given(models(), texts(unseen=True))
def test_a_string_scored_at_once_is_that_of_the_score_table(model: NgramModel, lines: list[str]) -> None:
    for line in (*lines, "", " ", "a\r\nb", "x" * 3000):
        scored = model.score_text(line)
        ids, logprobs = events(model, line)
        assert list(scored.logprobs) == logprobs
        tokens = [model.vocabulary.token(word) for word in ids]
        assert (list(scored.tokens), len(scored.kinds), len(scored.spans)) == (tokens, len(ids), len(ids))
        assert scored == ScoredText(scored.text, scored.tokens, scored.logprobs, scored.kinds, scored.spans)
    together = model.score_text(lines)
    assert together.log_probabilities.tolist() == [math.fsum(one.logprobs) for one in model.score_text(lines)]
    (batch,) = model.score(Corpus.from_strings(lines))
    assert list(chain(*(one.logprobs for one in together))) == batch.logprob.tolist()
    assert not any(math.isnan(p) for one in together for p in one.logprobs)


def contexts_that_matter(model: NgramModel) -> set[tuple[int, ...]]:
    """N-grams that a longer one begins with, or that have a back-off weight other than one, from the plain lists."""
    ngrams: list[tuple[int, ...]] = [(word,) for word in range(len(model.vocabulary))]
    weights = model.tables.unigrams[:, 1]
    matter: set[tuple[int, ...]] = set()
    for level in levels_of(model.tables):
        matter.update(ngrams[parent] for parent in level.parents.tolist())
        matter.update(ngram for ngram, weight in zip(ngrams, weights.tolist(), strict=True) if weight != 1)
        ngrams = [(*ngrams[parent], word) for parent, word in zip(level.parents.tolist(), level.words.tolist(), strict=True)]
        weights = level.weights
    return matter


@given(models(), texts(unseen=True))
def test_states_are_as_short_as_they_can_be(model: NgramModel, lines: list[str]) -> None:
    """KenLM's minimized state: the longest end of the history that a longer n-gram begins with, or that costs something."""
    if model.tables.full_context:
        return
    matter = contexts_that_matter(model)
    for line in lines:
        ids = events(model, line)[0]
        for end in range(1, len(ids) + 1):
            history = (BOS, *ids[:end])
            lengths = [k for k in range(1, min(model.order, len(history) + 1)) if history[-k:] in matter]
            assert len(walk(model, ids[:end])[1]) == max(lengths, default=0)
