"""Packed tables against dictionaries, in every shape; and whatever bytes they hold, nothing outside them is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import packed_tables as twin

from lmgauge._kernels import _native
from lmgauge.base.errors import LmgaugeError
from lmgauge.models.ngram import packed_tables, packing
from lmgauge.models.ngram.packed_tables import NO_SLOT, PackedTable, RepeatedNgramsError
from lmgauge.models.ngram.packing import TableBuilder

Pairs = list[tuple[int, int]]


def columns(pairs: Pairs, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    random = np.random.default_rng(seed)
    grams = np.array(pairs, np.uint32).reshape(-1, 2)
    probabilities = random.uniform(-1, 1, len(grams)).astype(np.float32)
    weights = random.choice([0.25, 0.5, 1.0, 3.0], len(grams)).astype(np.float32)
    return grams[:, 0], grams[:, 1], probabilities, weights


def built(vocabulary: int, *orders: Pairs, order: int | None = None, threads: int = 1, seed: int = 0) -> TableBuilder:
    """Tables of n-grams named by the place of their parent among those of the order below."""
    builder = TableBuilder(vocabulary, order or len(orders) + 1, threads)
    below: Any = np.arange(vocabulary, dtype=np.uint32)
    for pairs in orders:
        parents, words, *values = columns(pairs, seed)
        builder.add(below[parents], words, *values)
        below = builder.tables[-1].find(below[parents], words)
    return builder


pairs_below = st.integers(1, 40).flatmap(
    lambda size: st.tuples(st.just(size), st.sets(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))).map(list))
)


@given(pairs_below, st.booleans())
def test_what_went_in_comes_out(shape: tuple[int, Pairs], last: bool) -> None:
    size, pairs = shape
    parents, words, probabilities, weights = columns(pairs)
    builder = TableBuilder(size, 2 if last else 3)
    builder.add(parents, words, probabilities, weights)
    table = builder.tables[0]
    slots = table.find(parents, words)
    entries = table.entries()
    order = np.argsort(slots)
    assert entries.slots.tolist() == slots[order].tolist() == sorted(set(slots.tolist()))
    assert entries.parents.tolist() == parents[order].tolist()
    assert entries.words.tolist() == words[order].tolist()
    assert entries.probabilities.tolist() == probabilities[order].tolist()
    assert entries.weights.tolist() == ([1.0] * len(pairs) if last else weights[order].tolist())
    assert table.count() == (len(pairs), int(np.count_nonzero(probabilities < 0)))
    assert table.check()[1] is None
    expected = {slot: (p, w, *values) for slot, p, w, *values in zip(*(a.tolist() for a in (
        slots, parents, words, probabilities, np.ones(len(pairs)) if last else np.where(weights == 1, -1, weights)
    )), strict=True)}  # fmt: skip
    assert twin.entries(table) == expected
    every = np.array([(a, b) for a in range(size) for b in range(size)], np.uint32)
    at = dict(zip(pairs, slots.tolist(), strict=True))
    found = table.find(every[:, 0], every[:, 1])
    assert found.tolist() == [at.get((a, b), NO_SLOT) for a, b in every.tolist()]
    assert table.values(slots)[0].tolist() == probabilities.tolist()
    assert table.find(np.full(1, NO_SLOT), np.zeros(1)).tolist() == [NO_SLOT]


def many(count: int, vocabulary: int, seed: int = 1) -> Pairs:
    codes = np.random.default_rng(seed).choice(vocabulary**2, count, replace=False)
    return [(int(code) // vocabulary, int(code) % vocabulary) for code in codes]


def test_the_bytes_depend_on_nothing_but_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many n-grams as make several buckets, in different orders, by one thread and several."""
    monkeypatch.setattr(packing, "_QUICK_BUCKET", 3000)
    pairs = many(20_000, 500)
    parents, words, probabilities, weights = columns(pairs)
    seen = set()
    for threads, order in ((1, None), (2, 1), (3, 2)):
        shuffled = np.random.default_rng(order).permutation(len(pairs)) if order else np.arange(len(pairs))
        builder = TableBuilder(500, 2, threads)
        builder.add(parents[shuffled], words[shuffled], probabilities[shuffled], weights[shuffled])
        seen.add(builder.tables[0].lines.tobytes())
    assert len(seen) == 1


@pytest.mark.parametrize(("last", "most"), [(False, 17), (True, 12)])
def test_the_size_of_a_table(last: bool, most: float) -> None:
    builder = TableBuilder(2000, 2 if last else 3)
    builder.add(*columns(many(100_000, 2000)))
    assert builder.tables[0].lines.nbytes / 100_000 < most
    assert builder.tables[0].lines.ctypes.data % 64 == 0


def test_buckets_without_room_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = many(9000, 300)
    whole = built(300, pairs).tables[0].lines
    monkeypatch.setattr(packing, "_QUICK_BUCKET", 64)  # more n-grams than have a place in some of them
    assert np.array_equal(built(300, pairs).tables[0].lines, whole)


