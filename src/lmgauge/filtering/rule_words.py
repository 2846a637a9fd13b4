"""What rules are, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmgauge.filtering.percentile_values import percent_name

if TYPE_CHECKING:
    from lmgauge.filtering.options import FilterRules
    from lmgauge.filtering.percentiles import Percentiles

_MOST_LINES = 20


def plain_lines(rules: FilterRules) -> Iterator[str]:
    """Yield the rules that have a number of their own."""
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


def percentile_lines(rules: FilterRules, models: list[str], percentiles: Percentiles) -> Iterator[str]:
    """Yield what percentiles come to, for each group and model."""
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
