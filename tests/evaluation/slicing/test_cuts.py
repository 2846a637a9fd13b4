"""Slices of a text: classes, words, sizes, exact sums and examples, each against a twin that goes character by character."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.reference import statistics as twin

from lmgauge.evaluation.slicing.cuts import (
    CLASSES,
    FREQUENCY_BANDS,
    POSITION_STARTS,
    Cuts,
    band_labels,
    byte_classes,
    frequency_bands,
    position_bands,
    range_classes,
    range_sizes,
    range_words,
)
from lmgauge.evaluation.slicing.examples import ExampleHeap
from lmgauge.evaluation.slicing.span_alignment import Ranges, exact_sums, ranges_by_event, shared_ranges
from lmgauge.evaluation.slicing.sums import SliceSums
from lmgauge.numerics.exact import ExactSums
from lmgauge.scores import ScoreBatch, Strings
from lmgauge.scores.table import KINDS
from lmgauge.text.documents import Corpus
from lmgauge.text.segments import Segments

ALPHABET = "ab cé中かㅏ가.,!-_{}=\t  019½٣「」ß€x😀http://w.de @"
texts = st.lists(st.text(ALPHABET, max_size=30), min_size=1, max_size=6)


def block_of(strings: list[str]) -> Segments:
    (block,) = Corpus.from_strings(strings)
    return block


def table_of(ends: list[list[int]], logprobs: list[float] | None = None, kinds: list[int] | None = None) -> ScoreBatch:
    """Rows whose spans end at these bytes, for each segment."""
    flat = [end for segment in ends for end in segment]
    return ScoreBatch(
        segments=np.arange(len(ends), dtype=np.int64),
        segment_events=np.array([len(segment) for segment in ends], np.int64),
        token_ids=np.zeros(len(flat), np.uint32),
        strings=Strings(["x"]),
        logprob=np.array(logprobs if logprobs is not None else [-1.0] * len(flat)),
        kind=np.array(kinds if kinds is not None else [0] * len(flat), np.uint8),
        ends=np.array(flat, np.int64),
    )


@st.composite
def texts_with_spans(draw: st.DrawFn) -> tuple[list[str], list[list[int]]]:
    """Texts, and for each the ends of spans that tile its bytes, an empty one (`</s>`) last."""
    strings = draw(texts)
    ends = []
    for text in strings:
        size = len(text.encode())
        cuts = draw(st.lists(st.integers(1, size), max_size=8)) if size else []
        ends.append([*sorted({*cuts, *([size] if size else [])}), size])
    return strings, ends


# --- classes ------------------------------------------------------------------------------------------------------------


def obvious_class(character: str) -> str:
    name, category = unicodedata.name(character, ""), unicodedata.category(character)
    if character in "{}[]<>=+*/\\|&^%$#@~`_":
        return "code symbol"
    if character.isspace():
        return "whitespace and line end"
    if character in "0123456789" or category == "Nd":
        return "number"
    if category.startswith("P") or character in "\"'!?.,;:-()":
        return "punctuation"
    if character.isascii():
        return "word"
    cjk = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "IDEOGRAPHIC")
    return "CJK" if name.startswith(cjk) else "other non-ASCII"


def obvious_classes(text: str) -> list[str]:
    """The class of each byte."""
    found = [obvious_class(character) for character in text for _ in character.encode()]
    for match in re.finditer(rb"https?://[^\s<>\"]+", text.encode()):
        found[match.start() : match.end()] = ["URL"] * (match.end() - match.start())
    return found


@given(texts)
def test_each_byte_has_the_class_of_its_character(strings: list[str]) -> None:
    for text in strings:
        block = block_of([text])
        assert [CLASSES[code] for code in byte_classes(block)] == obvious_classes(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("word", "word"),
        ("naïve", "word"),
        ("Straße", "word"),
        (" 1,234.5", "number"),
        ("https://example.org/a?b=1", "URL"),
        ("me@example.org", "URL"),
        ("...", "punctuation"),
        ("東京", "CJK"),
        ("서울", "CJK"),
        ("Привет", "other non-ASCII"),
        ("€", "other non-ASCII"),
        ("{}", "code symbol"),
        (" \t", "whitespace and line end"),
    ],
)
def test_a_stretch_has_the_class_of_most_of_its_bytes(text: str, expected: str) -> None:
    block = block_of([text])
    size = len(text.encode())
    codes = range_classes(block, shared_ranges([table_of([[size, size]])]))
    assert [CLASSES[code] for code in codes] == [expected, "whitespace and line end"]


@given(texts_with_spans())
def test_stretches_have_the_commonest_class_of_their_bytes(case: tuple[list[str], list[list[int]]]) -> None:
    strings, ends = case
    block = block_of(strings)
    ranges = shared_ranges([table_of(ends)])
    codes = range_classes(block, ranges)
    for i, code in enumerate(codes.tolist()):
        classes = obvious_classes(strings[int(ranges.segment[i])])[int(ranges.starts[i]) : int(ranges.ends[i])]
        told = [name for name in classes if name != "whitespace and line end"]
        most = max((told.count(name) for name in CLASSES), default=0)
        first = next(name for name in CLASSES if told.count(name) == most) if told else "whitespace and line end"
        assert CLASSES[code] == first


# --- words and sizes ----------------------------------------------------------------------------------------------------

WHITE = b" \t\n\v\f\r"


@given(texts_with_spans())
def test_stretches_know_their_word(case: tuple[list[str], list[list[int]]]) -> None:
    strings, ends = case
    block = block_of(strings)
    ranges = shared_ranges([table_of(ends)])
    word_of_byte: list[list[int]] = []
    number = -1
    for text in strings:
        own, inside = [], False
        for byte in text.encode():
            letter = byte not in WHITE
            number += letter and not inside
            inside = letter
            own.append(number if letter else -1)
        word_of_byte.append(own)
    assert number + 1 == sum(len(text.encode().split()) for text in strings)
    expected = []
    for segment, start, end in zip(ranges.segment.tolist(), ranges.starts.tolist(), ranges.ends.tolist(), strict=True):
        words = [word for word in word_of_byte[segment][start:end] if word >= 0]
        expected.append(words[-1] if words else -1)
    assert range_words(block, ranges).tolist() == expected


@given(texts_with_spans())
def test_sizes_add_up_to_the_text(case: tuple[list[str], list[list[int]]]) -> None:
    strings, ends = case
    sizes = range_sizes(block_of(strings), shared_ranges([table_of(ends)]))
    assert sizes.sum(axis=0).tolist() == [
        sum(len(text.encode()) for text in strings),
        sum(len(text) for text in strings),
        sum(len(text.encode().split()) for text in strings),
    ]


def test_line_ends_belong_to_the_last_stretch(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes("ab c\n\né\n".encode())
    (block,) = Corpus.from_files(file)
    ranges = shared_ranges([table_of([[2, 4, 4], [0], [2, 2]])])
    assert range_sizes(block, ranges).tolist() == [[2, 2, 1], [2, 2, 1], [1, 1, 0], [1, 1, 0], [2, 1, 1], [1, 1, 0]]


def test_each_kind_of_event_has_a_slice() -> None:
    n, kinds = len(KINDS), np.arange(len(KINDS), dtype=np.uint8)
    rows = ScoreBatch(
        np.array([0]), np.array([n]), np.zeros(n, np.uint32), Strings(["a"]), np.full(n, -1.0), kinds, np.zeros(0, np.int64)
    )
    cuts = Cuts(None).of_events(None, rows, ranges_by_event([rows]), spans=False)
    labels, codes = next((labels, codes) for name, labels, codes in cuts if name == "kind of event")
    assert [labels[code] for code in codes] == list(dict.fromkeys(labels))


def test_bands() -> None:
    words = np.array([0, 1, 2, 3, 4, 5, 6, 7, -1])
    counts = np.array([0, 1, 2, 9, 10, 9999, 10_000, 10**7])
    labels = [FREQUENCY_BANDS[code] for code in frequency_bands(counts, words)]
    assert labels == [
        "never", "once", "2 to 9", "2 to 9", "10 to 99", "1,000 to 9,999", "10,000 and more", "10,000 and more", "no word",
    ]  # fmt: skip
    assert band_labels((1, 2, 3, 5)) == ("1", "2", "3 to 4", "5 and on")
    for position in range(600):
        band = int(position_bands(np.array([position]))[0])
        assert POSITION_STARTS[band] <= position + 1
        assert band == len(POSITION_STARTS) - 1 or position + 1 < POSITION_STARTS[band + 1]


# --- sums ---------------------------------------------------------------------------------------------------------------

logprobs = st.one_of(st.floats(-800, 0), st.sampled_from([0.0, -1e-300, -math.inf]))


@st.composite
def sliced_rows(draw: st.DrawFn) -> tuple[list[int], list[int], list[float], list[float], list[int]]:
    """Of each row: segment, slice, log-probabilities of two models, bytes."""
    size = draw(st.integers(1, 40))
    segments = list(accumulate(draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))))
    codes = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    first, second = (draw(st.lists(logprobs, min_size=size, max_size=size)) for _ in range(2))
    return segments, codes, first, second, draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))


def sums_of(values: list[float]) -> ExactSums:
    return exact_sums(table_of([list(range(1, len(values) + 1))], values), np.ones(len(values), np.int64))


def collect(rows: tuple[list[int], list[int], list[float], list[float], list[int]], cuts: list[int]) -> SliceSums:
    """Adds the rows in blocks that begin at these segments."""
    segments, codes, first, second, sizes = (np.array(column) for column in rows)
    collected = SliceSums("test", ["a", "b", "c", "d"], 2)
    bounds = [0, *cuts, int(segments[-1]) + 1]
    for begin, end in pairwise(bounds):
        part = (segments >= begin) & (segments < end)
        sums = [sums_of(column[part].tolist()) for column in (first, second)]
        code, segment, size = (column[part].astype(np.int64) for column in (codes, segments, sizes))
        collected.add(code, segment - begin, sums, size, first=begin)
    return collected


@given(sliced_rows())
def test_slices_are_exact_and_do_not_depend_on_blocks(
    rows: tuple[list[int], list[int], list[float], list[float], list[int]],
) -> None:
    segments, codes, first, second, sizes = rows
    found = collect(rows, []).finish("byte")
    again = collect(rows, list(range(1, segments[-1] + 1))).finish("byte")
    assert [(r.label, r.bits, r.size) for r in found.rows] == [(r.label, r.bits, r.size) for r in again.rows]
    labels = {label: code for code, label in enumerate("abcd")}
    assert sum(row.size for row in found.rows) == sum(sizes)
    for row in found.rows:
        inside = [i for i, code in enumerate(codes) if code == labels[row.label]]
        assert row.ranges == len(inside)
        assert row.segments == len({segments[i] for i in inside})
        assert row.size == sum(sizes[i] for i in inside)
        for k, values in enumerate((first, second)):
            finite = [values[i] for i in inside if values[i] > -math.inf]
            exact = -sum(map(Fraction, finite))
            assert row.zeros[k] == len(inside) - len(finite)
            assert row.finite_bits[k] == pytest.approx(float(exact) / math.log(2), rel=1e-15, abs=1e-18)
            assert row.bits[k] == (math.inf if row.zeros[k] else row.finite_bits[k])


def test_the_interval_of_a_slice_is_that_of_its_segments() -> None:
    generator = np.random.default_rng(8)  # by 5, neighbors look alike by chance
    segments = np.sort(generator.integers(0, 50, 400))
    first, second = (-generator.exponential(3, 400) for _ in range(2))
    sizes = generator.integers(1, 9, 400)
    rows = segments.tolist(), [0] * 400, first.tolist(), second.tolist(), sizes.tolist()
    (row,) = collect(rows, [20]).finish("byte").rows
    differences: dict[int, float] = defaultdict(float)
    bytes_of: dict[int, float] = defaultdict(float)
    for segment, a, b, size in zip(segments.tolist(), first.tolist(), second.tolist(), sizes.tolist(), strict=True):
        differences[segment] += (a - b) / math.log(2)
        bytes_of[segment] += size
    upper, lower = list(differences.values()), list(bytes_of.values())
    middle, error, freedom = sum(upper) / sum(lower), twin.jackknife_error(upper, lower), twin.freedom(lower)
    reach = twin.half_width(error, freedom)
    assert row.difference == pytest.approx(middle)
    assert row.interval == pytest.approx((middle - reach, middle + reach))
    assert row.p_value == pytest.approx(2 * stats.t.sf(abs(middle) / error, freedom))


def test_a_slice_is_as_sure_as_its_documents() -> None:
    generator = np.random.default_rng(6)
    segments = np.arange(200)
    documents = segments // 20
    level = generator.normal(0, 1, 10)[documents]
    first, second = -3 - generator.random(200), -3 - level - generator.random(200)
    sums = SliceSums("class", ["a"], 2)
    for begin in range(0, 200, 50):  # documents go over the ends of blocks
        own = slice(begin, begin + 50)
        tables = [sums_of(values[own].tolist()) for values in (first, second)]
        sums.add(np.zeros(50, np.int64), np.arange(50), tables, np.full(50, 5), first=begin, documents=documents[own])
    (row,) = sums.finish("byte").rows
    upper = np.bincount(documents, (first - second) / math.log(2)).tolist()
    reach = twin.half_width(twin.jackknife_error(upper, [100.0] * 10), 9)
    assert row.interval == pytest.approx((sum(upper) / 1000 - reach, sum(upper) / 1000 + reach))


def test_cells_are_pooled_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmgauge.evaluation.slicing.sums._MOST_CELLS", 64)
    generator = np.random.default_rng(7)
    first, second = -generator.exponential(3, (2, 1000))
    rows = list(range(1000)), [0] * 1000, first.tolist(), second.tolist(), [4] * 1000
    (row,) = collect(rows, list(range(10, 1000, 10))).finish("byte").rows
    reach = twin.half_width(twin.jackknife_error(((first - second) / math.log(2)).tolist(), [4.0] * 1000), 999)
    assert row.interval is not None
    assert (row.interval[1] - row.interval[0]) / 2 == pytest.approx(reach, rel=0.4)  # of 32 to 63 pools


@pytest.mark.parametrize("segments", [2, 5, 6, 7])
def test_a_slice_of_few_segments_is_not_sure(segments: int) -> None:
    """No signs of so few segments could be surer than all of them alike; of fewer than six nothing is said."""
    second = [-2.0 - 1e-9 * i for i in range(segments)]
    rows = list(range(segments)), [0] * segments, [-1.0] * segments, second, [1] * segments
    (row,) = collect(rows, []).finish("byte").rows
    assert row.p_value == (2.0 ** (1 - segments) if segments > 5 else None)
    assert (row.interval is None) == (segments < 6)


def test_a_slice_of_one_segment_has_no_interval() -> None:
    (row,) = collect(([0, 0], [1, 1], [-1.0, -2.0], [-1.0, -1.0], [1, 1]), []).finish("byte").rows
    assert (row.label, row.interval, row.p_value) == ("b", None, None)
    assert row.difference == pytest.approx(-0.5 / math.log(2))


def test_many_slices_are_as_exact_as_few() -> None:
    """More than a table of all segments and slices could hold."""
    size, width = 300, 200_000
    generator = np.random.default_rng(6)
    codes, segments = generator.integers(0, width, size), np.sort(generator.integers(0, 10_000, size))
    sizes = generator.integers(1, 9, size)
    values = (-generator.exponential(3, size)).tolist()
    collected = SliceSums("test", [str(i) for i in range(width)], 2)
    collected.add(codes, segments, [sums_of(values), sums_of(values[::-1])], sizes)
    found = collected.finish("byte").rows
    assert [row.label for row in found] == [str(code) for code in np.unique(codes)]
    assert sum(row.ranges for row in found) == size
    assert sum(row.size for row in found) == sizes.sum()
    assert math.fsum(row.bits[0] for row in found) == pytest.approx(-math.fsum(values) / math.log(2))


def test_labels_may_grow() -> None:
    collected = SliceSums("test", ["a"], 1)
    one = np.zeros(1, np.int64)
    collected.add(one, one, [sums_of([-1.0])], one + 1)
    collected.labels = ["a", "b"]
    collected.add(one + 1, one + 1, [sums_of([-2.0])], one + 2)
    assert [(row.label, row.size) for row in collected.finish("byte").rows] == [("a", 1), ("b", 2)]


# --- examples -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=12), min_size=1, max_size=4), st.integers(0, 5))
def test_the_heap_keeps_the_extremes_of_all_blocks(blocks: list[list[int]], kept: int) -> None:
    heap = ExampleHeap(kept)
    everything = []
    for values in blocks:
        text = "abcdefghijkl"[: len(values)]
        block = block_of([text])
        ranges = ranges_by_event([table_of([list(range(1, len(values) + 1))])])
        numbers = np.array(values, np.float64)
        heap.add_ranges(block, ranges, numbers, [numbers])
        everything += [(value, text[i]) for i, value in enumerate(values)]
    worst = sorted((value for value, _ in everything if value > 0), reverse=True)[:kept]
    best = sorted(value for value, _ in everything if value < 0)[:kept]
    assert [example.value for example in heap.worst()] == worst
    assert [example.value for example in heap.best()] == best


def test_an_example_stands_in_its_surroundings() -> None:
    block = block_of(["the quick brown fox " + "jumps " * 30])
    ranges = Ranges(*(np.array([n]) for n in (0, 9, 15, 0)), (np.array([1]),))
    heap = ExampleHeap(1)
    heap.add_ranges(block, ranges, np.array([2.0]), [np.array([2.0])])
    (example,) = heap.worst()
    assert (example.before, example.text, example.line) == ("the quick", " brown", 1)
    assert example.after.startswith(" fox jumps")
    assert len(example.after) == 40


def test_a_whole_segment_is_shown_from_its_beginning_and_alone() -> None:
    heap = ExampleHeap(2)
    heap.add_segments(block_of(["é" * 100, "short"]), np.array([2.0, 1.0]), [np.array([5.0, 6.0])])
    long, short = heap.worst()
    assert (long.before, long.text, long.after, long.bits) == ("", "é" * 80 + "…", "", (5.0,))
    assert short.text == "short"