def test_a_table_too_full_gets_more_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = many(3000, 300)
    monkeypatch.setattr(packed_tables, "_FILLED", 1.2)
    builder = built(300, pairs)
    assert builder.tables[0].count()[0] == 3000
    assert builder.tables[0].check()[1] is None


def test_few_ngrams_of_many_parents_get_lines_enough_to_tell_them_apart() -> None:
    """2^20 words and 2^20 slots: the key has 28 bits of 40, so that 2^13 lines are the fewest."""
    size = 2**20
    random = np.random.default_rng(3)
    pairs = random.integers(0, size, (1000, 2)).astype(np.uint32)
    builder = TableBuilder(size, 2)
    builder.add(pairs[:, 0], pairs[:, 1], np.full(1000, 0.5), np.ones(1000))
    table = builder.tables[0]
    assert len(table.lines) >= 2**13
    assert (table.find(pairs[:, 0], pairs[:, 1]) < table.slots).all()
    entries = table.entries()
    assert sorted(zip(entries.parents.tolist(), entries.words.tolist(), strict=True)) == sorted(map(tuple, pairs.tolist()))
    others = random.integers(0, size, (200_000, 2)).astype(np.uint32)
    assert (table.find(others[:, 0], others[:, 1]) == NO_SLOT).sum() >= 199_999


def test_what_something_longer_begins_with_is_marked() -> None:
    """-1 stands for the weight 1 of an n-gram that nothing longer begins with."""
    builder = TableBuilder(6, 3)
    parents, words = np.array([3, 3, 4, 5]), np.array([4, 5, 5, 3])
    builder.add(parents, words, np.full(4, 0.25), np.array([1.0, 1.0, 0.5, 0.25]))
    slots = builder.tables[0].find(parents, words)
    stored = {slot: weight for slot, (_, _, _, weight) in twin.entries(builder.tables[0]).items()}
    assert [stored[slot] for slot in slots.tolist()] == [-1, -1, 0.5, 0.25]
    builder.add(slots[[0, 2]], np.array([3, 3]), np.full(2, 0.5), np.ones(2))
    stored = {slot: weight for slot, (_, _, _, weight) in twin.entries(builder.tables[0]).items()}
    assert [stored[slot] for slot in slots.tolist()] == [1, -1, 0.5, 0.25]


def test_an_ngram_that_comes_twice_is_an_error() -> None:
    for threads in (1, 2):
        with pytest.raises(RepeatedNgramsError, match="3 n-grams came twice"):
            built(9, [(1, 2), (3, 4), (1, 2), (3, 4), (1, 2)], threads=threads)
    with pytest.raises(RepeatedNgramsError, match="299 n-grams came twice"):  # too many for the places of one home
        built(9, [(1, 2)] * 300)


@pytest.mark.parametrize("column", [0, 1])
def test_what_is_out_of_range_is_refused(column: int) -> None:
    values = columns([(1, 2), (3, 4)])
    values[column][1] = 9
    with pytest.raises(LmgaugeError, match="do not belong together"):
        TableBuilder(9, 2).add(*values)


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_table_is_noticed_or_harmless(data: st.DataObject) -> None:
    """Whatever the bytes: what passes the check has parents and words in range, and no search leaves the table."""
    last = data.draw(st.booleans())
    builder = built(12, many(60, 12), order=2 if last else 3)
    table = builder.tables[0]
    right, _ = table.check()
    lines = table.lines.copy()
    flat = lines.reshape(-1)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, flat.size - 1))
        flat[at] = data.draw(
            st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 600), st.sampled_from([0x7FC00000, 0xBF800000]))
        )
    changed = PackedTable(lines, 12, 12, last)
    checksum, bad = changed.check()
    assert checksum != right or np.array_equal(lines, table.lines)
    every = np.array([(a, b) for a in range(12) for b in range(12)], np.uint32)
    found = changed.find(every[:, 0], every[:, 1])
    assert (found[found != NO_SLOT] < changed.slots).all()
    changed.count()
    if bad is None:
        entries = changed.entries()
        assert (entries.parents < 12).all()
        assert (entries.words < 12).all()
        assert (np.abs(entries.probabilities) <= 1).all()
        assert (entries.weights >= 0).all()


def test_shapes_that_do_not_fit_are_refused() -> None:
    table = built(9, [(1, 2), (3, 4)]).tables[0]
    lines, parents, words, last = table.kernel
    slots = np.zeros(1, np.uint32)
    for wrong in ((lines[:15].copy(), parents, words, last), (lines, 2**31, 2**31, last), (lines, 2**32, 9, last)):
        with pytest.raises(ValueError, match="a table too small"):
            _native.find_ngrams(wrong, slots, slots, slots.copy())
    with pytest.raises(ValueError, match="shapes"):
        _native.find_ngrams(table.kernel, slots, slots, np.zeros(2, np.uint32))
    with pytest.raises(ValueError, match="slot outside"):
        table.values(np.array([table.slots]))
    with pytest.raises(ValueError, match="range"):
        _native.check_lines(table.kernel, 0, len(lines) + 1)
