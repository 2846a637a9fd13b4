"""Rows of an evaluation for other programs: one line per token or per segment; TSV, JSON lines or Parquet by suffix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lmgauge.context_policy import ContextPolicy
from lmgauge.errors import UsageError
from lmgauge.evaluation.denominators import segment_bytes
from lmgauge.evaluation.tally import SegmentSums
from lmgauge.scores import EOS_KIND, KINDS, ScoreBatch

if TYPE_CHECKING:
    from lmgauge.text.segments import Segments

TOKEN_COLUMNS = ("model", "segment", "start", "end", "token", "logprob", "kind", "context")
SEGMENT_COLUMNS = (
    *("model", "segment", "group", "events", "logprob", "perplexity", "zero_probability_events"),
    *("id", "document", "tokens", "oov", "bytes"),
)
ID_COLUMN = "id"


def with_kept(columns: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of rows, and behind them those of the fields that are carried along."""
    taken = next((name for name in kept if name in columns), None)
    if taken is not None:
        raise UsageError(f"keep: rows have a column {taken!r} of their own; give the field of the text another name")
    return (*columns, *kept)


def token_rows(model: str, batch: ScoreBatch, block: Segments) -> dict[str, Sequence[Any]]:
    """Return a row for each event of a batch, as columns."""
    # batch: the scores of the segments of a block, nats.
    tokens = batch.strings.tokens
    count = len(batch)
    segments = batch.row_segments()
    ids = block.identifiers()
    return {
        "model": [model] * count,
        "segment": segments.tolist(),
        "start": batch.starts().tolist(),
        "end": batch.ends.tolist(),
        "token": [tokens[i] for i in batch.token_ids.tolist()],
        "logprob": batch.logprob.tolist(),
        "kind": [KINDS[k] for k in batch.kind.tolist()],
        "context": [""] * count,
        ID_COLUMN: [ids[i] for i in (segments - block.first).tolist()],
        **dict(_more_columns(batch)),
        **block.kept(segments - block.first),
    }


def _more_columns(batch: ScoreBatch) -> Iterator[tuple[str, list[Any]]]:
    tokens = batch.strings.tokens
    for name, values in batch.extra.items():
        if name == "top_ids":
            yield "top_tokens", [[tokens[i] for i in row] for row in values.tolist()]
        else:
            yield name, values.tolist()


def segment_rows(
    model: str,
    batch: ScoreBatch,
    sums: SegmentSums,
    block: Segments | None,
    group_names: Sequence[str],
    context_policy: ContextPolicy,
) -> dict[str, Sequence[Any]]:
    """Return a row for each segment of a batch, as columns; those that only the text tells are null without it."""
    import numpy as np

    count = len(sums.segments)
    of_row = np.repeat(np.arange(count), batch.segment_events)
    with np.errstate(over="ignore"):
        perplexity = np.exp(-sums.nats / sums.events)
    columns: dict[str, Sequence[Any]] = {
        "model": [model] * count,
        "segment": sums.segments.tolist(),
        "events": sums.events.tolist(),
        "logprob": sums.nats.tolist(),
        "perplexity": perplexity.tolist(),
        "zero_probability_events": sums.zeros.tolist(),
        "tokens": np.bincount(of_row[batch.kind != EOS_KIND], minlength=count).tolist(),
        "oov": np.bincount(of_row[batch.unseen()], minlength=count).tolist(),
    }
    if block is None:
        return columns | dict.fromkeys(("group", ID_COLUMN, "document", "bytes"), [None] * count)
    of_block, ids = sums.segments - block.first, block.identifiers()
    return columns | {
        "group": [""] * count if block.groups is None else [group_names[g] for g in block.groups[of_block].tolist()],
        ID_COLUMN: [ids[i] for i in of_block.tolist()],
        "document": [""] * count if block.documents is None else block.documents[of_block].tolist(),
        "bytes": segment_bytes(block, batch, context_policy).tolist(),
        **block.kept(of_block),
    }
