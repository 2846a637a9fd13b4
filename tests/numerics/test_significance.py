"""P-values adjusted for several tests: as published, and as R adjusts them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import resample as twin

from lmgauge.numerics.significance import holm, holm_adjusted


def test_holm_as_published() -> None:
    """Four p-values worked through in Wikipedia's "Holm-Bonferroni method", Example (0.01, 0.04, 0.03, 0.005)."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.05])), max_size=12))
def test_holm_is_r_s(p_values: list[float]) -> None:
    assert holm(p_values) == twin.holm(p_values)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=8))
def test_holm_passes_over_what_was_not_tested(p_values: list[float | None]) -> None:
    known = [p for p in p_values if p is not None]
    adjusted = holm(p_values)
    assert [p is None for p in adjusted] == [p is None for p in p_values]
    assert [p for p in adjusted if p is not None] == twin.holm(known)
    assert all(p is None or q is None or p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))


@dataclass(frozen=True)
class Outcome:
    """A result of a test."""

    p_value: float | None
    p_value_holm: float | None = None


def test_results_are_adjusted_for_their_number() -> None:
    assert holm_adjusted(Outcome(p) for p in (0.01, None, 0.04)) == (Outcome(0.01, 0.02), Outcome(None), Outcome(0.04, 0.04))
