"""Intervals and tests agree: a figure lies in its own interval, and the interval leaves out 0 where p is below 0.05."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lmgauge
from lmgauge.numerics.intervals import FEWEST_UNITS, ratio_interval, spread

# Multiples of 2^-20, as no log-probability is finer; all alike and of one sign, too, where errors are 0 or small.
nats = st.integers(-(1 << 24), 1 << 24).map(lambda value: value * 2.0**-20)
columns = st.lists(st.tuples(nats, st.integers(1, 50), st.integers(0, 8)), min_size=1, max_size=60)
shifts = st.sampled_from([0.0, 1e-12, 0.1, 1.0, 7.3])


@given(columns, shifts, st.booleans())
@example([(1.0, 1, i % 2) for i in range(20)], 0.0, True)
@example([(1e-3 * (i % 3), 1, i) for i in range(6)], 0.1, True)
def test_the_interval_leaves_out_zero_if_and_only_if_p_is_below_a_twentieth(
    rows: list[tuple[float, int, int]], shift: float, known: bool
) -> None:
    values, sizes, documents = (np.array(column) for column in zip(*rows, strict=True))
    found = spread(values + shift * sizes, sizes.astype(float), documents if known else None)
    units = len(set(documents.tolist())) if known and len(set(documents.tolist())) >= FEWEST_UNITS else len(rows)
    assert (found is None) == (units < FEWEST_UNITS)
    if found is not None:
        interval = found.interval()
        assert not interval.low <= 0.0 <= interval.high if found.p_value < 0.05 else interval.low <= 0.0 <= interval.high
        assert interval.low <= found.ratio <= interval.high


@given(columns, st.floats(-1e-9, 1e-9), st.booleans())
def test_an_interval_holds_the_figure_it_is_made_for(rows: list[tuple[float, int, int]], more: float, known: bool) -> None:
    """The figure is a sum of exact nats, which sums of rounded ones may miss in their last digits."""
    values, sizes, documents = (np.array(column) for column in zip(*rows, strict=True))
    total = float(values.sum()) + more
    interval = ratio_interval(values, sizes, documents if known else None, total=total)
    assert interval is None or interval.low <= total / sizes.sum() <= interval.high


logprobs = st.lists(st.integers(-(1 << 18), 0).map(lambda value: value * 2.0**-14), min_size=1, max_size=3)


@settings(max_examples=40)
@given(st.lists(logprobs, min_size=1, max_size=30), st.sampled_from([0.0, -1e-3, -1e-12, -0.3]), st.booleans())
@example([[-7.654629] * 3] * 13, -1e-3, False)
@example([[-7.654629]] * 35, -1e-12, True)
@example([[0.0, 0.0]] * 8, 0.0, False)
def test_every_figure_lies_in_its_interval(rows: list[list[float]], less: float, documents: bool) -> None:
    """Of evaluations, comparisons and slices; and where no event costs anything, no figure is -0.0."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for k, change in enumerate((0.0, less)):
            paths.append(Path(folder) / f"{k}.jsonl")
            lines = [
                {"segment": i, "logprob": value + change, "token": "w", "kind": "token"}
                | ({"document": f"d{i // 4}"} if documents else {})
                for i, row in enumerate(rows)
                for value in row
            ]
            paths[-1].write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        found = lmgauge.evaluate_scores(paths[0])
        (compared,) = lmgauge.compare(paths)
    plain = [value for value in found.to_dict().values() if isinstance(value, float)]
    assert not any(value == 0.0 and np.signbit(value) for value in plain)
    if found.interval is not None:
        assert found.interval.low <= found.perplexity <= found.interval.high
    for one in compared.differences:
        assert one.interval is None or one.interval.low <= one.difference <= one.interval.high
    for cut in compared.slices:
        for row in cut.rows:
            if row.interval is not None and row.difference is not None and row.p_value is not None:
                assert row.interval[0] <= row.difference <= row.interval[1]
                assert (row.p_value < 0.05) == (not row.interval[0] <= 0.0 <= row.interval[1])
