"""Counting: every n-gram exactly, the same table for any number of threads, whatever size was foreseen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.reference import kernels as twin

from lmgauge._kernels import _native
from lmgauge.models.ngram.adjusted_counts import HISTOGRAM, adjust_counts
from lmgauge.models.ngram.counting import count_ngrams, estimate_types

Ids = NDArray[np.uint32]
tokens = st.lists(st.sampled_from([1, 2, 3, 4, 5, 6]), max_size=60)


def as_ids(values: list[int]) -> Ids:
    return np.array([1, *values], np.uint32)


@pytest.fixture(scope="module")
def text(data: Path) -> tuple[Ids, int]:
    """Ids of a real text, and the vocabulary's size."""
    known: dict[str, int] = {"<unk>": 0, "<s>": 1, "</s>": 2}
    lines = (data / "tinyshakespeare.txt").read_text(encoding="utf-8").split("\n")[:1200]
    ids, _, _ = twin.encode(lines, "whitespace", known, insert=True, bos=True, reserved="escape")
    return np.array(ids, np.uint32), len(known)


def assert_counted(ids: Ids, order: int, vocabulary: int, *, threads: int = 1, sizes: list[int] | None = None) -> None:
    counts = count_ngrams(ids, order, vocabulary, threads=threads, sizes=sizes)
    expected = twin.count(ids.tolist(), order)
    assert {(i,): n for i, n in enumerate(counts.unigrams.tolist()) if n} == expected[0]
    tables = twin.decode_tables(counts.tables)
    suffix_of = [dict(enumerate_slots(counts.tables, n)) for n in range(len(counts.tables))]
    for n, table in enumerate(tables, 2):
        assert {gram: first for gram, (first, _) in table.items()} == expected[n - 1]
        assert counts.types[n - 1] == len(expected[n - 1])
        for gram, (_, suffix) in table.items():
            assert gram[1:] == ((suffix,) if n == 2 else suffix_of[n - 3][suffix])
    assert int(counts.unigrams.sum()) == int(np.count_nonzero(ids != 1))


def enumerate_slots(tables: list[NDArray[np.uint64]], level: int) -> list[tuple[int, twin.Gram]]:
    """(slot, n-gram) of a table."""
    grams = list(twin.decode_tables(tables[: level + 1])[level])
    return list(zip(np.flatnonzero(tables[level][:, 0]).tolist(), grams, strict=True))


@given(tokens, st.integers(1, 5), st.integers(1, 5))
def test_counts_are_those_of_a_counter(values: list[int], order: int, threads: int) -> None:
    assert_counted(as_ids(values), order, 7, threads=threads)


@given(tokens, st.integers(2, 4), st.integers(1, 4), st.lists(st.integers(0, 12), min_size=3, max_size=3))
def test_sizes_foreseen_too_small_cost_time_only(values: list[int], order: int, threads: int, sizes: list[int]) -> None:
    assert_counted(as_ids(values), order, 7, threads=threads, sizes=sizes)


@pytest.mark.parametrize("sizes", [None, [0, 0, 0, 0], [100, 1000, 2000, 2000], [4000, 100, 6000, 100]], ids=str)
def test_real_text_and_threads(text: tuple[Ids, int], sizes: list[int] | None) -> None:
    ids, vocabulary = text
    assert_counted(ids, 3, vocabulary, sizes=None if sizes is None else sizes[:2])
    kept = None
    for threads in (1, 2, 3, 4, 5):
        counts = count_ngrams(ids, 5, vocabulary, threads=threads, sizes=sizes)
        found = ([table.tobytes() for table in counts.tables], counts.types)
        kept = kept or found
        assert found == kept


