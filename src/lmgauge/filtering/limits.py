"""Between which perplexities documents stay, by model and group, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmgauge.decoding import Perplexity
from lmgauge.filtering.options import FilterRules
from lmgauge.filtering.percentiles import Percentiles


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
            low, high, cuts = _ends(rules, used, model, group)
            if low is not None or high is not None or cuts:
                limits.append(PerplexityLimits(model, group, low, high, cuts))
    return tuple(limits)


def _ends(
    rules: FilterRules, percentiles: Percentiles | None, model: str, group: str | None
) -> tuple[float | None, float | None, tuple[float, ...]]:
    if percentiles is None:
        return rules.min_perplexity, rules.max_perplexity, ()
    first, last = rules.percent_range
    lows, highs = [rules.min_perplexity], [rules.max_perplexity]
    if first:
        lows.append(percentiles.value(model, group, first))
    if last is not None and last < 100:
        highs.append(percentiles.value(model, group, last))
    cuts = tuple(percentiles.value(model, group, cut) for cut in rules.percent_cuts or ())
    low = max((end for end in lows if end is not None), default=None)
    return low, min((end for end in highs if end is not None), default=None), cuts
