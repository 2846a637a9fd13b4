"""The kernels behind overlap, against sorting slices and comparing every pair of positions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lmgauge._kernels import _native
from lmgauge.text.overlap.find import SuffixIndex
from lmgauge.text.vocabulary import EOS, UNK

NONE = 0xFFFFFFFF
IDS = st.lists(st.integers(1, 4), min_size=1, max_size=60)


def index_of(ids: list[int]) -> SuffixIndex:
    return SuffixIndex(np.array(ids, np.uint32), max(ids, default=0) + 1, EOS)


@settings(max_examples=300)
@given(st.lists(st.integers(0, 3), max_size=80) | st.lists(st.integers(0, 200), max_size=40))
def test_suffixes_are_sorted(ids: list[int]) -> None:
    found = _native.sort_suffixes(np.array(ids, np.uint32), 201)
    assert found.dtype == np.int32
    assert found.tolist() == sorted(range(len(ids)), key=lambda i: ids[i:])


def test_suffixes_of_long_repetitive_texts_are_sorted() -> None:
    a, b = [1], [1, 2]
    while len(b) < 20_000:  # Fibonacci words: as many repeats as a text can have
        a, b = b, b + a
    for ids in (b, [3] * 20_000, list(range(20_000, 0, -1)), [1, 2] * 10_000):
        suffixes, common = index_of(ids).arrays[1], index_of(ids).arrays[3]
        text = np.array(ids)
        assert sorted(suffixes.tolist()) == list(range(len(ids)))
        for k in range(1, len(ids), 97):
            x, y, length = int(suffixes[k - 1]), int(suffixes[k]), int(common[k])
            assert (text[x : x + length] == text[y : y + length]).all()
            assert x + length == len(ids) or text[x + length] < text[y + length]


@given(IDS)
def test_common_prefixes_and_their_minima(ids: list[int]) -> None:
    ids = ids * 5  # more than 64 entries: a level of minima
    _, suffixes, _, common, minima = index_of(ids).arrays
    for k in range(1, len(ids)):
        a, b = ids[suffixes[k - 1] :], ids[suffixes[k] :]
        length = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        assert common[k] == length
    expected, level = [], common.tolist()
    while len(level) > 64:
        level = [min(level[i : i + 64]) for i in range(0, len(level), 64)]
        expected += level
    assert minima.tolist() == expected


def follow(index: SuffixIndex, n: int, parts: list[list[int]]) -> tuple[NDArray[np.int32], dict[int, int]]:
    """Longest runs by test position, and the training position kept for each that begins one."""
    longest, state, tail = np.zeros(len(index.arrays[0]), np.int32), np.zeros(4, np.int64), np.zeros(0, np.uint32)
    windows, places = index.windows(n), {}
    for part in parts:
        ids = np.concatenate((tail, np.array(part, np.uint32)))
        found = _native.follow_text(index.arrays, windows, ids, len(tail), longest, state)
        places |= dict(found.reshape(-1, 2).tolist())
        tail = ids[max(0, len(ids) - n + 1) :]
    places |= dict(_native.finish_following(index.arrays, windows, longest, state).reshape(-1, 2).tolist())
    origin = np.arange(len(longest), dtype=np.int32)
    _native.spread_runs(index.arrays, n, longest, origin)
    begins = [p for p in range(len(longest)) if longest[p] and (p == 0 or longest[p - 1] != longest[p] + 1)]
    return longest, {p: places[int(origin[p])] for p in begins}


# Long alike stretches with single changes: many runs that end within each other.
@st.composite
def alike(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    base = draw(st.lists(st.sampled_from([1, 3, 4]), min_size=1, max_size=25)) * draw(st.integers(1, 4))
    other = list(base)
    for place, value in draw(st.lists(st.tuples(st.integers(0, 99), st.sampled_from([0, 1, 3, 4, 5])), max_size=8)):
        other[place % len(other)] = value
    cut = draw(st.integers(0, len(other)))
    return base, (other[cut:] + other[:cut] + other) if draw(st.booleans()) else other


@settings(max_examples=500)
@given(alike(), st.integers(1, 6), st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_follows_every_run(texts: tuple[list[int], list[int]], n: int, cuts: list[int]) -> None:
    test, train = texts
    test = [*test, EOS]
    parts, begin, k = [], 0, 0
    while begin < len(train):
        parts.append(train[begin : begin + cuts[k % len(cuts)]])
        begin, k = begin + cuts[k % len(cuts)], k + 1
    longest, places = follow(index_of(test), n, parts)

    def common(p: int, q: int) -> int:
        length = 0
        while p + length < len(test) and q + length < len(train) and test[p + length] == train[q + length]:
            length += 1
        return length

    expected = [max((common(p, q) for q in range(len(train))), default=0) for p in range(len(test))]
    assert longest.tolist() == [length if length >= n else 0 for length in expected]
    for p, q in places.items():
        assert common(p, q) == longest[p]


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_equal_segments_have_equal_hashes_and_others_do_not(segments: list[bytes]) -> None:
    data = np.frombuffer(b"".join(segments) + b"rest", np.uint8)
    ends = np.cumsum([len(s) for s in segments]).astype(np.int64)
    starts = ends - [len(s) for s in segments]
    hashes = np.zeros(len(segments), np.uint64)
    _native.hash_segments(data, starts.astype(np.int64), ends, hashes)
    assert [[a == b for a in segments] for b in segments] == [[a == b for a in hashes.tolist()] for b in hashes.tolist()]


@given(st.lists(st.sampled_from([UNK, EOS, 3, 4, 5]), max_size=200), st.lists(st.sampled_from([EOS, 3, 4, 5]), max_size=60))
def test_marks_the_ngrams_of_every_order(train: list[int], test: list[int]) -> None:
    ids = np.array(test, np.uint32)
    numbers = [np.where(ids != EOS, ids, NONE).astype(np.uint32)]
    keys = []
    for _ in range(2):
        keys.append(np.zeros(len(ids) + 8, np.uint64))
        numbers.append(np.zeros(len(ids), np.uint32))
        _native.number_ngrams(ids, numbers[-2], keys[-1], numbers[-1])
    seen = [np.zeros(len(table), np.uint8) for table in keys]
    _native.mark_ngrams(np.array(train, np.uint32), keys, seen)
    for order, number, flags in zip((2, 3), numbers[1:], seen, strict=True):
        known = {tuple(train[i : i + order]) for i in range(len(train) - order + 1)}
        for i in range(len(test)):
            gram = tuple(test[max(0, i - order + 1) : i + 1])
            if len(gram) < order or EOS in gram:
                assert number[i] == NONE
            else:
                assert flags[number[i]] == (gram in known)
        assert flags.sum() == len(known & {tuple(test[i : i + order]) for i in range(len(test) - order + 1)} - {
            gram for gram in known if EOS in gram or UNK in gram
        })  # fmt: skip


def test_wrong_shapes_are_refused() -> None:
    index = index_of([3, 4, EOS])
    windows = index.windows(2)
    ids, state, longest = np.zeros(3, np.uint32), np.zeros(4, np.int64), np.zeros(3, np.int32)
    no_flags = np.zeros(0, np.uint8)
    wrong = (
        lambda: _native.sort_suffixes(np.array([5], np.uint32), 5),
        lambda: _native.follow_text(index.arrays, windows, ids, 4, longest, state),
        lambda: _native.follow_text(index.arrays, windows, ids, 0, longest[:2], state),
        lambda: _native.follow_text(index.arrays, windows, ids, 0, longest, state[:3]),
        lambda: _native.follow_text((*index.arrays[:4], longest), windows, ids, 0, longest, state),
        lambda: _native.follow_text(index.arrays, (0, *windows[1:]), ids, 0, longest, state),
        lambda: _native.follow_text(index.arrays, (2, windows[1][:3], windows[2]), ids, 0, longest, state),
        lambda: _native.hash_segments(no_flags, np.array([0]), np.array([1]), np.zeros(1, np.uint64)),
        lambda: _native.number_ngrams(ids, ids, np.zeros(3, np.uint64), ids),
        lambda: _native.mark_ngrams(ids, [np.zeros(3, np.uint64)], []),
    )
    for call in wrong:
        with pytest.raises(ValueError):
            call()
