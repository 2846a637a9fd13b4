"""The rules that drop documents, the one reason each dropped document has, and the rules in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from lmgauge.filtering.documents import DocumentScores, Groups

if TYPE_CHECKING:
    from lmgauge.filtering.options import FilterRules
    from lmgauge.filtering.percentiles import Percentiles

Floats = NDArray[np.float64]
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


class Rule(NamedTuple):
    """A rule of one number: the reason that it gives, the figure that it looks at, when that fails, and it in words."""

    reason: Reason
    figure: Literal["bytes", "perplexity", "tokens", "unseen"]
    fails: Callable[[Any, float], Any]
    words: str


RULES = {
    "min_bytes": Rule("too short", "bytes", np.less, "at least {:,} bytes"),
    "max_bytes": Rule("too long", "bytes", np.greater, "at most {:,} bytes"),
    "min_tokens": Rule("too few tokens", "tokens", np.less, "at least {:,} tokens"),
    "max_unseen": Rule("unseen words", "unseen", np.greater, "at most {:g} % unseen words"),
    "min_perplexity": Rule("perplexity below", "perplexity", np.less, "perplexity of at least {:,.6g}"),
    "max_perplexity": Rule("perplexity above", "perplexity", np.greater, "perplexity of at most {:,.6g}"),
}
"""By the names that `FilterRules` has for them, in the order in which they are said."""


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
    rules: FilterRules, scores: DocumentScores, groups: Groups | None = None, percentiles: Percentiles | None = None
) -> Judgement:
    """Return the verdict on each document: it stays, or the first reason why not, and its bucket."""
    rules.check([*scores.sums], percentiles)
    groups = Groups.none(len(scores)) if groups is None else groups
    models = rules.counting([*scores.sums])
    scores = replace(scores, sums={name: scores.sums[name] for name in models})
    (low, high, head, middle), stand_in = _bounds(rules, models, groups, percentiles)
    reasons = np.zeros(len(scores), np.uint8)
    failed = _failed(rules, scores, low, high)
    for code, reason in enumerate(REASONS):
        if reason in failed:
            reasons[failed[reason].any(axis=1) & (reasons == 0)] = code
    buckets = np.full(len(scores), NO_BUCKET, np.uint8)
    if rules.buckets is not None:
        perplexity = scores.perplexity[:, 0]
        above = (perplexity > head[:, 0]).astype(np.uint8) + (perplexity > middle[:, 0])
        buckets = np.where(np.isnan(perplexity), buckets, above)
    return Judgement(reasons, buckets, stand_in)


def _bounds(
    rules: FilterRules, models: list[str], groups: Groups, percentiles: Percentiles | None
) -> tuple[Floats, NDArray[np.bool_]]:
    # Percentiles of each document's group: float64 [4, documents, models that count], the ends of what stays and the cuts of
    # buckets; infinite where there is no such bound, NaN where the group has no percentiles. And where those of all
    # documents stand in: bool [documents].
    # One row for each group of the batch, and a last one for documents without a group (code -1).
    names = [*groups.names, None]
    table = np.full((4, len(names), len(models)), math.inf)
    table[0] = -math.inf
    stand_in = np.zeros(len(names), bool)
    if rules.needs_percentiles and percentiles is not None:
        for row, name in enumerate(names):
            own = [percentiles.has_own(model, name) for model in models]
            stand_in[row] = bool(percentiles.groups) and percentiles.has_stand_in and not all(own)
            for column, model in enumerate(models):
                low, high, cuts = ends_of(rules, percentiles, model, name)
                ends = -math.inf if low is None else low, math.inf if high is None else high, *(cuts or [math.inf] * 2)
                table[:, row, column] = ends if own[column] or percentiles.has_stand_in else math.nan
    return table[:, groups.codes], stand_in[groups.codes]


def ends_of(
    rules: FilterRules, percentiles: Percentiles, model: str, group: str | None
) -> tuple[float | None, float | None, tuple[float, ...]]:
    """Return between which perplexities percentiles let documents stay, None where there is no end, and cut buckets."""
    value, (low, high) = partial(percentiles.value, model, group), rules.percent_range
    cuts = tuple(map(value, rules.percent_cuts or ()))
    return value(low) if low else None, None if high in (None, 100) else value(high), cuts


def _failed(rules: FilterRules, scores: DocumentScores, low: Floats, high: Floats) -> dict[Reason, NDArray[np.bool_]]:
    # By the reasons of rules that apply, which documents fail them: bool [documents, models], or [documents, 1] of what no
    # model decides. A NaN is neither above nor below.
    sums, perplexity = scores.sums.values(), scores.perplexity
    tokens, unseen = (np.stack(own, axis=1) for own in ([o.events for o in sums], [o.unseen_share() for o in sums]))
    figures = {"bytes": scores.bytes[:, None], "perplexity": perplexity, "tokens": tokens, "unseen": unseen}
    bounds = [(rule, bound) for name, rule in RULES.items() if (bound := getattr(rules, name)) is not None]
    failed: dict[Reason, NDArray[np.bool_]] = {
        rule.reason: rule.fails(figures[rule.figure], bound) for rule, bound in bounds
    }
    if rules.keep is not None or any(rule.figure != "bytes" for rule, _ in bounds):
        failed["nothing to score"] = np.isnan(perplexity)
    if rules.needs_percentiles:
        failed["no percentiles"] = np.isnan(low)
    if rules.keep is not None:
        failed |= {"percentile below": perplexity <= low, "percentile above": perplexity > high}
    return failed


# -- in words -----------------------------------------------------------------------------------------------------------
_MOST_LINES = 20


def rule_lines(rules: FilterRules, models: Sequence[str], percentiles: Percentiles | None = None) -> Iterator[str]:
    """Yield what the rules are, a line for each, with the numbers that apply to each group.

    >>> from lmgauge.filtering.options import FilterRules
    >>> list(rule_lines(FilterRules(max_perplexity=1000, min_bytes=200), ["en"]))
    ['at least 200 bytes', 'perplexity of at most 1,000']
    """
    # models: names of those that score.
    values = vars(rules) | {"max_unseen": rules.max_unseen and 100 * rules.max_unseen}
    yield from (rule.words.format(values[name]) for name, rule in RULES.items() if values[name] is not None)
    if percentiles is not None and rules.needs_percentiles:
        yield from _percentile_lines(rules, rules.counting(models), percentiles)
    if rules.judged_by is not None and len(models) > 1:
        yield f"model {rules.judged_by!r} counts"


def _percentile_lines(rules: FilterRules, models: list[str], percentiles: Percentiles) -> Iterator[str]:
    # What percentiles come to, for each group and model.
    groups = [name for name in percentiles.groups if any(percentiles.has_own(model, name) for model in models)]
    rest = "all other documents" if groups else "all documents"
    rows = [(group, model) for group in [*groups, *([None] * percentiles.has_stand_in)] for model in models]
    percents = rules.percent_range
    for group, model in rows[:_MOST_LINES]:
        low, high, cuts = ends_of(rules, percentiles, model, group)
        parts = [] if low is None else [f"above {low:,.6g} (p{percents[0]:g})"]
        parts += [] if high is None else [f"at most {high:,.6g} (p{percents[1]:g})"]
        parts += [f"buckets cut at {' and '.join(f'{cut:,.6g}' for cut in cuts)} ({rules.buckets})"] if cuts else []
        name = rest if group is None else f"{percentiles.group} {group!r}"
        by = f" by {model!r}" if len(models) > 1 else ""
        yield f"{name}: perplexity{by} {', '.join(parts) or 'of any height'}"
    if len(rows) > _MOST_LINES:
        yield f"and {len(rows) - _MOST_LINES:,} more"
