"""ARPA lines: numbers and words as Python reads them; formatting gives back the single-precision number."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import kernels as twin

from lmgauge._kernels import _native

numbers = st.one_of(
    st.floats(-99, 0).map(repr),
    st.floats(-99, 0).map(lambda v: f"{v:.7g}"),
    st.floats(-99, 0).map(lambda v: f"{v:.3e}"),
    st.sampled_from(["0", "-0", "-99", "-.5", "-5.", "-0.30103", "-1e-5", "-1E+1", "-inf"]),
    st.sampled_from(["-" + "1234567890" * 3, "-0." + "1234567890" * 3]),
)  # fmt: skip
words = st.text(st.characters(codec="utf-8", exclude_characters=" \t\r\n\0"), min_size=1, max_size=8)
blanks = st.sampled_from([" ", "\t", "  ", " \t"])


def parse(data: bytes, order: int, rows: int = 10) -> tuple[Any, list[tuple[float, list[bytes], float]]]:
    p, b = np.empty(rows), np.empty(rows)
    starts, ends = np.empty(rows * order, np.int64), np.empty(rows * order, np.int64)
    result = _native.parse_arpa_lines(np.frombuffer(data, np.uint8), order, p, b, starts, ends)
    found = []
    for row in range(result[0]):
        spans = zip(
            starts[row * order : (row + 1) * order].tolist(), ends[row * order : (row + 1) * order].tolist(), strict=True
        )
        found.append((float(p[row]), [data[s:e] for s, e in spans], float(b[row])))
    return result, found


@given(st.data(), st.integers(1, 4))
def test_good_lines(data: st.DataObject, order: int) -> None:
    lines = []
    for _ in range(data.draw(st.integers(0, 6))):
        fields = [data.draw(numbers), *(data.draw(words) for _ in range(order))]
        if data.draw(st.booleans()):
            fields.append(data.draw(numbers))
        line = "".join(part for field in fields for part in (field, data.draw(blanks)))
        lines.append((line.rstrip(" \t") + data.draw(st.sampled_from(["", " ", "\r"]))).encode())
    text = b"".join(line + b"\n" for line in lines)
    result, found = parse(text + b"\n\\end\\\n", order)
    assert result == (len(lines), len(text), -1, 0)
    assert found == [twin.parse_arpa_line(line, order) for line in lines]


@given(st.text(st.sampled_from("0123456789.eE+-xXnaif_ \t"), max_size=14), st.text(st.sampled_from("01.e+-n "), max_size=6))
def test_any_line(first: str, last: str) -> None:
    """What Python refuses is refused; what it takes is the same number."""
    line = f"{first}\tword\t{last}".encode()
    try:
        expected = twin.parse_arpa_line(line, 1)
    except ValueError:
        expected = None
    result, found = parse(line + b"\n", 1)
    if expected is None:
        assert result[2] == 0
        assert result[3] in (1, 2, 3)
    else:
        assert found == [expected]


@given(st.binary(max_size=60), st.integers(1, 3))
def test_any_bytes(data: bytes, order: int) -> None:
    (lines, consumed, fault, reason), found = parse(data, order)
    assert 0 <= consumed <= len(data)
    assert len(found) == lines
    assert (fault >= 0) == (reason > 0)
    for p, fields, b in found:
        assert p <= 0
        assert b <= 38
        assert all(fields)


def test_it_stops_at_the_end_of_a_section_and_of_the_room() -> None:
    text = b"-1 a\n-2 b\n-3 c\n\n\\2-grams:\n"
    assert parse(text, 1)[0] == (3, 15, -1, 0)
    assert parse(text, 1, rows=2)[0] == (2, 10, -1, 0)
    assert parse(text[:8], 1)[0] == (1, 5, -1, 0)  # an unfinished line waits for more
    assert parse(b"\\end\\\n", 1)[0] == (0, 0, -1, 0)
    assert parse(b"-1 a\r\n\r\n", 1)[0] == (1, 6, -1, 0)


@given(st.lists(st.floats(0, 1, width=32), max_size=8), st.booleans())
def test_formatting_gives_back_what_was_stored(values: list[float], weights: bool) -> None:
    data = b"ab\xc3\xa4c"
    offsets = np.array([0, 1, 2, 4, 5], np.int64)
    p = np.array(values, np.float64)
    ids = np.tile(np.array([2, 3], np.uint32), len(values))
    backoff = p * 3 if weights else np.zeros(0)
    written = _native.format_arpa_lines(p, backoff, ids, 2, offsets, np.frombuffer(data + bytes(8), np.uint8))
    _, found = parse(written, 2)
    assert len(found) == len(values)
    for value, (log10, fields, weight) in zip(values, found, strict=True):
        assert fields == ["ä".encode(), b"c"]
        back = struct.unpack("f", struct.pack("f", 10**log10))[0] if log10 > -99 else 0.0
        # Nine digits of log10 are eight decimals from 1e-10 up, which is enough for single precision, and seven below.
        assert back == value if value >= 1e-10 or not value else back == pytest.approx(value, rel=3e-7, abs=1e-37)
        assert (
            not weights
            or (value == 0 and weight == -99)
            or weight == pytest.approx(math.log10(value * 3), rel=1e-8, abs=1e-8)
        )


def test_shapes_that_do_not_fit_are_refused() -> None:
    one = np.ones(1)
    offsets, data = np.array([0, 1], np.int64), np.zeros(9, np.uint8)
    for ids in ([1], [0, 0]):
        with pytest.raises(ValueError):
            _native.format_arpa_lines(one, np.zeros(0), np.array(ids, np.uint32), 1, offsets, data)
    with pytest.raises(ValueError):
        _native.parse_arpa_lines(data, 2, one, one, np.zeros(1, np.int64), np.zeros(1, np.int64))