@pytest.mark.parametrize("fill", [0.93, 0.97, 0.99, 1.0])
def test_nearly_full_tables_spill_and_stay_exact(text: tuple[Ids, int], fill: float) -> None:
    """Regions overflow into the next one; where they may not, the count starts again with a larger table."""
    ids, vocabulary = text
    types = [len(grams) for grams in twin.count(ids.tolist(), 3)]
    sizes = [int(n * 0.6 * fill) for n in types[1:]]
    assert_counted(ids, 3, vocabulary, sizes=sizes)
    tables = [count_ngrams(ids, 3, vocabulary, threads=t, sizes=sizes).tables for t in (1, 2, 5)]
    for other in tables[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(tables[0], other, strict=True))


@pytest.mark.parametrize("distinct", [10, 1000, 30_000, 60_000, 200_000])
def test_sketch_is_near_the_truth(distinct: int) -> None:
    random = np.random.default_rng(distinct)
    ids = random.integers(3, 3 + int(distinct**0.5) * 3, 3 * distinct).astype(np.uint32)
    ids[random.random(len(ids)) < 0.05] = 1
    ids[0] = 1
    estimates = estimate_types(ids, 3, threads=2)
    assert estimates == estimate_types(ids, 3, threads=5)
    codes = ids.astype(np.uint64)
    inside = ids[1:] != 1
    pairs = len(np.unique((codes[:-1] << np.uint64(32) | codes[1:])[inside]))
    # 3 % and 64 are added on purpose: a table that is too small is counted twice
    assert 0.97 * pairs <= estimates[0] <= min(1.08 * pairs + 70, len(ids))


@given(
    tokens, st.integers(2, 4), st.booleans(), st.sampled_from([(), (0, 1), (0, 0, 1), (0, 1, 2), (0, 9)]), st.integers(1, 3)
)
def test_adjusted_counts_and_cut_offs(
    values: list[int], order: int, continuation: bool, cutoffs: tuple[int, ...], threads: int
) -> None:
    ids = as_ids(values)
    counts = adjust_counts(
        count_ngrams(ids, order, 7, threads=threads), continuation=continuation, cutoffs=cutoffs, threads=threads
    )
    raw = twin.count(ids.tolist(), order)
    adjusted = [Counter(grams) for grams in raw]
    if continuation:
        for n in range(order - 1):
            adjusted[n].update({gram: count - raw[n][gram] for gram, count in twin.continuations(raw[n + 1]).items()})
    unigrams = counts.unigrams.tolist()
    assert unigrams == [adjusted[0][(i,)] for i in range(7)]
    for n, histogram in enumerate(counts.counts_of_counts):
        expected = Counter(min(count, HISTOGRAM) for count in adjusted[n].values())
        assert histogram.tolist()[1:] == [expected[c] for c in range(1, HISTOGRAM + 1)]
    kept = [
        raw[n].keys() if not cutoffs else {g for g, c in raw[n].items() if c > cutoffs[min(n, len(cutoffs) - 1)]}
        for n in range(order)
    ]
    for n, table in enumerate(twin.decode_tables(counts.tables), 1):
        assert {gram: count for gram, (count, _) in table.items()} == adjusted[n]
        marks = counts.dropped[n - 1].tolist() or [0] * len(counts.tables[n - 1])
        used = np.flatnonzero(counts.tables[n - 1][:, 0]).tolist()
        assert {gram for gram, slot in zip(table, used, strict=True) if not marks[slot]} == set(kept[n])


def test_shapes_that_do_not_fit_are_refused() -> None:
    ids, none = np.ones(4, np.uint32), np.zeros(0, np.uint32)
    for table in (np.zeros((0, 2), np.uint64), np.zeros((6, 2), np.uint64)):
        with pytest.raises(ValueError):
            _native.count_level(ids, ids, none, table, (0, 1, 64), 10)
    good = np.zeros((8, 2), np.uint64)
    for share in ((1, 1, 64), (0, 1, 0)):
        with pytest.raises(ValueError):
            _native.count_level(ids, ids, none, good, share, 10)
    with pytest.raises(ValueError):
        _native.count_level(ids, ids[:2], none, good, (0, 1, 64), 10)
    with pytest.raises(ValueError):
        _native.add_continuations(good, 0, 9, none)
