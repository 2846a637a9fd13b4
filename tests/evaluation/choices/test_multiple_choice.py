"""Which text a model prefers: against a slow loop over single sentences, and the laws of preference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus
from lmgauge.base.errors import InputError, UsageError
from lmgauge.evaluation.choices.multiple_choice import prefer_pairs

LINES = ["the cat sits", "the cats sit", "a dog sits", "the dogs sit", "the dog sees the cats"]
WORDS = ("the", "cat", "cats", "sits", "sit", "dog")
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
pair_lists = st.lists(st.tuples(sentences, sentences, st.sampled_from("xyz")), min_size=1, max_size=12)
MODELS = {
    "one": lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=3),
    "two": lmgauge.train("laplace", Corpus.from_strings(LINES), order=1),
}


def by_hand(model: Any, pairs: Sequence[tuple[str, ...]], per_byte: bool) -> list[float]:
    """1, 1/2 or 0 of each pair, from the sums of single sentences."""
    credits = []
    for good, bad in (pair[:2] for pair in pairs):
        scores = [math.fsum(model.score_text(text).logprobs) / (len(text) if per_byte else 1) for text in (good, bad)]
        tie = math.isclose(*scores, rel_tol=1e-12)
        credits.append(0.5 if tie else float(scores[0] > scores[1]))
    return credits


@given(pairs=pair_lists)
def test_accuracies_are_those_of_single_sentences(pairs: list[tuple[str, str, str]]) -> None:
    result = lmgauge.pairs(MODELS, pairs)
    for name, model in MODELS.items():
        for measure in ("raw", "per_byte"):
            credits = by_hand(model, pairs, measure == "per_byte")
            for group in ("", *dict.fromkeys(pair[2] for pair in pairs)):
                own = [credit for credit, pair in zip(credits, pairs, strict=True) if group in ("", pair[2])]
                accuracy = result.accuracy(name, group, measure)
                assert accuracy.accuracy == pytest.approx(sum(own) / len(own), abs=1e-12)
                assert (accuracy.items, accuracy.right, accuracy.ties) == (len(own), own.count(1.0), own.count(0.5))


@given(pairs=pair_lists)
def test_turning_every_pair_turns_the_accuracy(pairs: list[tuple[str, str, str]]) -> None:
    turned = [(bad, good, group) for good, bad, group in pairs]
    one, other = lmgauge.pairs(MODELS, pairs), lmgauge.pairs(MODELS, turned)
    for a, b in zip(one.accuracies, other.accuracies, strict=True):
        assert a.accuracy == pytest.approx(1 - b.accuracy)
        assert a.margin == pytest.approx(-(b.margin or 0.0))


@given(pairs=pair_lists)
def test_groups_add_up_to_all_and_models_are_tested_on_the_same_items(pairs: list[tuple[str, str, str]]) -> None:
    result = lmgauge.pairs(MODELS, pairs)
    for model in result.models:
        own = [result.accuracy(model, group) for group in result.groups]
        assert sum(one.right for one in own) == result.accuracy(model).right
        assert sum(one.ties for one in own) == result.accuracy(model).ties
    first, second = (by_hand(model, pairs, False) for model in MODELS.values())
    test = result.preferences[0]
    assert (test.group, test.measure) == ("", "raw")
    assert test.only_first == sum(a > b for a, b in zip(first, second, strict=True))
    assert test.only_second == sum(b > a for a, b in zip(first, second, strict=True))
    assert all(one.adjusted_p_value >= one.p_value for one in result.preferences)


def test_a_text_beside_itself_is_a_tie_and_impossible_texts_too() -> None:
    model = lmgauge.train("mle", Corpus.from_strings(["a b"]), order=2)
    result = lmgauge.pairs(model, [("a b", "a b"), ("b a", "b b"), ("a b", "b a"), ("b a", "a b")])
    accuracy = result.accuracy()
    assert (accuracy.right, accuracy.ties, accuracy.accuracy) == (1, 2, 0.5)
    assert accuracy.margin is None  # infinite for one pair, infinite against another
    assert result.notes[0].startswith("mle2: 2 ties (raw)")
    assert "1 pair whose texts have probability zero" in result.notes[1]
    assert result.rows["preferred"] == [None, None, 0, 1]


def test_unseen_words_are_named() -> None:
    pairs = [("the cat sits", "the gnu sits"), ("the cat sits", "the cat sit")]
    (note,) = lmgauge.pairs(MODELS["one"], pairs).notes
    assert note.startswith("wb3: 1 pair with a word that this model does not know")


def test_figures_do_not_depend_on_how_the_text_is_cut_into_blocks() -> None:
    good, bad = ["the cat sits"] * 40, ["the cat sit", "the dog sits"] * 20
    whole, cut = (
        prefer_pairs(
            list(MODELS.values()), *(Corpus.from_strings(side, block_bytes=size) for side in (good, bad)), ["a", "b"]
        )
        for size in (1 << 20, 30)
    )
    assert whole.to_dict() == cut.to_dict()
    assert whole.rows["logprobs"] == cut.rows["logprobs"]


@pytest.mark.parametrize(
    ("good", "bad", "message"), [(["a"], ["b", "c"], "1 good texts and 2 bad"), (["a", ""], ["a", "b"], "empty")]
)
def test_pairs_that_cannot_be(good: list[str], bad: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        prefer_pairs([MODELS["one"]], Corpus.from_strings(good), Corpus.from_strings(bad), ["a"])


def test_wilson_of_the_result() -> None:
    pairs = [("the cat sits", "the cat sit")] * 8 + [("the cat sit", "the cat sits")] * 2
    accuracy = lmgauge.pairs(MODELS["one"], pairs).accuracy()
    assert accuracy.accuracy == 0.8
    assert (round(accuracy.interval.low, 4), round(accuracy.interval.high, 4)) == (0.4902, 0.9433)
    assert accuracy.interval.unit == "pairs"


def test_a_running_context_would_show_one_text_before_the_other() -> None:
    running = lmgauge.train("witten-bell", Corpus.from_strings(LINES), order=2, context="stream")
    with pytest.raises(UsageError, match="contexts of their own"):
        lmgauge.pairs(running, [("the cat sits", "the cat sit")])
