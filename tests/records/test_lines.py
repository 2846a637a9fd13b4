"""Lines of text as records: those that stay are the bytes that were read."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from tests.filtering.filtered import filter_bytes

from lmgauge.base.errors import InputError
from lmgauge.base.result_list import plain_values


@pytest.mark.parametrize(
    ("content", "stays"),
    [
        (b"a b\nc\n", b"a b\nc\n"),
        (b"a b\nc", b"a b\nc\n"),
        (b"a b\r\n c \r\n", b"a b\r\n c \r\n"),
        (b"\n\n", b"\n\n"),
        (b"a\rb\n", b"a\rb\n"),
        (b"a\r\r\n", b"a\r\r\n"),
        (b"\xef\xbb\xbfa\n", b"a\n"),
        (b"", b""),
        ("grün \u2028 x\n".encode(), "grün \u2028 x\n".encode()),
        (b'{"text": "a"}\n', b'{"text": "a"}\n'),
    ],
)
def test_lines_stay_as_they_are(tmp_path: Path, content: bytes, stays: bytes) -> None:
    done = filter_bytes(tmp_path, content, "in.txt")
    assert (done.output, done.rejects) == (stays, [])
    assert done.result.documents == stays.count(b"\n")


@pytest.mark.parametrize("content", [b"a b\r\nc\r\n", b"a b\r\r\nc\r\r\n", b"a b\nc\r"])
def test_line_ends_are_no_part_of_a_document(tmp_path: Path, content: bytes) -> None:
    plain = filter_bytes(tmp_path, b"a b\nc\n", "in.txt").result
    done = filter_bytes(tmp_path, content, "in.txt").result
    assert (done.bytes, plain_values(done.scored)) == (plain.bytes, plain_values(plain.scored))


def test_lines_that_are_no_text_are_put_aside(tmp_path: Path) -> None:
    done = filter_bytes(tmp_path, b"a\nb\0\n\xff\n\xe2\x82\n\xac\nc\n", "in.txt")
    assert done.output == b"a\nc\n"
    assert [record["record"] for record in done.rejects] == [2, 3, 4, 5]
    assert done.reasons == ["invalid text"] * 4
    assert done.rejects[0]["raw"] == "b\0"
    assert base64.b64decode(done.rejects[1]["raw_base64"]) == b"\xff"


@pytest.mark.parametrize("field", ["id", "group"])
def test_lines_have_no_fields(tmp_path: Path, field: str) -> None:
    with pytest.raises(InputError, match=r"in.txt: lines of text have no field 'x'; use .jsonl, "):
        filter_bytes(tmp_path, b"a\n", "in.txt", **{field: "x"})


def test_utf_16_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"in.txt: the file is UTF-16"):
        filter_bytes(tmp_path, "a b\n".encode("utf-16"), "in.txt")
