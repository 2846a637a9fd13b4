"""Laws of the intervals over random input: what may not change them does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgauge.evaluation.statistics import Interval, bootstrap_weights, ratio_interval

law = settings(deadline=None)

Rows = list[tuple[float, float]]
seeds = st.integers(0, 2**40)
limits = st.sampled_from([0, 1000])
counts = st.just(0.0) | st.floats(1e-3, 1e9)
segments = st.lists(st.tuples(st.floats(0.0, 1e6), st.integers(1, 1000).map(float)), min_size=2, max_size=30)


def interval(rows: Rows, **options: float) -> Interval:
    nats, events = zip(*rows, strict=True)
    found = ratio_interval(nats, events, **{"resamples": 99, **options})  # type: ignore[arg-type]
    assert found is not None
    return found


@law
@given(st.integers(1, 60), st.integers(1, 40), seeds, st.integers(1, 3000))
def test_weights_do_not_depend_on_the_batch(n: int, resamples: int, seed: int, batch_draws: int) -> None:
    whole = np.concatenate(list(bootstrap_weights(n, resamples, seed)))
    parts = list(bootstrap_weights(n, resamples, seed, batch_draws=batch_draws))
    assert all(part.size <= max(batch_draws, n) for part in parts)
    assert np.array_equal(np.concatenate(parts), whole)
    assert whole.shape == (resamples, n)
    assert (whole.sum(axis=1) == n).all()


@law
@given(segments, seeds, limits)
def test_lies_about_the_ratio_and_within_the_extremes(rows: Rows, seed: int, limit: int) -> None:
    found = interval(rows, seed=seed, limit=limit)
    ratios = [nats / events for nats, events in rows]
    total = sum(nats for nats, _ in rows) / sum(events for _, events in rows)
    slack = 1e-9 * (1 + max(ratios))
    if found.method == "bootstrap":
        assert min(ratios) - slack <= found.low <= found.high <= max(ratios) + slack
    else:
        assert 0.0 <= found.low <= total + slack
        assert found.high - total >= total - found.low - slack


@law
@given(segments, seeds, limits)
def test_the_same_again(rows: Rows, seed: int, limit: int) -> None:
    assert interval(rows, seed=seed, limit=limit) == interval(rows, seed=seed, limit=limit)


@law
@given(segments, seeds, limits, st.integers(0, 30))
def test_segments_with_nothing_change_nothing(rows: Rows, seed: int, limit: int, at: int) -> None:
    padded = [*rows[:at], (0.0, 0.0), *rows[at:]]
    assert interval(padded, seed=seed, limit=limit) == interval(rows, seed=seed, limit=limit)


@law
@given(segments, seeds, limits, st.sampled_from([0.25, 2.0, 1024.0]))
def test_scales_with_the_unit(rows: Rows, seed: int, limit: int, factor: float) -> None:
    # Powers of two: exact, so nats to another unit is the same interval to the last bit.
    scaled = interval([(nats * factor, events) for nats, events in rows], seed=seed, limit=limit)
    found = interval(rows, seed=seed, limit=limit)
    tolerance = 1e-300  # below it, numbers are too small to halve exactly
    assert scaled.low == pytest.approx(found.low * factor, rel=1e-12, abs=tolerance)
    assert scaled.high == pytest.approx(found.high * factor, rel=1e-12, abs=tolerance)


@law
@given(st.lists(st.tuples(st.floats(-1e300, 1e300) | st.just(math.inf), counts), max_size=20), seeds, limits)
def test_never_nan(rows: Rows, seed: int, limit: int) -> None:
    nats = [row[0] for row in rows]
    events = [row[1] for row in rows]
    found = ratio_interval(nats, events, resamples=39, seed=seed, limit=limit)
    assert found is None or not (math.isnan(found.low) or math.isnan(found.high))
    assert found is None or found.low <= found.high
