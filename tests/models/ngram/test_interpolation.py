"""Estimating, n-gram by n-gram: the same for any partitions and chunks as in the tables of a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import lmgauge
from lmgauge import Corpus, NgramModel
from lmgauge.models.ngram.adjusted_counts import adjust_counts
from lmgauge.models.ngram.counting import count_text
from lmgauge.models.ngram.discounts import estimate_discounts
from lmgauge.models.ngram.interpolation import Estimated, estimate
from lmgauge.models.ngram.links import Grams, Links, Shape
from lmgauge.models.ngram.reading import read_text
from lmgauge.models.ngram.settings import CONTINUATION, NgramTrainingSettings
from lmgauge.text.vocabulary import BOS
from lmgauge.work.engine import Engine

LINES = ["the cat sat on the mat", "the dog sat", "a cat ran", "the cat sat", "", "on the mat the cat ran and ran"]
Values = dict[tuple[int, ...], tuple[float, float]]


def estimated(
    settings: NgramTrainingSettings, partitions: int, lines: Sequence[str] = LINES, chunk: int = 7
) -> tuple[Engine, Links, Estimated]:
    engine = Engine()
    text = read_text(engine, settings, Corpus.from_strings(lines), chunk, threads=1)
    linked = settings.order > 2 and not settings.additive
    shape = Shape(settings.order, partitions, len(text.ids), len(text.fitted.vocabulary), linked)
    counted, links = count_text(engine, shape, text.types, text.ids)
    counts = text.fitted.counts.copy()
    counts[BOS] = 0
    continuation = settings.kind in CONTINUATION
    adjusted = adjust_counts(engine, links, counted, counts, continuation=continuation, cutoffs=settings.cutoffs)
    by_order = () if settings.additive else enumerate(adjusted.counts_of_counts, 1)
    discounts = [estimate_discounts(settings, k, n) for k, n in by_order]
    return engine, links, estimate(engine, links, counted, adjusted, discounts, settings, text.fitted.events(settings))


def of_partitions(engine: Engine, grams: list[list[Grams]]) -> list[Values]:
    """Probability and weight of each n-gram, order by order."""
    orders: list[Values] = [{} for _ in grams]
    for of_partition in zip(*grams, strict=True):
        below: list[tuple[int, ...]] = []
        for k, own in enumerate(of_partition, 2):
            parents, words = engine.read(own.parents).tolist(), engine.read(own.words).tolist()
            ngrams = [
                ((parent,) if k == 2 else below[parent]) + (word,) for parent, word in zip(parents, words, strict=True)
            ]
            probabilities = engine.read(own.probabilities).tolist()
            weights = [1.0] * len(ngrams) if own.weights is None else engine.read(own.weights).tolist()
            dropped = engine.read(own.dropped).tolist() or [0] * len(ngrams)
            rows = zip(ngrams, probabilities, weights, dropped, strict=True)
            orders[k - 2].update({ngram: (probability, weight) for ngram, probability, weight, drop in rows if not drop})
            below = ngrams
    return orders


def of_tables(model: NgramModel) -> list[Values]:
    orders: list[Values] = []
    below: dict[int, tuple[int, ...]] = {}
    for k, table in enumerate(model.tables.tables, 2):
        e = table.entries()
        columns = (e.slots, e.parents, e.words, e.probabilities, e.weights)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        names = {slot: ((parent,) if k == 2 else below[parent]) + (word,) for slot, parent, word, _, _ in rows}
        orders.append({names[slot]: (probability, weight) for slot, _, _, probability, weight in rows})
        below = names
    return orders


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("modified-kneser-ney", {}),
        ("kneser-ney", {"interpolate": False, "cutoffs": (0, 0, 1)}),
        ("good-turing", {}),
        ("witten-bell", {"context": "stream"}),
        ("lidstone", {"k": 0.5}),
    ],
)
@pytest.mark.parametrize("order", [2, 3, 5])
def test_values_are_those_of_the_trained_model(kind: Any, options: dict[str, Any], order: int, partitions: int) -> None:
    model = lmgauge.train(kind, Corpus.from_strings(LINES), order=order, **options)
    engine, _, made = estimated(NgramTrainingSettings(kind, order=order, **options), partitions)
    assert np.array_equal(made.unigrams, model.tables.unigrams)
    assert of_partitions(engine, made.grams) == of_tables(model)
    assert made.entries == model.types[1:]
    assert made.unseen == model.tables.unseen
