"""Confidence sequences: the worked example, the evidence itself at the ends, and how often they err at any look."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lmgauge.numerics.sequential import FEWEST, confidence_sequence


def evidence(differences: list[float]) -> float:
    """E_n of the docstring, from the definition."""
    n = len(differences)
    share = math.fsum(differences) ** 2 / (n * math.fsum(d * d for d in differences))
    return (1 + n) ** -0.5 * (1 - share * n / (1 + n)) ** (-n / 2)


def test_three_documents() -> None:
    low, high = confidence_sequence(np.array([3.0, 4.0, 5.0]), np.ones(3), 0.5, fewest=1)
    assert (low[2], high[2]) == pytest.approx((2.345, 5.655), abs=5e-4)
    assert math.isinf(low[0])
    assert math.isinf(high[1])


def test_the_ends_are_where_the_evidence_reaches_its_bound() -> None:
    generator = np.random.default_rng(0)
    x, size = generator.normal(2, 3, 30), generator.integers(1, 20, 30).astype(float)
    low, high = confidence_sequence(x, size, 0.05)
    assert np.isinf(low[: FEWEST - 1]).all()
    for n in (12, 20, 30):
        for end in (low[n - 1], high[n - 1]):
            assert evidence((x - end * size)[:n].tolist()) == pytest.approx(20, rel=1e-6)
        assert evidence((x - (low[n - 1] + high[n - 1]) / 2 * size)[:n].tolist()) < 20


def test_signs_of_few_documents_by_enumeration() -> None:
    """All 2^11 signs of eleven equal differences: at most 5 % ever exclude 0, at any look."""
    errs = 0
    for signs in itertools.product((-1.0, 1.0), repeat=11):
        low, high = confidence_sequence(np.array(signs), np.ones(11), 0.05)
        errs += bool(((low > 0) | (high < 0)).any())
    assert 0 < errs / 2**11 <= 0.05


def test_false_alarms_at_any_look_and_the_peeking_that_they_replace() -> None:
    generator = np.random.default_rng(1)
    sizes = generator.lognormal(0, 1, (300, 200))
    noise = generator.normal(0, 1, sizes.shape) * sizes
    errs = [((low > 0) | (high < 0)).any() for low, high in map(confidence_sequence, noise, sizes, itertools.repeat(0.05))]
    assert sum(errs) <= 0.05 * 300
    effect = noise + 0.8 * sizes
    decided = [np.argmax(confidence_sequence(x, size, 0.05)[0] > 0) for x, size in zip(effect, sizes, strict=True)]
    assert 0 < np.median(decided) < 70
