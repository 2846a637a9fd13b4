"""The rules that drop documents, and the one reason each dropped document has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.filtering.groups import Groups
from lmgauge.filtering.options import FilterRules
from lmgauge.filtering.percentiles import Percentiles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.uint8]

REASONS = (
    "stays",
    "too short",
    "too long",
    "nothing to score",
    "too few tokens",
    "unseen words",
    "perplexity below",
    "perplexity above",
    "no percentiles",
    "percentile below",
    "percentile above",
)
"""What the codes of reasons mean, in the order in which the rules apply: a document has the first reason that fits."""

BUCKETS = ("head", "middle", "tail")
"""What the codes of buckets mean: of low, medium and high perplexity."""

NO_BUCKET = 255
"""Code of a document without a bucket: it has no perplexity, or no buckets were asked for."""


@dataclass(frozen=True)
class DocumentFigures:
    """What the rules look at, with a row for each document of a batch and a column for each model."""

    models: tuple[str, ...]
    bytes: Ints  # int64 [documents], of the text in UTF-8
    perplexity: Floats  # float64 [documents, models]; inf where an event is impossible, NaN where there is nothing to score
    tokens: Ints  # int64 [documents, models]
    unseen: Floats  # float64 [documents, models], share of the tokens that are unseen words; NaN where there are no tokens


class Judgement(NamedTuple):
    """What becomes of the documents of a batch."""

    reasons: Codes  # uint8 [documents], indices in `REASONS`: 0 for a document that stays
    buckets: Codes  # uint8 [documents], indices in `BUCKETS`, or `NO_BUCKET`
    # bool [documents], True where the percentiles of all documents were used, as the document's group has none
    stand_in: NDArray[np.bool_]


def judge(
    rules: FilterRules, figures: DocumentFigures, groups: Groups | None = None, percentiles: Percentiles | None = None
) -> Judgement:
    """Return the verdict on each document: it stays, or the first reason why not, and its bucket."""
    rules.check(figures.models, percentiles)
    documents = len(figures.bytes)
    groups = Groups.none(documents) if groups is None else groups
    columns = [figures.models.index(name) for name in rules.counting(figures.models)]
    perplexity = figures.perplexity[:, columns]
    bounds = _Bounds.of(rules, [figures.models[column] for column in columns], groups, percentiles)
    reasons = np.zeros(documents, np.uint8)
    for name, dropped in _tests(rules, figures, columns, bounds):
        reasons[dropped & (reasons == 0)] = REASONS.index(name)
    buckets = np.full(documents, NO_BUCKET, np.uint8)
    if rules.buckets is not None:
        scored = ~np.isnan(perplexity[:, 0])
        middle, tail = (perplexity[:, 0] > cut[:, 0] for cut in (bounds.head, bounds.middle))
        buckets[scored] = (middle.astype(np.uint8) + tail)[scored]
    return Judgement(reasons, buckets, bounds.stand_in)


class _Bounds(NamedTuple):
    """Percentiles of each document's group: float64 [documents, models that count]; what is not a bound is infinite."""

    low: Floats
    high: Floats
    head: Floats
    middle: Floats
    stand_in: NDArray[np.bool_]

    @classmethod
    def of(cls, rules: FilterRules, models: list[str], groups: Groups, percentiles: Percentiles | None) -> _Bounds:
        # One row for each group of the batch, and a last one for documents without a group (code -1).
        names = [*groups.names, None]
        table = np.empty((4, len(names), len(models)))
        table[0], table[1:] = -math.inf, math.inf
        stand_in = np.zeros(len(names), bool)
        if rules.needs_percentiles and percentiles is not None:
            (low, high), cuts = rules.percent_range, rules.percent_cuts or (None, None)
            for row, name in enumerate(names):
                for column, model in enumerate(models):
                    for end, percent in enumerate((low, high, *cuts)):
                        if not percentiles.has_stand_in and not percentiles.has_own(model, name):
                            table[end, row, column] = np.nan
                        elif percent is not None and (end, percent) not in ((0, 0.0), (1, 100.0)):
                            table[end, row, column] = percentiles.value(model, name, percent)
            if percentiles.groups and percentiles.has_stand_in:
                stand_in = np.array([not all(percentiles.has_own(model, name) for model in models) for name in names])
        low_ends, high_ends, head, middle = table[:, groups.codes]
        return cls(low_ends, high_ends, head, middle, stand_in[groups.codes])


def _tests(
    rules: FilterRules, figures: DocumentFigures, columns: list[int], bounds: _Bounds
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    # Reasons in their order, each with the documents that it fits: a NaN is neither above nor below.
    perplexity, tokens, unseen = (array[:, columns] for array in (figures.perplexity, figures.tokens, figures.unseen))
    if rules.min_bytes is not None:
        yield "too short", figures.bytes < rules.min_bytes
    if rules.max_bytes is not None:
        yield "too long", figures.bytes > rules.max_bytes
    if rules.needs_scores:
        yield "nothing to score", _any(np.isnan(perplexity))
    if rules.min_tokens is not None:
        yield "too few tokens", _any(tokens < rules.min_tokens)
    if rules.max_unseen is not None:
        yield "unseen words", _any(unseen > rules.max_unseen)
    if rules.min_perplexity is not None:
        yield "perplexity below", _any(perplexity < rules.min_perplexity)
    if rules.max_perplexity is not None:
        yield "perplexity above", _any(perplexity > rules.max_perplexity)
    if rules.needs_percentiles:
        yield "no percentiles", _any(np.isnan(bounds.low))
    if rules.keep is not None:
        yield "percentile below", _any(perplexity <= bounds.low)
        yield "percentile above", _any(perplexity > bounds.high)


def _any(failed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(failed.any(axis=1))
