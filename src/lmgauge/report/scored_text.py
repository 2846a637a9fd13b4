"""Strings as a model scores them: a row for each token, or for each string."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted, number
from lmgauge.scores import KINDS, OOV, SPELLED

if TYPE_CHECKING:
    from lmgauge.models.scored_text import ScoredText, ScoredTexts


_UNKNOWN = {KINDS[OOV]: "unknown word", KINDS[SPELLED]: "unknown word, spelled"}


def blocks(scored: ScoredText) -> doc.Document:
    """Return the text, a row for each token, and the sums."""
    unknown = [_UNKNOWN.get(kind, "") for kind in scored.kinds]
    columns = [
        doc.labels("token", scored.tokens),
        doc.numbers("nats", scored.logprobs, 4, "fixed"),
        doc.Column("probability", [f"{math.exp(logprob):.4g}" for logprob in scored.logprobs]),
    ]
    if any(unknown):
        columns.append(doc.labels("", unknown))
    perplexity = "" if scored.perplexity is None else f", perplexity {number(scored.perplexity)}"
    total = f"{counted(len(scored), 'event')}, {number(scored.log_probability)} nats{perplexity}"
    return (*_text(scored), doc.Table(tuple(columns)), doc.Text(total))


def _text(scored: ScoredText) -> doc.Document:
    text = scored.text.encode()
    parts = tuple(text[start:end].decode(errors="replace") for start, end in scored.spans)
    return (doc.Tokens(parts),) if text else ()


def blocks_of_several(scored: ScoredTexts) -> doc.Document:
    """Return a row for each string."""
    rows = [item.summary() for item in scored]
    return (
        doc.Table(
            (
                doc.numbers("perplexity", [row["perplexity"] for row in rows]),
                doc.numbers("nats", [row["log_probability"] for row in rows]),
                doc.numbers("events", [row["events"] for row in rows], form="count"),
                doc.labels("text", [row["text"] for row in rows]),
            )
        ),
    )
