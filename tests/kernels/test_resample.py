"""Resampling kernels against a twin in plain Python integers: bit for bit, whatever the width, start and thread count."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import resample as twin

from lmgauge._kernels import _native

finite = st.floats(-1e6, 1e6)
seeds = st.integers(0, twin.MASK)


def tossed(values: np.ndarray, resamples: int, seed: int, first: int = 0) -> np.ndarray:
    sums = np.full(resamples, np.nan)
    _native.sign_flip_sums(values, seed, first, sums)
    return sums


def test_the_twin_s_stream_is_splitmix64() -> None:
    """State 1234567 gives these numbers: the test vector of Rosetta Code, "Pseudo-random numbers/Splitmix64"."""
    stream = twin.Stream(0, 0)
    stream.state = 1234567
    assert [stream.next() for _ in range(5)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@given(st.lists(finite, min_size=1, max_size=200), seeds)
def test_sign_flip_sums_are_the_twin_s(values: list[float], seed: int) -> None:
    assert tossed(np.array(values), 5, seed).tolist() == twin.sign_flip_sums(values, 5, seed)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 200])
def test_sign_flip_sums_at_the_edges_of_words_and_lanes(size: int) -> None:
    values = np.random.default_rng(size).normal(size=size)
    assert tossed(values, 20, 7).tolist() == twin.sign_flip_sums(values.tolist(), 20, 7)


@settings(max_examples=30)
@given(seeds, st.integers(0, 40))
def test_a_resample_does_not_depend_on_where_the_call_starts(seed: int, first: int) -> None:
    """So resamples may be shared among any number of threads."""
    column = np.random.default_rng(3).normal(size=13)
    assert np.array_equal(tossed(column, 45, seed)[first:], tossed(column, 45 - first, seed, first))


def test_seeds_and_resamples_are_different_streams() -> None:
    values = np.random.default_rng(5).normal(size=100)
    sums = [tossed(values, 50, seed) for seed in range(4)]
    assert len({float(s) for part in sums for s in part}) == 200


def test_signs_are_fair_and_independent() -> None:
    values = 2.0 ** -np.arange(1, 17)  # every assignment of signs has a sum of its own
    sums = tossed(values, 20_000, 3)
    whole = values.sum()
    signs = np.array([[int(bit) for bit in f"{round((whole - s) / 2 * 2**16):016b}"] for s in sums])
    assert np.abs(signs.mean(axis=0) - 0.5).max() < 5 * 0.5 / math.sqrt(20_000)
    correlations = np.corrcoef(signs, rowvar=False) - np.eye(16)
    assert np.abs(correlations).max() < 5 / math.sqrt(20_000)
