"""Texts of a batch: whatever they come as, the valid ones are cleaned, and of the others it is said what is wrong."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lmgauge.filtering.documents import INVALID, NO_TEXT, Documents, label_of, labels_of, split_lines
from lmgauge.text.cleaning import Place, clean_record, find_problem
from lmgauge.text.segments import TextReport

pieces = st.sampled_from(
    [b"a", b" ", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xe2\x82", b"\xac", b"\xed\xa0\x80", "é€😀".encode()]
)
raws = st.lists(st.one_of(st.none(), st.lists(pieces, max_size=5).map(b"".join)), max_size=8)


def texts(documents: Documents) -> dict[int, bytes]:
    return {int(row): bytes(documents.segments.text(place)) for place, row in enumerate(documents.rows)}


def slow(values: list[bytes | None]) -> tuple[dict[int, bytes], dict[int, str]]:
    """What is to come out, one text at a time."""
    good, wrong = {}, {}
    for row, value in enumerate(values):
        if value is None or find_problem(value)[0] >= 0:
            wrong[row] = NO_TEXT if value is None else INVALID
        else:
            clean = clean_record(value, Place("x"), "fail", TextReport())
            assert clean is not None
            good[row] = clean.data
    return good, wrong


def column_of(values: list[bytes | None]) -> pa.Array:
    """A column of strings that holds any bytes, as ill-behaved programs write them."""
    encoded = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(encoded), encoded.buffers(), encoded.null_count)


@given(raws)
def test_texts_of_any_kind(values: list[bytes | None]) -> None:
    good, wrong = slow(values)
    for documents in (Documents.of(values), Documents.of_column(column_of(values))):
        assert texts(documents) == good
        assert {row: reason for row, (reason, _) in documents.problems.items()} == wrong
        sizes = documents.byte_counts()
        assert sizes.tolist() == [len(good.get(row, b"")) for row in range(len(values))]


@given(raws, st.integers(0, 8), st.integers(0, 8))
def test_a_slice_of_a_column_is_that_slice(values: list[bytes | None], begin: int, length: int) -> None:
    part = Documents.of_column(column_of(values).slice(min(begin, len(values)), length))
    assert texts(part) == texts(Documents.of(values[begin : begin + length]))


@given(st.lists(st.text(st.sampled_from("ab \n\r\ud800"), max_size=6), max_size=6), st.data())
def test_some_of_them_have_their_numbers(values: list[str], data: st.DataObject) -> None:
    documents = Documents.of(values)
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(documents.rows), max_size=len(documents.rows))), bool)
    own = documents.only(chosen)
    assert texts(own) == {row: text for (row, text), use in zip(texts(documents).items(), chosen, strict=True) if use}
    lines, owner = split_lines(own.segments)
    expected = [(place, line) for place, text in enumerate(texts(own).values()) for line in text.split(b"\n")]
    assert [(int(own), bytes(lines.text(place))) for place, own in enumerate(owner)] == expected


def test_labels() -> None:
    assert [label_of(value) for value in ("de", 7, 10**30, True, None, 1.5, [1], {})] == [
        *("de", "7", "1" + "0" * 30, None, None, None, None, None)
    ]
    assert labels_of(pa.array(["a", None, "b", "a"]).dictionary_encode()) == ["a", None, "b", "a"]
    assert labels_of(pa.chunked_array([], pa.string())) == []
    assert labels_of(column_of([b"\xff", b"ok"])) == ["\\xff", "ok"]
    assert labels_of(pa.array([True, None])) == [None, None]
