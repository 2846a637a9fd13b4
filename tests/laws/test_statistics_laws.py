"""Laws of the intervals over random input: what may not change them does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgauge.numerics.intervals import Interval, ratio_interval, spread

law = settings(deadline=None)

Rows = list[tuple[float, float]]
counts = st.just(0.0) | st.floats(1e-3, 1e9)
segments = st.lists(st.tuples(st.floats(0.0, 1e6), st.integers(1, 1000).map(float)), min_size=6, max_size=80)
known = st.booleans()


def interval(rows: Rows, documents: list[int] | None = None) -> Interval:
    nats, events = zip(*rows, strict=True)
    found = ratio_interval(nats, events, None if documents is None else np.array(documents))
    assert found is not None
    return found


def numbered(rows: Rows, known: bool, lines: int = 3) -> list[int] | None:
    return [i // lines for i in range(len(rows))] if known else None


@law
@given(segments, known)
def test_lies_about_the_ratio(rows: Rows, known: bool) -> None:
    found = interval(rows, numbered(rows, known))
    total = sum(nats for nats, _ in rows) / sum(events for _, events in rows)
    slack = 1e-9 * (1 + total)
    assert 0.0 <= found.low <= total + slack
    assert found.high - total >= total - found.low - slack


@law
@given(segments, known)
def test_the_same_again(rows: Rows, known: bool) -> None:
    assert interval(rows, numbered(rows, known)) == interval(rows, numbered(rows, known))


@law
@given(segments, st.integers(0, 80))
def test_segments_with_nothing_change_nothing(rows: Rows, at: int) -> None:
    padded = [*rows[:at], (0.0, 0.0), *rows[at:]]
    assert interval(padded) == interval(rows)


@law
@given(segments, known, st.sampled_from([0.25, 2.0, 1024.0]))
def test_scales_with_the_unit(rows: Rows, known: bool, factor: float) -> None:
    scaled = interval([(nats * factor, events) for nats, events in rows], numbered(rows, known))
    found = interval(rows, numbered(rows, known))
    tolerance = 1e-9 * (abs(found.high) + 1e-290)
    assert scaled.low == pytest.approx(found.low * factor, rel=1e-9, abs=tolerance * factor)
    assert scaled.high == pytest.approx(found.high * factor, rel=1e-9, abs=tolerance * factor)


@law
@given(segments, st.randoms(use_true_random=False))
def test_the_order_of_known_units_changes_nothing(rows: Rows, shuffled: object) -> None:
    documents = numbered(rows, True)
    assert documents is not None
    together = list(zip(rows, documents, strict=True))
    shuffled.shuffle(together)  # type: ignore[attr-defined]
    again = interval([row for row, _ in together], [document for _, document in together])
    found = interval(rows, documents)
    assert (again.low, again.high) == pytest.approx((found.low, found.high), rel=1e-6, abs=1e-9 * (1 + found.high))


@law
@given(segments)
def test_unknown_units_are_never_surer_than_independent_segments(rows: Rows) -> None:
    unknown, independent = interval(rows), interval(rows, list(range(len(rows))))
    slack = 1e-9 * (1 + independent.high)
    assert unknown.high - unknown.low >= independent.high - independent.low - slack
    assert unknown.alike >= 1.0


@law
@given(st.lists(st.tuples(st.floats(-1e300, 1e300) | st.just(math.inf), counts), max_size=20), known)
def test_never_nan(rows: Rows, known: bool) -> None:
    nats, events = [row[0] for row in rows], [row[1] for row in rows]
    documents = numbered(rows, known)
    with np.errstate(over="ignore", invalid="ignore"):
        found = ratio_interval(nats, events, None if documents is None else np.array(documents, np.int64))
    assert found is None or not (math.isnan(found.low) or math.isnan(found.high))
    assert found is None or found.low <= found.high


@law
@given(st.lists(st.tuples(st.floats(-100, 100), st.integers(1, 50).map(float)), min_size=6, max_size=60))
def test_the_interval_and_the_test_agree(rows: Rows) -> None:
    """p < 0.05 only where the 95 % interval does not hold 0."""
    found = spread(np.array([row[0] for row in rows]), np.array([row[1] for row in rows]))
    assert found is not None
    if found.p_value < 0.0499:
        interval = found.interval()
        assert not interval.low <= 0.0 <= interval.high
