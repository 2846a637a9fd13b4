"""Spelled words, separators and texts: their probabilities sum to one, and fast and slow ways agree."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.spelling import spelled_rows, spelled_separator, unseen_character, word_logprob

import lmgauge
from lmgauge.models.combined.spelling.learn import learn_spelling
from lmgauge.models.combined.spelling.model import SpelledModel
from lmgauge.models.combined.spelling.speller import UnseenCharacters
from lmgauge.models.combined.spelling.whitespace_model import INNER
from lmgauge.models.model_settings import SpellerSettings
from lmgauge.text.segments import WHITE_SPACE
from lmgauge.text.vocabulary import BOS, EOS, UNK

STORED = 1e-6  # n-gram models hold probabilities in 32 bits
FOREIGN = "ж"
LINES = ["a b", "ab  ba a", "b\ta ", " aab,b b", "", "don't"]
WORDS = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=8)
TEXTS = st.lists(st.text(f"abcn't,ж{WHITE_SPACE}    ", max_size=14), min_size=1, max_size=4).map(
    lambda texts: [text.replace("\r", "") for text in texts]
)


def spelled(lines: list[str], order: int = 3, tokenizer: str = "whitespace") -> SpelledModel:
    corpus = lmgauge.Corpus.from_strings(lines)
    inner = lmgauge.train("witten-bell", corpus, order=2, tokenizer=tokenizer, reserved="escape")
    return learn_spelling(inner, corpus, SpellerSettings(order=order))


@cache
def model_of(tokenizer: str) -> SpelledModel:
    if tokenizer == "icu":
        pytest.importorskip("icu4py")
    return spelled(LINES, tokenizer=tokenizer)


def logprob_of(model: SpelledModel, word: str) -> float:
    return float(model.spelling.logprobs(next(iter(lmgauge.Corpus.from_strings([word]))))[0])


@given(WORDS, st.integers(1, 5))
@settings(max_examples=12, deadline=None)
def test_unseen_words_and_the_tail_sum_to_one(words: list[str], order: int) -> None:
    model = spelled([" ".join(words)], order)
    assert model.speller is not None
    vocabulary, total = model.speller.characters.vocabulary, 0.0
    open_prefixes = {"": 1.0}
    for _ in range(3):
        longer: dict[str, float] = {}
        for prefix, mass in open_prefixes.items():
            p = model.spelling.next_character(prefix)
            assert p.sum() == pytest.approx(1, abs=1e-12)
            ended = mass * p[EOS]
            total += ended
            if prefix in {"", *words}:
                assert ended == pytest.approx(0, abs=STORED)
            else:
                share = unseen_share(model, prefix)
                assert math.exp(logprob_of(model, prefix)) == pytest.approx(ended * share, rel=STORED)
            for i in (UNK, *range(3, len(vocabulary))):  # one character stands for all that are not in the alphabet
                longer[prefix + (FOREIGN if i == UNK else vocabulary.token(i))] = mass * p[i]
        open_prefixes = longer
    assert total + sum(open_prefixes.values()) == pytest.approx(1, abs=STORED)


def unseen_share(model: SpelledModel, word: str) -> float:
    assert model.speller is not None
    return float(model.speller.unseen.probabilities[ord(FOREIGN)]) ** word.count(FOREIGN)


@given(st.sets(st.characters(codec="utf-8", exclude_characters=" \0"), max_size=12))
@settings(max_examples=20, deadline=None)
def test_unseen_characters_sum_to_one(alphabet: set[str]) -> None:
    p = UnseenCharacters(sorted(alphabet), " \0").probabilities
    assert p.sum() == pytest.approx(1, abs=1e-12)
    without = {*map(ord, alphabet), ord(" "), 0, *range(0xD800, 0xE000)}
    assert set(np.flatnonzero(p == 0).tolist()) == without


def test_unseen_characters_by_the_plain_formula() -> None:
    speller = model_of("whitespace").speller
    assert speller is not None
    for character in ("c", "é", "ж", "日", "\U0010ffff"):
        assert speller.unseen.probabilities[ord(character)] == pytest.approx(unseen_character(speller, character), rel=1e-12)


@pytest.mark.parametrize("tokenizer", ["whitespace", "icu", "treebank"])
def test_separators_sum_to_one_in_every_context(tokenizer: str) -> None:
    separators = model_of(tokenizer).separators
    assert separators is not None
    for context in range(0, 4 * 64 * 64 * 2 * 8, 37):
        assert separators.probabilities(context).sum() == pytest.approx(1, abs=1e-12)
    for context in {context for context, _ in separators.counts}:
        assert separators.probabilities(context).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("tokenizer", ["whitespace", "treebank"])
@given(st.text(f"{WHITE_SPACE}   ", max_size=4), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_unknown_separators_are_the_product_of_their_characters(tokenizer: str, text: str, place: int) -> None:
    separators = model_of(tokenizer).separators
    assert separators is not None
    if text in separators.known or not set(text) <= set(separators.alphabet) or (not text and place == INNER):
        return
    others = 1 - math.fsum(spelled_separator(separators, known, place) for known in separators.known)
    product = 1.0
    for i, character in enumerate([*text, None]):
        p = separators.next_character(text[:i], place)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        product *= p[-1] if character is None else p[separators.alphabet.index(character)]
    assert product == pytest.approx(spelled_separator(separators, text, place) / others, rel=1e-9)


def test_texts_and_the_tail_sum_to_one() -> None:
    """Segments of at most two words, unseen ones of at most two letters, and blanks; the tail is all other choices."""
    model = spelled(["a b", "a", ""], 2)
    separators = model.separators
    assert separators is not None
    texts, tail = [], 0.0
    stack: list[tuple[str, list[int], str | None, float]] = [("", [BOS], None, 1.0)]
    while stack:
        text, ids, before, mass = stack.pop()
        p = np.exp(model.log_distribution(np.array(ids, np.uint32)))
        for token, gap in itertools.product((EOS, UNK, *range(3, len(model.vocabulary))), ("", " ")):
            place = (2 if text else 3) if token == EOS else (1 if text else 0)
            of_gap = separators.probabilities(separators.context_of(place, text.encode(), b"", before))
            here = mass * p[token] * of_gap[separators.known.index(gap)]
            mass_of_gap = mass * p[token] * (1 - sum(of_gap[separators.known.index(one)] for one in ("", " ")))
            tail += mass_of_gap if gap == "" else 0.0
            if token == EOS:
                texts.append(text + gap)
            elif len(ids) == 3:
                tail += here
            else:
                words = [model.vocabulary.token(token)] if token != UNK else ["aa", "ab", "ba", "bb"]
                shares = [1.0] if token != UNK else [math.exp(logprob_of(model, word)) for word in words]
                tail += here * (1 - sum(shares))
                stack += [(text + gap + w, [*ids, token], gap, here * q) for w, q in zip(words, shares, strict=True) if here]
    scored = [math.exp(sum(model.score_text(text).logprobs)) for text in set(texts)]
    assert len(set(texts)) > 100
    assert math.fsum(scored) + tail == pytest.approx(1, abs=STORED)


@pytest.mark.parametrize("tokenizer", ["whitespace", "icu", "treebank"])
@given(TEXTS, st.booleans(), st.data())
@settings(max_examples=12, deadline=None)
def test_rows_are_those_of_the_plain_twin(tokenizer: str, texts: list[str], with_given: bool, data: st.DataObject) -> None:
    model = model_of(tokenizer)
    before = data.draw(st.lists(TEXTS.map(" ".join), min_size=len(texts), max_size=len(texts))) if with_given else None
    texts = [text or "a" * with_given for text in texts]  # after given text, a text may not be empty
    for block in lmgauge.Corpus.from_strings(texts, given=before):
        inner = model.inner.score_block(block, spans=True)
        rows = model.spelled(block, inner)
        if inner.before is not None and inner.before.crossing.any() and tokenizer != "whitespace":
            continue  # where the word begins is the tokenizer's to say
        plain = np.array(spelled_rows(model, block, inner)).reshape(-1, 2)
        np.testing.assert_allclose(rows.extra["spelling"], plain[:, 0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(rows.extra["separator"], plain[:, 1], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(rows.logprob, inner.logprob + plain.sum(axis=1), rtol=1e-12)


@given(TEXTS.map(lambda texts: texts * 3), st.integers(1, 40), st.booleans())
@settings(max_examples=20, deadline=None)
def test_rows_do_not_depend_on_blocks_and_threads(texts: list[str], size: int, with_given: bool) -> None:
    model = model_of("whitespace")
    texts = [text or "a" * with_given for text in texts]
    corpus = lmgauge.Corpus.from_strings(texts, given=["a b"] * len(texts) if with_given else None)
    whole = np.concatenate([batch.logprob for batch in model.score(corpus, threads=1)])
    parts = np.concatenate([batch.logprob for batch in model.score(corpus.in_blocks(size), threads=3)])
    assert whole.tobytes() == parts.tobytes()


def test_words_of_the_speller_by_the_plain_formula() -> None:
    model = model_of("whitespace")
    assert model.speller is not None
    words = ["a", "ж", "日本", "abжab", "don't", "nn"]
    block = next(iter(lmgauge.Corpus.from_strings(words)))
    np.testing.assert_allclose(model.speller.logprobs(block), [word_logprob(model.speller, w) for w in words], rtol=1e-12)
