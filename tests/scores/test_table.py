"""Batches of the score table: their parts, batches together, and the walk segment by segment."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmgauge
from lmgauge import Corpus, NgramModel, ScoreBatch
from lmgauge.base.errors import InputError
from lmgauge.scores import SegmentReader, Strings, iter_segments, join_batches

TEXT = ["a b c", "a b", "", "c a Ärger", "b  b unseen"]


@pytest.fixture(scope="module")
def model() -> NgramModel:
    return lmgauge.train("witten-bell", Corpus.from_strings(["a b c", "c a b Ärger", "b b"]), order=3)


@pytest.fixture
def batches(model: NgramModel) -> list[ScoreBatch]:
    return list(model.score(Corpus.from_strings(TEXT, block_bytes=9)))


def rows_of(batch: ScoreBatch) -> list[Any]:
    columns = (batch.row_segments(), batch.starts(), batch.ends, batch.logprob, batch.kind, *batch.extra.values())
    tokens = [batch.strings.tokens[i] for i in batch.token_ids.tolist()]
    return list(zip(tokens, *(column.tolist() for column in columns), strict=True))


def test_parts_of_a_batch_are_its_rows(model: NgramModel) -> None:
    (batch,) = model.score(Corpus.from_strings(TEXT))
    rows = rows_of(batch)
    for begin in range(len(TEXT) + 1):
        for end in range(begin, len(TEXT) + 1):
            part = batch.of_segments(begin, end)
            assert rows_of(part) == [row for row in rows if begin <= row[1] < end]
            assert part.lossy.tolist() == batch.lossy.tolist()[begin:end]
            assert part.segments.tolist() == list(range(begin, end))


def test_batches_joined_are_the_whole(model: NgramModel, batches: list[ScoreBatch]) -> None:
    (whole,) = model.score(Corpus.from_strings(TEXT))
    joined = join_batches(batches)
    assert rows_of(joined) == rows_of(whole)
    assert joined.segments.tolist() == whole.segments.tolist()
    assert joined.segment_events.tolist() == whole.segment_events.tolist()
    assert join_batches(batches[:1]) is batches[0]


def cut(batch: ScoreBatch, begin: int, end: int) -> ScoreBatch:
    """Rows of a batch, wherever a segment is cut, with strings of their own, as a reader of files hands them out."""
    rows = slice(begin, end)
    segments, events = np.unique(batch.row_segments()[rows], return_counts=True)
    strings = [batch.strings.tokens[i] for i in batch.token_ids[rows].tolist()]
    return ScoreBatch(
        segments, events.astype(np.int64), np.arange(len(strings), dtype=np.uint32), Strings(strings), batch.logprob[rows],
        batch.kind[rows], batch.ends[rows], {name: values[rows] for name, values in batch.extra.items()},
    )  # fmt: skip


def test_a_segment_cut_in_two_is_one_again(model: NgramModel) -> None:
    (whole,) = model.score(Corpus.from_strings(TEXT))
    for at in range(1, len(whole)):
        joined = join_batches([cut(whole, 0, at), cut(whole, at, len(whole))])
        assert rows_of(joined) == rows_of(whole)
        assert joined.segment_events.tolist() == whole.segment_events.tolist()


def test_a_segment_cut_in_two_in_a_file_has_no_gap(model: NgramModel) -> None:
    (whole,) = model.score(Corpus.from_strings(TEXT))
    first, second = cut(whole, 0, 2), cut(whole, 2, len(whole))
    again = join_batches([first, replace(second, begins=whole.starts()[2:])])  # as a reader of files hands it out
    assert len(again.begins) == 0
    assert again.starts().tolist() == whole.starts().tolist()


def test_parts_with_other_columns_are_refused(model: NgramModel) -> None:
    (whole,) = model.score(Corpus.from_strings(TEXT))
    first, second = cut(whole, 0, 3), cut(whole, 3, len(whole))
    bare = ScoreBatch(
        second.segments, second.segment_events, second.token_ids, second.strings, second.logprob, second.kind, second.ends
    )
    with pytest.raises(InputError, match="same columns"):
        join_batches([first, bare])


# -- segment by segment ---------------------------------------------------------------------------------------------------


def listed(segments: list[int], events: list[int], tokens: str, *, spans: bool = True) -> ScoreBatch:
    """A batch of rows of one letter each."""
    n = len(tokens)
    return ScoreBatch(
        np.array(segments, np.int64), np.array(events, np.int64), np.arange(n, dtype=np.uint32), Strings(list(tokens)),
        -np.arange(1.0, n + 1), np.zeros(n, np.uint8), np.arange(1, n + 1 if spans else 1, dtype=np.int64),
    )  # fmt: skip


def by_segment(batches: list[ScoreBatch]) -> list[tuple[int, list[str], list[float], list[int], list[int]]]:
    walk = iter_segments(batches)
    return [(r.segment, r.tokens(), r.logprob.tolist(), r.kind.tolist(), r.ends.tolist()) for r in walk]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9), st.sets(st.integers(1, 30)), st.booleans())
def test_segments_are_the_same_however_a_table_is_cut(events: list[int], cuts: set[int], spans: bool) -> None:
    tokens = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"[: sum(events)]
    whole = listed(list(range(len(events))), events, tokens, spans=spans)
    bounds = [0, *sorted(cut for cut in cuts if cut < len(whole)), len(whole)]
    parts = [cut(whole, a, b) for a, b in pairwise(bounds)]
    expected = [rows for rows in by_segment([whole]) if rows[1]]
    assert by_segment(parts) == expected
    assert "".join(token for rows in expected for token in rows[1]) == tokens
    assert all(len(rows[4]) == len(rows[1]) * spans for rows in expected)


def test_a_walk_keeps_segments_without_rows_and_their_order() -> None:
    batches = [listed([0, 1], [1, 0], "a"), listed([1, 3], [2, 1], "bcd"), listed([0], [1], "e")]
    assert [(segment, "".join(tokens)) for segment, tokens, *_ in by_segment(batches)] == [
        (0, "a"), (1, "bc"), (3, "d"), (0, "e"),
    ]  # fmt: skip
    assert by_segment([listed([7], [0], "")]) == [(7, [], [], [], [])]
    assert by_segment([]) == []


def test_a_walk_reads_no_further_than_it_must() -> None:
    read = []

    def source() -> Any:
        for i in range(3):
            read.append(i)
            yield listed([2 * i, 2 * i + 1], [1, 1], "ab")

    walk = iter_segments(source())
    assert [next(walk).segment for _ in range(2)] == [0, 1]
    assert read == [0, 1]  # the last segment of a batch may go on in the next


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.lists(st.integers(1, 4), min_size=1))
def test_a_reader_hands_out_every_row_once(events: list[int], widths: list[int]) -> None:
    if not sum(events):
        events = [*events, 1]
    tokens = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"[: sum(events)]
    whole = listed(list(range(len(events))), events, tokens)
    reader = SegmentReader([whole.of_segments(i, i + 1) for i in range(len(events))], "table")
    taken, begin = [], 0
    while begin < len(events):
        assert reader.exhausted or reader.next_segment >= begin
        end = begin + widths[begin % len(widths)]
        taken.append(reader.take(begin, end))
        assert taken[-1].segments.tolist() == list(range(begin, end))
        begin = end
    assert np.concatenate([part.logprob for part in taken]).tolist() == whole.logprob.tolist()
    assert np.concatenate([part.segment_events for part in taken])[: len(events)].tolist() == events
    assert reader.exhausted
    assert reader.take(begin, begin + 2).segment_events.tolist() == [0, 0]


def test_a_reader_refuses_a_table_without_rows() -> None:
    with pytest.raises(InputError, match="run: the score table has no rows"):
        SegmentReader([listed([0], [0], "")], "run")
