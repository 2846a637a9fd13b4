"""What stayed of a pruned model, and what a static mixture is made of: n-grams of each order, and the perplexity lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmgauge.report import blocks as doc
from lmgauge.report.formats import change, number

if TYPE_CHECKING:
    from lmgauge.models.ngram.pruning import PrunedModel


def blocks(pruned: PrunedModel, *, name: str = "") -> doc.Document:
    """Return a row for each order and one for all, and what the pruning costs."""
    before, after = ([*counts, sum(counts)] for counts in (pruned.ngrams_before, pruned.ngrams))
    columns = (
        doc.labels("order", [*(str(order) for order in range(1, len(before))), "all"]),
        doc.numbers("n-grams before", before, form="count"),
        doc.numbers("after", after, form="count"),
        doc.numbers("share", [b / a for a, b in zip(before, after, strict=True)], 2, "percent"),
    )
    notes = [f"{name or pruned.model.label}: pruned at threshold {pruned.threshold:.4g}"]
    return (doc.Table(columns, bold=(len(before) - 1,)), *doc.notes([*notes, *_measured(pruned)]))


def _measured(pruned: PrunedModel) -> list[str]:
    if pruned.perplexity is None or pruned.perplexity_before is None:
        return []
    return [lost(pruned.perplexity_before, pruned.perplexity, pruned.events, ("before", "after"))]


def lost(before: float, after: float, events: int, names: tuple[str, str]) -> str:
    """Return what a smaller or simpler model costs, in a sentence."""
    # after: its own.
    return (
        f"perplexity on {events:,} events: {names[0]} {number(before, 3)}, {names[1]} {number(after, 3)} "
        f"({change(after / before)})"
    )
