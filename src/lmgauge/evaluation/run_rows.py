"""The rows of a run as a table of Arrow: one for each segment, or for each event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lmgauge.context_policy import ContextPolicy
from lmgauge.evaluation.row_files import ID_COLUMN, SEGMENT_COLUMNS, segment_rows, with_kept
from lmgauge.evaluation.runs import Run, lockstep
from lmgauge.evaluation.tally import Tally
from lmgauge.numerics.units import nats_to_bits
from lmgauge.scores import ScoreBatch
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Literal["segment", "token"]


def rows_of_run(run: Run, text: Corpus | None, rows: Rows) -> pa.Table:
    """Return the rows of a run; what only the text tells is null without it."""
    import pyarrow as pa

    columns_of = _segments if rows == "segment" else _tokens
    blocks = lockstep([run.batches()], text, [run.name])
    parts = [pa.table(columns_of(run, text, block, batch)) for block, (batch,) in blocks if len(batch)]
    return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


def _segments(run: Run, text: Corpus | None, block: Segments | None, batch: ScoreBatch) -> dict[str, Any]:
    if block is None:  # what has no rows is not known
        some = batch.segment_events > 0
        events, lossy = batch.segment_events[some], np.zeros(0, bool)
        batch = replace(batch, segments=batch.segments[some], segment_events=events, lossy=lossy)
    groups, policy = [] if text is None else text.group_names, ContextPolicy.parse(run.origin.context)
    columns = segment_rows(run.name, batch, Tally.of(batch).per_segment(), block, groups, policy)
    return _in_order(SEGMENT_COLUMNS, columns, text)


def _tokens(run: Run, text: Corpus | None, block: Segments | None, batch: ScoreBatch) -> dict[str, Any]:
    import pyarrow as pa

    place = batch.row_segments() - (0 if block is None else block.first)
    ids = pa.nulls(len(batch), pa.string()) if block is None else pa.array(block.identifiers()).take(pa.array(place))
    columns = {"model": pa.repeat(run.name, len(batch)), ID_COLUMN: ids}
    stored = batch.to_arrow()
    for name, values in zip(stored.schema.names, stored.columns, strict=True):
        columns[name] = values.cast(pa.string()) if name in ("token", "kind") else values
    return _in_order(columns, columns if block is None else columns | block.kept(place), text)


def _in_order(own: Iterable[str], columns: Mapping[str, Any], text: Corpus | None) -> dict[str, Any]:
    # Columns with bits behind the log-probabilities, and the fields that are carried along last.
    names = list(with_kept(tuple(own), () if text is None else text.kept))
    names.insert(names.index("logprob") + 1, "bits")
    bits = nats_to_bits(-np.asarray(columns["logprob"], np.float64))
    return {name: bits if name == "bits" else columns[name] for name in names}
