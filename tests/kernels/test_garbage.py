"""What the kernels met when they were called by hand with garbage: each refuses it, or returns, and goes nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lmgauge._kernels import _native

U8, U32, U64, I32, I64, F32, F64 = np.uint8, np.uint32, np.uint64, np.int32, np.int64, np.float32, np.float64
EMPTY = np.zeros(0, U8)
DISCOUNTS = np.ones(1), np.ones(1, U64), 0
SAME, ONES = np.ones(3, U32), np.ones(3, F32)
FULL = np.full(8, 0xFFFFFFFF00000001, U64)
"""Slots of a hash table, none of which is empty."""


def encode(**changed: Any) -> Any:
    """Encode "a b" with a vocabulary of three words and one more, some of it changed."""
    parts: dict[str, Any] = {
        "slots": np.zeros(16, U64),
        "offsets": np.array([0, 5, 8, 12, 13]),
        "bytes": np.frombuffer(b"<unk><s></s>a" + bytes(8), U8),
        "mode": 0,
        "policy": 0,
        "state": np.array([0, -1, 0, 0, 4, -1, 0]),
    } | changed
    text = np.frombuffer(b"a b", U8), np.array([0]), np.array([3])
    vocabulary = parts["slots"], parts["offsets"], parts["bytes"]
    none = EMPTY, *(np.zeros(0, I64),) * 4
    options = parts["mode"], parts["policy"], True, True
    return _native.encode_segments(
        text, none, vocabulary, options, parts["state"], np.zeros(600, U32), np.zeros(0, I64), EMPTY
    )


def suffixes(**changed: Any) -> tuple[Any, ...]:
    """Return the suffix array of "1 1 1", some of it changed."""
    parts = {
        "ids": np.array([1, 1, 1], U32),
        "suffixes": np.array([2, 1, 0], I32),
        "ranks": np.array([2, 1, 0], I32),
        "common": np.array([0, 1, 2], I32),
        "minima": np.zeros(0, I32),
    } | changed
    return tuple(parts.values())


WINDOWS = 2, FULL, np.full(2, 0xFFFFFFFFFFFFFFFF, U64)
GARBAGE: dict[str, Callable[[], Any]] = {
    "a full vocabulary": lambda: encode(slots=np.full(16, 0xABCD00000001, U64)),
    "an unknown way of cutting": lambda: encode(mode=4),
    "a segment before the first": lambda: encode(state=np.array([-1, -1, 0, 0, 4, -1, 0])),
    "a place outside the segment": lambda: encode(state=np.array([0, 9, 0, 0, 4, -1, 0])),
    "no offsets": lambda: encode(offsets=np.zeros(0, I64)),
    "a vocabulary to index that is full": lambda: _native.index_vocabulary((FULL, np.zeros(9, I64), np.zeros(9, U8)), 3),
    "falling offsets": lambda: _native.index_vocabulary((np.zeros(8, U64), np.array([9, 1]), np.zeros(9, U8)), 1),
    "a full vocabulary to look into": lambda: _native.find_token((FULL, np.zeros(2, I64), np.zeros(9, U8)), np.zeros(3, U8)),
    "bits of registers": lambda: _native.sketch_distinct(np.ones(3, U32), 0, 3, 2, np.zeros(0, U8), 64),
    "a context outside its order": lambda: _native.sum_contexts((SAME, SAME, EMPTY), DISCOUNTS, np.zeros((1, 2), U64)),
    "too few marks": lambda: _native.sum_contexts((SAME, SAME, np.zeros(1, U8)), DISCOUNTS, np.zeros((8, 2), U64)),
    "a suffix outside the unigrams": lambda: _native.estimate_interpolated(
        (SAME, SAME, EMPTY), np.ones((8, 2), U64), DISCOUNTS, (np.full(3, 9, U32), np.ones(3, F32)), np.zeros(3, F32)
    ),
    "a probability that is none": lambda: _native.sum_lower(
        (SAME, SAME, EMPTY), (SAME, np.full(3, np.nan, F32)), np.zeros(8, U64), np.zeros(8, U32)
    ),
    "a row outside the counts": lambda: _native.count_rows(np.full(1, 9, U32), np.zeros(3, U32)),
    "sums of events that overflow": lambda: _native.sum_events(
        np.zeros(0), EMPTY, EMPTY, np.array([1 << 62] * 4), *(np.zeros(4, kind) for kind in (I64, U64, I64))
    ),
    "a slot outside the table below": lambda: _native.mark_parents(np.zeros((16, 16), U32), np.full(1, 80, U32)),
    "ranks outside the text": lambda: _native.common_prefixes(*(np.full(3, 7, kind) for kind in (U32, I32, I32, I32))),
    "a suffix outside the text": lambda: _native.index_windows(
        suffixes(suffixes=np.array([2, 99, -1], I32), common=np.zeros(3, I32)), 1, 0, np.zeros(8, U64), np.zeros(1, U64)
    ),
    "an index that is full": lambda: _native.index_windows(suffixes(), 2, 0, np.array(FULL), np.zeros(1, U64)),
    "windows that end nowhere": lambda: _native.follow_text(
        suffixes(), WINDOWS, np.ones(9, U32), 0, np.zeros(3, I32), np.zeros(4, I64)
    ),
    "a run outside the test": lambda: _native.finish_following(
        suffixes(), WINDOWS, np.zeros(3, I32), np.array([9, 9, 1 << 40, 2])
    ),
    "n-grams of 2^60 words": lambda: _native.follow_text(
        suffixes(), (1 << 60, *WINDOWS[1:]), np.ones(9, U32), 0, np.zeros(3, I32), np.zeros(4, I64)
    ),
    "numbers of n-grams without room": lambda: _native.number_ngrams(
        np.ones(3, U32), np.ones(3, U32), np.array(FULL), np.zeros(3, U32)
    ),
    "n-grams to mark in a full table": lambda: _native.mark_ngrams(np.full(3, 7, U32), [FULL], [np.zeros(8, U8)]),
    "a generator that stands still": lambda: _native.draw_counts(np.zeros(6, U64), np.zeros((2, 3), U8)),
    "a table of KenLM that is full": lambda: _native.fill_probing(
        np.full(48, 255, U8), np.ones(2, U64), np.ones(2, U32), 1, (0, 4)
    ),
    "rows that are larger than their output": lambda: _native.pack_rows([np.ones(9, U32)], [32], np.zeros(40, U8)),
    "an n-gram of KenLM whose suffix is outside": lambda: _native.combine_kenlm(
        np.zeros(2, U64), np.full(1, 2, U32), np.zeros(1, U32), np.zeros(1, U64)
    ),
    "an order that wraps around": lambda: _native.route_requests(
        np.ones(3, U32), (1 << 64) - 1, [EMPTY], [np.zeros(0, U32)]
    ),
    "words outside their data": lambda: _native.format_arpa_lines(
        np.zeros(1), np.zeros(0), np.zeros(1, U32), 1, np.array([5, -5]), np.zeros(3, U8)
    ),
    "an output that is an input": lambda: _native.number_ngrams(np.ones(3, U32), SAME, np.zeros(8, U64), SAME),
    "an odd address": lambda: _native.combine_kenlm(
        np.zeros(17, U8)[1:].view(U64), np.zeros(2, U32), np.zeros(2, U32), np.zeros(2, U64)
    ),
}


@pytest.mark.parametrize("call", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError):
        call()


def test_a_last_word_without_anything_behind_it_is_read_to_its_end() -> None:
    # The byte behind the data was read as well, which the sanitizers see.
    text = np.frombuffer(b"a", U8)
    vocabulary = np.zeros(16, U64), np.array([0, 5, 8, 12, 13]), np.array(np.frombuffer(b"<unk><s></s>a" + bytes(8), U8))
    _native.index_vocabulary(vocabulary, 4)
    ids, none = np.zeros(600, U32), np.zeros(0, I64)
    state = np.array([0, -1, 0, 0, 4, -1, 0])
    _native.encode_segments(
        (text, np.array([0]), np.array([1])),
        (EMPTY, *(none,) * 4),
        vocabulary,
        (0, 0, False, False),
        state,
        ids,
        none,
        EMPTY,
    )
    assert ids[: state[3]].tolist() == [3]


def test_sums_that_would_be_out_of_range_are_bad_rows() -> None:
    rows = 1 << 12
    high, low, zeros = np.zeros(1, I64), np.zeros(1, U64), np.zeros(1, I64)
    *_, bad = _native.sum_events(np.full(rows, -1e12), np.zeros(rows, U8), EMPTY, np.array([rows]), high, low, zeros)
    assert 0 < bad < rows
    many = np.full(rows, 1), *(np.zeros(rows, kind) for kind in (I64, U64, I64))
    *_, bad = _native.sum_events(np.full(rows, -1e12), np.zeros(rows, U8), EMPTY, *many)
    assert 0 < bad < rows


def test_coins_and_runs_wrap_around_where_no_number_fits() -> None:
    sums = np.zeros((1, 1), I64)
    _native.coin_sums(np.full(3, 0xFFFFFFFFFFFFFFFF, U64), 0, np.full((2, 1), np.iinfo(I64).max), sums)
    assert sums.tolist() == [[-2]]
    longest = np.full(3, np.iinfo(I32).min, I32)
    _native.spread_runs(suffixes(), 1, longest, np.zeros(3, I32))
    assert longest.tolist() == [np.iinfo(I32).min] * 3
