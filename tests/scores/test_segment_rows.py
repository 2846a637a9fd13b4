"""Segment by segment, rows keep what they pay for letters and white space."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lmgauge.base.errors import InputError
from lmgauge.scores import SEPARATOR, SPELLING, iter_segments, read_scores
from lmgauge.scores.table import example_batch


def test_rows_of_a_segment_know_their_parts() -> None:
    batch = example_batch()
    parts = {SPELLING: np.array([0.0, -0.5, -np.inf]), SEPARATOR: np.array([-0.25, 0.0, -0.125])}
    spelled = replace(batch, extra=parts)
    first, second = iter_segments([spelled.of_segments(0, 1), spelled.of_segments(1, 2)])
    assert first.extra[SEPARATOR].tolist() == [-0.25]
    assert second.extra[SPELLING].tolist() == [-0.5, -np.inf]
    events = np.concatenate((first.event_logprob(), second.event_logprob()))
    assert np.array_equal(events, spelled.event_logprob())


def test_rows_that_came_in_two_batches_are_joined_with_their_parts() -> None:
    batch = replace(example_batch().of_segments(1, 2), extra={SPELLING: np.array([-0.5, 0.0])})
    (rows,) = iter_segments([batch, batch])
    assert rows.extra[SPELLING].tolist() == [-0.5, 0.0, -0.5, 0.0]
    assert SEPARATOR not in rows.extra


def test_a_table_with_an_absurd_segment_is_refused_where_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.jsonl"
    for segment, message in ((2**63 - 1, "no segment is above"), (2**64, "a whole number has more than 64 bits")):
        path.write_text(f'{{"segment": {segment}, "logprob": -0.5}}\n', encoding="utf-8", newline="\n")
        with pytest.raises(InputError, match=message):
            list(read_scores(path))
