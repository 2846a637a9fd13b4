"""What is weighted, which hypotheses may be chosen, and errors by the house's own error rate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.reference import edit_distance

from lmgauge.base.errors import UsageError
from lmgauge.tasks.metrics.error_rates import CER, WER
from lmgauge.tasks.nbest.reading import NbestLists
from lmgauge.tasks.nbest.rescoring import ScoredLists, count_errors, extremes, rates_of, tune_weights, weights_of

LISTS = NbestLists.of_hypotheses(
    {
        "u1": [("a dock barks", -3.0), ("a dog barks", -3.1), ("A dog", -9.0)],
        "u2": [("the dog", -1.0), ("the the dog", -2.0)],
    }
)
NATS = np.array([[-9.0, -4.0, -2.0, -3.0, -5.0]])
REFERENCES = ["a dog barks", "the dog"]


def scored(nats: np.ndarray = NATS, metric: WER | CER | None = None) -> ScoredLists:
    return ScoredLists(LISTS, tuple(f"m{i}" for i in range(len(nats))), nats, metric or WER())


def test_errors_are_those_of_single_alignments() -> None:
    statistics = count_errors(LISTS, REFERENCES, WER(lowercase=True), threads=1)
    pairs = [(text.lower().split(), REFERENCES[i // 3].split()) for i, text in enumerate(LISTS.texts)]
    assert statistics[:, 1:].sum(axis=1).tolist() == [edit_distance.distance(b, a) for a, b in pairs]
    fewest, most = extremes(LISTS, statistics)
    assert fewest.tolist() == [1, 3]
    assert most.tolist() == [0, 4]
    assert rates_of(WER(), statistics, most).errors == 2


def test_lengths_are_words_or_characters() -> None:
    assert scored().names == ("score", "m0", "words")
    assert scored().lengths.tolist() == [3, 3, 2, 2, 3]
    assert scored(metric=CER()).names[-1] == "characters"
    assert scored(metric=CER()).lengths.tolist() == [10, 9, 4, 6, 9]


def test_what_a_model_rules_out_is_not_chosen_while_others_are_left() -> None:
    ruled_out = np.array([[-9.0, -math.inf, -2.0, -math.inf, -math.inf]])
    one = scored(ruled_out)
    assert one.possible[1].tolist() == [0, 2, 3, 4]
    assert one.choose(np.array([1.0, 0.1, 0.0])).tolist() == [0, 3]  # the model has no say in the second list
    totals = one.totals(np.array([1.0, 1.0, 0.0]))
    assert totals.tolist() == [-12.0, -math.inf, -11.0, -1.0, -2.0]
    both = scored(np.array([[-math.inf, -1.0, -1.0, -1.0, -1.0], [-1.0, -math.inf, -math.inf, -1.0, -1.0]]))
    assert both.possible[1].tolist() == [1, 2, 3, 4]  # what the first model leaves is all that the second can choose from


def test_tuning_counts_what_it_promises() -> None:
    one = scored()
    weights, tuning = tune_weights(one, REFERENCES, starts=3, seed=1, threads=1)
    statistics = count_errors(LISTS, REFERENCES, WER(), threads=1)
    chosen = one.choose(weights_of(one.names, weights))
    assert rates_of(WER(), statistics, chosen) == tuning.best
    assert (tuning.first.errors, tuning.best.errors, tuning.oracle.errors) == (1, 0, 0)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ({"kn5": 1.0}, "there is no weight 'kn5'; what is weighted is 'score', 'm0', 'words'"),
        ({"m0": math.nan}, "the weight of 'm0' is not a finite number"),
        ({"m0": 0.0}, "all weights are 0"),
        ({}, "all weights are 0"),
    ],
)
def test_weights_that_are_refused(weights: dict[str, float], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        weights_of(scored().names, weights)


def test_names_are_different_and_there_is_something_to_weight() -> None:
    with pytest.raises(UsageError, match="two weights would be called 'score'"):
        ScoredLists(LISTS, ("score",), NATS, WER())
    bare = NbestLists.of_hypotheses({"u": ["a", "b"]})
    with pytest.raises(UsageError, match="nothing to weight but the length"):
        ScoredLists(bare, (), np.zeros((0, 2)), WER())
