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


def drawn(values: np.ndarray, resamples: int, seed: int, first: int = 0) -> np.ndarray:
    sums = np.full((resamples, values.shape[1]), np.nan)
    _native.bootstrap_sums(values, seed, first, sums)
    return sums


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


@given(st.integers(1, 6), st.integers(1, 20), seeds, st.data())
def test_bootstrap_sums_are_the_twin_s(width: int, rows: int, seed: int, data: st.DataObject) -> None:
    table = data.draw(st.lists(st.lists(finite, min_size=width, max_size=width), min_size=rows, max_size=rows))
    assert drawn(np.array(table), 5, seed).tolist() == twin.bootstrap_sums(table, 5, seed)


@given(st.lists(finite, min_size=1, max_size=200), seeds)
def test_sign_flip_sums_are_the_twin_s(values: list[float], seed: int) -> None:
    assert tossed(np.array(values), 5, seed).tolist() == twin.sign_flip_sums(values, 5, seed)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 200])
def test_sign_flip_sums_at_the_edges_of_words_and_lanes(size: int) -> None:
    values = np.random.default_rng(size).normal(size=size)
    assert tossed(values, 20, 7).tolist() == twin.sign_flip_sums(values.tolist(), 20, 7)


@settings(max_examples=30)
@given(seeds, st.integers(0, 40), st.integers(1, 6))
def test_a_resample_does_not_depend_on_where_the_call_starts(seed: int, first: int, width: int) -> None:
    """So resamples may be shared among any number of threads."""
    values = np.random.default_rng(3).normal(size=(13, width))
    assert np.array_equal(drawn(values, 45, seed)[first:], drawn(values, 45 - first, seed, first))
    column = np.ascontiguousarray(values[:, 0])
    assert np.array_equal(tossed(column, 45, seed)[first:], tossed(column, 45 - first, seed, first))


def test_seeds_and_resamples_are_different_streams() -> None:
    values = np.random.default_rng(5).normal(size=100)
    sums = [tossed(values, 50, seed) for seed in range(4)]
    assert len({float(s) for part in sums for s in part}) == 200


def test_rows_are_drawn_evenly() -> None:
    """100 rows, 2,000 resamples: each row's count is binomial, sd 44 or so; five of them are never left by chance."""
    sums = drawn(np.eye(8)[np.arange(96) % 8], 2000, 11)
    assert np.array_equal(sums.sum(axis=1), np.full(2000, 96.0))
    counts = sums.sum(axis=0)
    assert np.abs(counts - 24_000).max() < 5 * math.sqrt(192_000 / 8 * 7 / 8)
    # and within a resample as a multinomial: variance n p (1 - p)
    assert sums.var(axis=0).mean() == pytest.approx(96 / 8 * 7 / 8, rel=0.05)


def test_signs_are_fair_and_independent() -> None:
    values = 2.0 ** -np.arange(1, 17)  # every assignment of signs has a sum of its own
    sums = tossed(values, 20_000, 3)
    whole = values.sum()
    signs = np.array([[int(bit) for bit in f"{round((whole - s) / 2 * 2**16):016b}"] for s in sums])
    assert np.abs(signs.mean(axis=0) - 0.5).max() < 5 * 0.5 / math.sqrt(20_000)
    correlations = np.corrcoef(signs, rowvar=False) - np.eye(16)
    assert np.abs(correlations).max() < 5 / math.sqrt(20_000)


@pytest.mark.parametrize(
    ("shape", "out"), [((3, 0), (2, 0)), ((3, 2), (2, 3)), ((3, 1000), (2, 1000))], ids=["none", "unlike", "wide"]
)
def test_shapes_are_checked(shape: tuple[int, int], out: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="columns"):
        _native.bootstrap_sums(np.zeros(shape), 1, 0, np.zeros(out))
