"""Ranges between shared boundaries: against a twin over sets, and the law that sums over parts add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import ranges as twin

import lmgauge
from lmgauge import Corpus, ScoreBatch
from lmgauge.base.errors import InputError
from lmgauge.evaluation.slicing.span_alignment import (
    Ranges,
    exact_sums,
    inexact_rows,
    kinds_within,
    ranges_by_event,
    shared_ranges,
    whole_segments,
)
from lmgauge.numerics.exact import ExactSums, exact_to_nats
from lmgauge.scores import EOS_KIND, OOV, TOKEN, Strings
from lmgauge.text.segments import Segments


def table(segments: Sequence[Sequence[int]], **columns: Any) -> ScoreBatch:
    """A table of rows that end at these bytes."""
    ends = np.array([end for rows in segments for end in rows], np.int64)
    given = {
        "token_ids": np.zeros(len(ends), np.uint32),
        "strings": Strings([""]),
        "logprob": np.full(len(ends), -1.0),
        "kind": np.full(len(ends), TOKEN, np.uint8),
    }
    return ScoreBatch(
        segments=np.arange(len(segments), dtype=np.int64),
        segment_events=np.array([len(rows) for rows in segments], np.int64),
        ends=ends,
        **(given | columns),
    )


def rows_of(ranges: Ranges) -> list[twin.Range]:
    columns = (ranges.segment, ranges.starts, ranges.ends, ranges.position)
    events = zip(*(e.tolist() for e in ranges.events), strict=True)
    return list(zip(*(c.tolist() for c in columns), events, strict=True))


@st.composite
def tokenisations(draw: st.DrawFn, tables: int = 2) -> tuple[list[str], list[list[list[int]]]]:
    """Texts, and for each table where its rows end in each: on bytes, not characters, with or without `</s>`, empty rows
    (several tokens of one byte), and segments without rows."""
    texts = draw(st.lists(st.text(alphabet="ab é東🙂\t", max_size=8), min_size=1, max_size=5))
    found = []
    for _ in range(tables):
        eos = draw(st.booleans())
        ends = []
        for text in texts:
            size = len(text.encode())
            cuts = sorted(draw(st.lists(st.integers(0, size), max_size=6)))
            last = [size, size] if eos else [size]
            ends.append([*cuts, *last] if size or eos or draw(st.booleans()) else [])
        found.append(ends)
    return texts, found


@given(tokenisations())
def test_ranges_are_the_twin_s(given: tuple[list[str], list[list[list[int]]]]) -> None:
    _, tables = given
    assert rows_of(shared_ranges([table(ends) for ends in tables], silent=True)) == twin.shared_ranges(tables)


@given(st.integers(2, 4).flatmap(tokenisations))
def test_ranges_tile_every_segment_and_cannot_be_cut_finer(given: tuple[list[str], list[list[list[int]]]]) -> None:
    texts, tables = given
    ranges = shared_ranges([table(ends) for ends in tables], silent=True)
    for i, text in enumerate(texts):
        mine = np.flatnonzero(ranges.segment == i)
        starts, ends = ranges.starts[mine].tolist(), ranges.ends[mine].tolist()
        assert starts == [0, *ends[:-1]]
        assert ends[:-1] == sorted(set(ends[:-1]))
        assert ends[-1] == len(text.encode())
        assert ranges.position[mine].tolist() == list(range(len(mine)))
        inner = set(range(len(text.encode()) + 1)).intersection(*(rows[i][:-1] for rows in tables))
        assert set(ends[:-1]) == inner
    for rows, events in zip(tables, ranges.events, strict=True):
        # Rows follow each other: those of the ranges of a segment are those of the segment.
        assert np.bincount(ranges.segment, events, len(texts)).tolist() == list(map(len, rows))


@given(st.integers(1, 3).flatmap(tokenisations))
def test_without_the_text_segments_that_no_table_has_rows_for_are_not_known(
    given: tuple[list[str], list[list[list[int]]]],
) -> None:
    _, tables = given
    known = [row for row in twin.shared_ranges(tables) if any(ends[row[0]] for ends in tables)]
    assert rows_of(shared_ranges([table(ends) for ends in tables])) == known


@given(tokenisations(), st.randoms(use_true_random=False), st.integers(1, 5))
def test_parts_add_up_to_the_whole(given: tuple[list[str], list[list[list[int]]]], random: Any, size: int) -> None:
    """Law 5: whatever codes ranges have, the exact sums over the codes add up to the exact sum of all rows."""
    _, tables = given
    batches = []
    for ends in tables:
        count = sum(map(len, ends))
        logprob = np.array([random.choice([-random.uniform(0, 50), 0.0, -1e11 * random.random()]) for _ in range(count)])
        batches.append(table(ends, logprob=logprob))
    ranges = shared_ranges(batches)
    codes = np.array([random.randrange(size) for _ in range(len(ranges))], np.int64)
    for batch, events in zip(batches, ranges.events, strict=True):
        sums = exact_sums(batch, events)
        parts = sums.totals(codes, size)
        whole = exact_sums(batch, np.array([len(batch)]))
        assert sum(parts) == whole.totals(np.zeros(1, np.int64), 1)[0]
        assert Fraction(sum(parts), 2**80) == pytest.approx(sum(map(Fraction, batch.logprob.tolist())), abs=1e-18)
        for code in range(size):
            assert parts[code] == sum((h << 64) + low for h, low in _pairs(sums, codes == code))


def _pairs(sums: ExactSums, chosen: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(sums.high[chosen].tolist(), sums.low[chosen].tolist(), strict=True))


def test_totals_are_exact_beyond_2_to_the_53() -> None:
    """Blocks without the text at hand have a fixed number of segments, of any length: millions of rows may be one slice."""
    count = (1 << 21) + 5
    low = np.full(count, 2**64 - 1, np.uint64)
    high = np.full(count, -(2**56) - 1, np.int64)
    sums = ExactSums(high, low, np.zeros(count, np.int64))
    each = (-(2**56) - 1 << 64) + 2**64 - 1
    codes = np.arange(count) % 2
    assert sums.totals(np.zeros(count, np.int64), 1) == [each * count]
    assert sums.totals(codes, 2) == [each * (count // 2 + 1), each * (count // 2)]


def test_zero_probability_is_counted_and_left_out_of_the_sum() -> None:
    batch = table([[1, 2, 3]], logprob=np.array([-1.0, -math.inf, -0.5]))
    sums = exact_sums(batch, np.array([2, 1]))
    assert sums.zeros.tolist() == [1, 0]
    assert sums.nats().tolist() == [-math.inf, -0.5]
    assert exact_to_nats(sums.totals(np.zeros(2, np.int64), 1)[0]) == -1.5


@pytest.mark.parametrize("value", [math.nan, 0.1, -1e13])
def test_what_is_no_log_probability_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="segment 1"):
        exact_sums(table([[1], [1]], logprob=np.array([-1.0, value])), np.array([1, 1]))


def test_kinds_within() -> None:
    batch = table([[1, 2], [], [3, 3]], kind=np.array([OOV, TOKEN, OOV, EOS_KIND], np.uint8))
    assert kinds_within(batch, np.array([2, 0, 1, 1]), OOV).tolist() == [1, 0, 1, 0]
    assert kinds_within(batch, np.array([0, 4]), EOS_KIND).tolist() == [0, 1]


def test_by_event_and_by_segment() -> None:
    batch, other = table([[2, 3], [], [4]]), table([[1, 4], [], [9]])
    assert rows_of(ranges_by_event([batch, other])) == [(0, 0, 2, 0, (1, 1)), (0, 2, 3, 1, (1, 1)), (2, 0, 4, 0, (1, 1))]
    bare = table([[2, 3], [], [4]])
    bare = ScoreBatch(
        bare.segments, bare.segment_events, bare.token_ids, bare.strings, bare.logprob, bare.kind, bare.ends[:0]
    )
    assert ranges_by_event([bare, batch]).ends.tolist() == [0, 0, 0]
    (block,) = Corpus.from_strings(["abc", "", "abcd"])
    assert rows_of(whole_segments([bare, batch], block)) == [
        (0, 0, 3, 0, (2, 2)), (1, 0, 0, 0, (0, 0)), (2, 0, 4, 0, (1, 1))
    ]  # fmt: skip
    assert whole_segments([bare, batch], None).ends.tolist() == [0, 0, 0]


def test_spans_that_no_text_has_are_refused() -> None:
    with pytest.raises(InputError, match="segment 1: the span that ends at byte 1 comes after"):
        shared_ranges([table([[3], [2, 1]])])
    for end in (-1, 1 << 41):
        with pytest.raises(InputError, match=f"cannot end at byte {end}"):
            shared_ranges([table([[end]])])
    bare = table([[1]])
    with pytest.raises(InputError, match="no byte spans"):
        shared_ranges([ScoreBatch(*(getattr(bare, n) for n in list(bare.__slots__)[:6]), ends=np.zeros(0, np.int64))])


# -- which rows give their bytes back -----------------------------------------------------------------------------------


def scored(text: list[str], tokenizer: str = "whitespace") -> tuple[ScoreBatch, Segments]:
    model = lmgauge.train("laplace", Corpus.from_strings(text), order=1, tokenizer=tokenizer, reserved="escape")
    (block,) = Corpus.from_strings(text)
    (batch,) = model.score(Corpus.from_strings(text), spans=True)
    return batch, block


@pytest.mark.parametrize(
    ("text", "inexact"),
    [
        ("a b", []),
        ("", []),
        (" a b", [0]),
        ("a  b", [1]),
        ("a b ", [2]),
        ("a\tb", [1]),  # as long as a space, but none
        ("a\u00a0b c", []),  # no ASCII white space: inside a word
        ("a b\rc d\x0be", [2, 4]),
        ("\t", [0]),
        ("<unk> </s> é", []),  # ordinary words here, escaped in the vocabulary
    ],
)
def test_inexact_rows(text: str, inexact: list[int]) -> None:
    batch, block = scored(["a", text])
    assert (np.flatnonzero(inexact_rows(batch, block)) - 2).tolist() == inexact
    assert bool(inexact) == bool(batch.lossy[1])


words = st.lists(st.text(alphabet="ab é東\t \x0b", max_size=6), min_size=1, max_size=4)


@settings(max_examples=60)
@given(words)
def test_a_segment_is_lossy_if_a_row_of_it_is_inexact(text: list[str]) -> None:
    batch, block = scored([*text, "a"])
    rows = inexact_rows(batch, block)
    lossy = [bool(rows[batch.row_segments() == i].any()) for i in range(len(text) + 1)]
    assert lossy == batch.lossy.tolist()


def test_words_that_stand_right_behind_each_other() -> None:
    """ICU gives words back without spaces: a word with a space before it is what it cannot spell."""
    pytest.importorskip("icu4py")
    batch, block = scored(["Hello, world", "東京は"], "icu")
    assert [batch.strings.tokens[i] for i in batch.token_ids.tolist()[:4]] == ["Hello", ",", "world", "</s>"]
    assert np.flatnonzero(inexact_rows(batch, block, spaced=False)).tolist() == [2]


def test_without_the_text_any_white_space_of_one_byte_passes() -> None:
    batch, block = scored(["a\tb  c"])
    assert np.flatnonzero(inexact_rows(batch, None)).tolist() == [2]
    assert np.flatnonzero(inexact_rows(batch, block)).tolist() == [1, 2]
