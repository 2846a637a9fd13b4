"""The rules that drop documents, the one reason each dropped document has, and the rules in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from lmgauge.decoding import Perplexity
from lmgauge.filtering.documents import Groups

if TYPE_CHECKING:
    from lmgauge.filtering.options import FilterRules
    from lmgauge.filtering.percentiles import Percentiles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.uint8]

Reason = Literal[
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
]
REASONS: tuple[Reason, ...] = get_args(Reason)
"""What the codes of reasons mean, in the order in which the rules apply: a document has the first reason that fits."""
Bucket = Literal["head", "middle", "tail"]
BUCKETS: tuple[Bucket, ...] = get_args(Bucket)
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

    def bucket_names(self) -> list[Bucket | None]:
        """Return the name of each document's bucket; None for one without."""
        return [None if code == NO_BUCKET else BUCKETS[code] for code in self.buckets.tolist()]


def judge(
    rules: FilterRules, figures: DocumentFigures, groups: Groups | None = None, percentiles: Percentiles | None = None
) -> Judgement:
    """Return the verdict on each document: it stays, or the first reason why not, and its bucket."""
    rules.check(figures.models, percentiles)
    documents = len(figures.bytes)
    groups = Groups.none(documents) if groups is None else groups
    columns = [figures.models.index(name) for name in rules.counting(figures.models)]
    perplexity = figures.perplexity[:, columns]
    (low, high, head, middle), stand_in = _bounds(rules, [figures.models[column] for column in columns], groups, percentiles)
    reasons = np.zeros(documents, np.uint8)
    for name, dropped in _tests(rules, figures, columns, low, high):
        reasons[dropped & (reasons == 0)] = REASONS.index(name)
    buckets = np.full(documents, NO_BUCKET, np.uint8)
    if rules.buckets is not None:
        scored = ~np.isnan(perplexity[:, 0])
        above_head, above_middle = (perplexity[:, 0] > cut[:, 0] for cut in (head, middle))
        buckets[scored] = (above_head.astype(np.uint8) + above_middle)[scored]
    return Judgement(reasons, buckets, stand_in)


def _bounds(
    rules: FilterRules, models: list[str], groups: Groups, percentiles: Percentiles | None
) -> tuple[Floats, NDArray[np.bool_]]:
    # Percentiles of each document's group: float64 [4, documents, models that count], the ends of what stays and the cuts of
    # buckets; what is not a bound is infinite. And where those of all documents stand in: bool [documents].
    # One row for each group of the batch, and a last one for documents without a group (code -1).
    names = [*groups.names, None]
    table = np.empty((4, len(names), len(models)))
    table[0], table[1:] = -math.inf, math.inf
    stand_in = np.zeros(len(names), bool)
    if rules.needs_percentiles and percentiles is not None:
        ends = PercentileEnds(rules, percentiles)
        for row, name in enumerate(names):
            own = [percentiles.has_own(model, name) for model in models]
            stand_in[row] = bool(percentiles.groups) and percentiles.has_stand_in and not all(own)
            for column, model in enumerate(models):
                if own[column] or percentiles.has_stand_in:
                    low, high, cuts = ends.of(model, name)
                    both = -math.inf if low is None else low, math.inf if high is None else high
                    table[:, row, column] = *both, *(cuts or (math.inf, math.inf))
                else:
                    table[:, row, column] = np.nan
    return table[:, groups.codes], stand_in[groups.codes]


class PercentileEnds:
    """Between which perplexities percentiles let documents of a group stay, and where they cut buckets."""

    def __init__(self, rules: FilterRules, percentiles: Percentiles) -> None:
        self._percentiles, (self.low, self.high), self._cuts = percentiles, rules.percent_range, rules.percent_cuts or ()

    def of(self, model: str, group: str | None) -> tuple[float | None, float | None, tuple[float, ...]]:
        """Return the ends for a model and group, None where there is no such end, and the cuts."""
        value = partial(self._percentiles.value, model, group)
        high = None if self.high in (None, 100) else value(self.high)
        return value(self.low) if self.low else None, high, tuple(map(value, self._cuts))


