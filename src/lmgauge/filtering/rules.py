"""The rules that drop documents, and the one reason each dropped document has."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmgauge.errors import UsageError
from lmgauge.filtering.groups import Groups
from lmgauge.filtering.percentile_values import check_percent, percent_name
from lmgauge.filtering.percentiles import Percentiles
from lmgauge.readable import first_few

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

_RANGE = re.compile(r"(?:p(\d{1,3}(?:\.\d)?))?\.\.(?:p(\d{1,3}(?:\.\d)?))?")
_CUTS = re.compile(r"p(\d{1,3}(?:\.\d)?) ?, ?p(\d{1,3}(?:\.\d)?)")
_MOST_LINES = 20


@dataclass(frozen=True)
class FilterRules:
    """Which documents stay. A rule set to None does not apply; several apply together.

    Bounds are inclusive: a document with a perplexity of `max_perplexity` stays. Of a range of percentiles the lower end is
    exclusive, so that `p0..p30` and `p30..p100` share no document; p0 and p100 are not bounds.

    Attributes:
        max_perplexity, min_perplexity: of each model that counts.
        keep: range of percentiles to stay in, of the document's group: "p10..p70", "..p70" or "p10..".
        min_bytes, max_bytes: length of the document's text in UTF-8.
        min_tokens: tokens of each model that counts, the end of sentence included.
        max_unseen: share of the tokens that are unseen words, 0 to 1.
        buckets: two percentiles that divide the documents that stay into head (low perplexity), middle and tail: "p33,p67".
        judged_by: name of the model that counts where several score; None: a document has to pass with each of them.

    Raises:
        UsageError: a rule is out of range, or cannot be read.

    Example:
        >>> rules = FilterRules(keep="p10..p70", min_bytes=200)
        >>> rules.needs_percentiles, rules.percent_range
        (True, (10.0, 70.0))
    """

    max_perplexity: float | None = None
    min_perplexity: float | None = None
    keep: str | None = None
    min_bytes: int | None = None
    max_bytes: int | None = None
    min_tokens: int | None = None
    max_unseen: float | None = None
    buckets: str | None = None
    judged_by: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_perplexity", "min_perplexity"):
            value = getattr(self, name)
            if value is not None and not value >= 1:
                raise UsageError(f"{name} {value:g}: a perplexity is at least 1")
        for name in ("min_bytes", "max_bytes", "min_tokens"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise UsageError(f"{name} {value}: at least 0 is needed")
        if self.max_unseen is not None and not 0 <= self.max_unseen <= 1:
            raise UsageError(f"max_unseen {self.max_unseen:g} is a share: 0 to 1")
        for low, high in (("min_perplexity", "max_perplexity"), ("min_bytes", "max_bytes")):
            least, most = getattr(self, low), getattr(self, high)
            if least is not None and most is not None and least > most:
                raise UsageError(f"{low} {least:g} is above {high} {most:g}: no document would stay")
        _ = self.percent_range, self.percent_cuts

    @property
    def percent_range(self) -> tuple[float | None, float | None]:
        """Both ends of `keep`; None where it has no such end."""
        if self.keep is None:
            return None, None
        match = _RANGE.fullmatch(self.keep.strip())
        if match is None or match[1] is match[2] is None:
            raise UsageError(f"keep {self.keep!r} is not a range of percentiles such as p10..p70, ..p70 or p10..")
        low, high = (None if end is None else check_percent(float(end)) for end in match.groups())
        if low is not None and high is not None and low >= high:
            raise UsageError(f"keep {self.keep!r}: the first percentile has to be below the second")
        return low, high

    @property
    def percent_cuts(self) -> tuple[float, float] | None:
        """The two percentiles of `buckets`; None without them."""
        if self.buckets is None:
            return None
        match = _CUTS.fullmatch(self.buckets.strip())
        if match is None:
            raise UsageError(f"buckets {self.buckets!r} are not two percentiles such as p33,p67")
        low, high = (check_percent(float(cut)) for cut in match.groups())
        if not 0 < low < high < 100:
            raise UsageError(f"buckets {self.buckets!r}: two percentiles that rise, above p0 and below p100, are needed")
        return low, high

    @property
    def needs_percentiles(self) -> bool:
        """Whether percentiles are needed."""
        return self.keep is not None or self.buckets is not None

    @property
    def needs_scores(self) -> bool:
        """Whether a document without a score cannot stay."""
        scored = (self.max_perplexity, self.min_perplexity, self.keep, self.min_tokens, self.max_unseen)
        return any(rule is not None for rule in scored)

    @property
    def drops(self) -> bool:
        """Whether any document can be dropped."""
        return self.needs_scores or self.min_bytes is not None or self.max_bytes is not None

    def check(self, models: Sequence[str], percentiles: Percentiles | None = None) -> None:
        """Refuse rules that the models or the percentiles do not fit.

        Args:
            models: names of the models that score.
            percentiles: to judge by.

        Raises:
            UsageError: the model that counts is not there, percentiles are needed and not there or those of another model,
                or buckets are asked for and several models count.
        """
        if self.judged_by is not None and self.judged_by not in models:
            raise UsageError(f"the rules name model {self.judged_by!r}; there are {first_few(models)}")
        if self.needs_percentiles and percentiles is None:
            raise UsageError(
                "percentiles are needed for this rule: learn them with 'lmgauge percentiles', and name their file"
            )
        if self.buckets is not None and self.judged_by is None and len(models) > 1:
            raise UsageError(f"buckets are made by one model; say which one counts: {first_few(models)}")
        if self.needs_percentiles and percentiles is not None:
            for name in self.counting(models):
                percentiles.of(name, None)

    def counting(self, models: Sequence[str]) -> list[str]:
        """Return the names of the models that count.

        Args:
            models: names of those that score.

        Example:
            >>> FilterRules(judged_by="de").counting(["en", "de"])
            ['de']
        """
        return [name for name in models if self.judged_by in (None, name)]

    def describe(self, models: Sequence[str], percentiles: Percentiles | None = None) -> list[str]:
        """Return what the rules are, a line for each, with the numbers that apply to each group.

        Args:
            models: names of the models that score.
            percentiles: to judge by.

        Example:
            >>> FilterRules(max_perplexity=1000, min_bytes=200).describe(["en"])
            ['at least 200 bytes', 'perplexity of at most 1,000']
        """
        lines = [*_plain_lines(self)]
        if percentiles is not None and self.needs_percentiles:
            lines += _percentile_lines(self, self.counting(models), percentiles)
        if self.judged_by is not None and len(models) > 1:
            lines.append(f"model {self.judged_by!r} counts")
        return lines


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


def _plain_lines(rules: FilterRules) -> Iterator[str]:
    if rules.min_bytes is not None:
        yield f"at least {rules.min_bytes:,} bytes"
    if rules.max_bytes is not None:
        yield f"at most {rules.max_bytes:,} bytes"
    if rules.min_tokens is not None:
        yield f"at least {rules.min_tokens:,} tokens"
    if rules.max_unseen is not None:
        yield f"at most {100 * rules.max_unseen:g} % unseen words"
    if rules.min_perplexity is not None:
        yield f"perplexity of at least {rules.min_perplexity:,.6g}"
    if rules.max_perplexity is not None:
        yield f"perplexity of at most {rules.max_perplexity:,.6g}"


def _percentile_lines(rules: FilterRules, models: list[str], percentiles: Percentiles) -> Iterator[str]:
    groups = [name for name in percentiles.groups if any(percentiles.has_own(model, name) for model in models)]
    rest = "all other documents" if groups else "all documents"
    lines = [
        _of_group(
            rules,
            model,
            name,
            percentiles,
            rest if name is None else f"{percentiles.sample.group} {name!r}",
            len(models) > 1,
        )
        for name in [*groups, *([None] if percentiles.has_stand_in else [])]
        for model in models
    ]
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"and {len(lines) - _MOST_LINES:,} more"


def _of_group(rules: FilterRules, model: str, group: str | None, percentiles: Percentiles, name: str, named: bool) -> str:
    parts = []
    low, high = rules.percent_range
    if low:
        parts.append(f"above {percentiles.value(model, group, low):,.6g} ({percent_name(low)})")
    if high is not None and high < 100:
        parts.append(f"at most {percentiles.value(model, group, high):,.6g} ({percent_name(high)})")
    if rules.percent_cuts is not None:
        cuts = " and ".join(f"{percentiles.value(model, group, cut):,.6g}" for cut in rules.percent_cuts)
        parts.append(f"buckets cut at {cuts} ({rules.buckets})")
    by = f" by {model!r}" if named else ""
    return f"{name}: perplexity{by} {', '.join(parts) or 'of any height'}"
