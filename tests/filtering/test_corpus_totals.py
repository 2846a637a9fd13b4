"""Sums over all documents: exact, whatever the order and the parts, and the figures made of them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from lmgauge.base.decoding import decode
from lmgauge.base.errors import InputError
from lmgauge.base.result_list import plain_values
from lmgauge.filtering.documents import CorpusTotals
from lmgauge.models.segment_scores import SegmentTotals
from lmgauge.numerics.exact import SCALE, exact_costs


def totals_of(nats: np.ndarray, zeros: int = 0) -> SegmentTotals:
    counts = (np.full(len(nats), n) for n in (7, zeros, 2, 1))
    return SegmentTotals(nats, *counts)


def test_sums_of_parts_are_those_of_the_whole_in_any_order() -> None:
    draw = np.random.default_rng(1)
    nats = -np.exp(draw.uniform(-30, 20, 1000))
    sizes = draw.integers(0, 10**6, 1000)
    whole = CorpusTotals.of(totals_of(nats), sizes, np.ones(1000, bool))
    order = draw.permutation(1000)
    parts = np.array_split(order, 7)
    summed = sum((CorpusTotals.of(totals_of(nats[p]), sizes[p], np.ones(len(p), bool)) for p in parts), CorpusTotals())
    assert summed == whole
    assert (whole.documents, whole.tokens, whole.unseen, whole.ends) == (1000, 7000, 2000, 1000)


def test_costs_are_exact_to_a_multiple_of_2_to_the_minus_80() -> None:
    values = np.exp(np.random.default_rng(2).uniform(-20, 30, 500))
    exact = sum(math.floor(Fraction(value) * SCALE) for value in values.tolist())
    assert exact_costs(values) == exact
    assert exact_costs(np.zeros(0)) == 0


def test_only_documents_that_are_chosen_count() -> None:
    chosen = np.array([True, False])
    one = CorpusTotals.of(totals_of(np.array([-7.0, -100.0])), np.array([10, 20]), chosen)
    assert one == CorpusTotals(documents=1, bytes=10, tokens=7, unseen=2, ends=1, cost=7 << 80)
    assert one.perplexity == pytest.approx(math.e)
    assert one.bits_per_byte == pytest.approx(0.7 / math.log(2))
    assert one.unseen_share == pytest.approx(2 / 6)


def test_an_impossible_event_makes_figures_infinite() -> None:
    one = CorpusTotals.of(totals_of(np.array([-7.0]), zeros=1), np.array([10]), np.ones(1, bool))
    assert (one.perplexity, one.bits, one.bits_per_byte) == (math.inf, math.inf, math.inf)


def test_nothing_has_no_figures() -> None:
    nothing = CorpusTotals()
    assert (nothing.perplexity, nothing.bits_per_byte, nothing.unseen_share, nothing.bits) == (None, None, None, 0.0)


def test_a_perplexity_beyond_all_numbers_is_infinite() -> None:
    assert CorpusTotals(tokens=1, cost=710 << 80).perplexity == math.inf


def test_sums_come_back_from_plain_values() -> None:
    one = CorpusTotals(3, 20, 9, 0, 2, 3, 123 << 70)
    assert decode(plain_values(one), CorpusTotals, "x", "sums", "again") == one


@pytest.mark.parametrize("damage", [{"cost": -1}, {"tokens": 1.5}, {"bytes": True}])
def test_damaged_values_are_refused(damage: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(damage))):
        decode(plain_values(CorpusTotals()) | damage, CorpusTotals, "x", "sums", "again")