def _tests(
    rules: FilterRules, figures: DocumentFigures, columns: list[int], low: Floats, high: Floats
) -> Iterator[tuple[Reason, NDArray[np.bool_]]]:
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
        yield "no percentiles", _any(np.isnan(low))
    if rules.keep is not None:
        yield "percentile below", _any(perplexity <= low)
        yield "percentile above", _any(perplexity > high)


def _any(failed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(failed.any(axis=1))


# -- in numbers ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PerplexityLimits:
    """Between which perplexities documents of a group stay.

    Attributes:
        model: its name.
        group: name; None for documents of no group, and of those without percentiles of their own.
        low, high: of what stays; None where there is no such end.
        cuts: between head, middle and tail; empty without buckets.
    """

    model: str
    group: str | None
    low: Perplexity | None
    high: Perplexity | None
    cuts: tuple[Perplexity, ...] = ()


def limits_of(
    rules: FilterRules, models: Sequence[str], percentiles: Percentiles | None = None
) -> tuple[PerplexityLimits, ...]:
    """Return the limits that rules set to perplexities: for each model that counts and group, and for all others."""
    used = percentiles if rules.needs_percentiles else None
    limits = []
    for model in rules.counting(models):
        groups = [] if used is None else [name for name in used.groups if used.has_own(model, name)]
        for group in (*groups, *([None] if used is None or used.has_stand_in else [])):
            first, last, cuts = (None, None, ()) if used is None else PercentileEnds(rules, used).of(model, group)
            low = max((end for end in (rules.min_perplexity, first) if end is not None), default=None)
            high = min((end for end in (rules.max_perplexity, last) if end is not None), default=None)
            if low is not None or high is not None or cuts:
                limits.append(PerplexityLimits(model, group, low, high, cuts))
    return tuple(limits)


# -- in words -----------------------------------------------------------------------------------------------------------
_IN_WORDS = {
    "min_bytes": "at least {:,} bytes",
    "max_bytes": "at most {:,} bytes",
    "min_tokens": "at least {:,} tokens",
    "max_unseen": "at most {:g} % unseen words",
    "min_perplexity": "perplexity of at least {:,.6g}",
    "max_perplexity": "perplexity of at most {:,.6g}",
}
_MOST_LINES = 20


def plain_lines(rules: FilterRules) -> list[str]:
    """Return the rules that have a number of their own, in words."""
    values = vars(rules) | {"max_unseen": rules.max_unseen and 100 * rules.max_unseen}
    return [words.format(values[name]) for name, words in _IN_WORDS.items() if values[name] is not None]


def percentile_lines(rules: FilterRules, models: list[str], percentiles: Percentiles) -> Iterator[str]:
    """Yield what percentiles come to, for each group and model."""
    groups = [name for name in percentiles.groups if any(percentiles.has_own(model, name) for model in models)]
    rest = "all other documents" if groups else "all documents"
    rows = [(group, model) for group in [*groups, *([None] * percentiles.has_stand_in)] for model in models]
    ends = PercentileEnds(rules, percentiles)
    for group, model in rows[:_MOST_LINES]:
        low, high, cuts = ends.of(model, group)
        parts = [] if low is None else [f"above {low:,.6g} (p{ends.low:g})"]
        parts += [] if high is None else [f"at most {high:,.6g} (p{ends.high:g})"]
        parts += [f"buckets cut at {' and '.join(f'{cut:,.6g}' for cut in cuts)} ({rules.buckets})"] if cuts else []
        name = rest if group is None else f"{percentiles.sample.group} {group!r}"
        by = f" by {model!r}" if len(models) > 1 else ""
        yield f"{name}: perplexity{by} {', '.join(parts) or 'of any height'}"
    if len(rows) > _MOST_LINES:
        yield f"and {len(rows) - _MOST_LINES:,} more"
