"""Segment by segment, rows keep what they pay for letters and white space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lmgauge.scores import SEPARATOR, SPELLING, iter_segments
from lmgauge.scores.table import example_batch


def test_rows_of_a_segment_know_their_parts() -> None:
    batch = example_batch()
    parts = {SPELLING: np.array([0.0, -0.5, -np.inf]), SEPARATOR: np.array([-0.25, 0.0, -0.125])}
    spelled = replace(batch, extra=parts)
    first, second = iter_segments([spelled.of_segments(0, 1), spelled.of_segments(1, 2)])
    assert first.separator.tolist() == [-0.25]
    assert second.spelling.tolist() == [-0.5, -np.inf]
    events = np.concatenate((first.event_logprob(), second.event_logprob()))
    assert np.array_equal(events, spelled.event_logprob())


def test_rows_that_came_in_two_batches_are_joined_with_their_parts() -> None:
    batch = replace(example_batch().of_segments(1, 2), extra={SPELLING: np.array([-0.5, 0.0])})
    (rows,) = iter_segments([batch, batch])
    assert rows.spelling.tolist() == [-0.5, 0.0, -0.5, 0.0]
    assert len(rows.separator) == 0
