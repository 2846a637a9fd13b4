"""Records of JSONL: what stays is what was read, with members behind its own; what cannot be used is put aside."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from tests.filtering.filtered import COLUMNS, filter_bytes, score_bytes

from lmgauge.base.errors import InputError

GOOD = [
    b'{"text": "a b"}',
    b'{"text":"a b"}',
    b'{"id": 7, "text": "a b", "more": {"text": [1, {"text": "x"}], "n": null}}',
    b'{"text": "a b", "n": 123456789012345678901234567890, "x": 1e400, "y": -0.0, "z": 1.10}',
    b'{"te\\u0078t": "\\u0061 b"}',
    b'{"text": "a b" }',
    b'{"text": "a b"\t}',
    b' {"text": "a b"}',
    b'{"text": "\\ud83d\\ude00"}',
    '{"text": "grün", "größe": "\u2028"}'.encode(),
    b'{"text": ""}',
    b'{"text": "a\\r\\nb\\rc"}',
    b'{"text": "a b", "o": "\\ud800"}',
    b'{"text": "a b", "x": "m_bits", "y": {"m_bits": 1}}',
    b'{"text": "a b", "n": NaN}',
]
BAD = [
    (b'{"text": 1, "text": "a b"}', "bad record", "not usable JSON: the key 'text' occurs twice in one object"),
    (b'{"text": "a"', "bad record", "not valid JSON: Expecting ',' delimiter"),
    (b'{"text": "a",}', "bad record", "not valid JSON"),
    (b'{"text": "a"} x', "bad record", "not valid JSON: Extra data"),
    (b'{"text": "a\tb"}', "bad record", "not valid JSON: Invalid control character"),
    (b'{"text": "a\0b"}', "bad record", "not valid JSON: Invalid control character"),
    (b"nul", "bad record", "not valid JSON"),
    (b"\0", "bad record", "not valid JSON"),
    (b'\x0b{"text": "a"}', "bad record", "not valid JSON"),
    (b'\xe2\x80\xa8{"text": "a"}', "bad record", "not valid JSON"),
    (b'{"text": "a"}\xef\xbb\xbf', "bad record", "not valid JSON"),
    (b"[1]", "bad record", "a JSON object such as"),
    (b'"text"', "bad record", "not a string"),
    (b"null", "bad record", "not null"),
    (b'{"text": "\xff"}', "bad record", "0xFF is not valid UTF-8"),
    (b'{"text": "a", "o": "\xff"}', "bad record", "0xFF is not valid UTF-8"),
    (b'{"text": "a", "o": "\xed\xa0\x80"}', "bad record", "a lone surrogate"),
    ('{"text": "a"}'.encode("utf-16-le"), "bad record", "not valid JSON"),
    ('{"text": "a"}'.encode("utf-16-be"), "bad record", "not valid JSON"),
    (b'{"n": ' + b"9" * 5000 + b', "text": "a"}', "bad record", "not usable JSON"),
    (b'{"n": ' + b"[" * 100_000 + b"]" * 100_000 + b', "text": "a"}', "bad record", "not usable JSON"),
    (b"{}", "no text", "no field 'text'; the fields are none"),
    (b'{"x": 1, "y": 2}', "no text", "no field 'text'; the fields are 'x', 'y'"),
    (b'{"text": null}', "no text", "field 'text' holds null, not a string"),
    (b'{"text": 5}', "no text", "field 'text' holds a number, not a string"),
    (b'{"text": true}', "no text", "field 'text' holds true or false, not a string"),
    (b'{"text": ["a"]}', "no text", "field 'text' holds a list, not a string"),
    (b'{"text": {"text": "a"}}', "no text", "field 'text' holds an object, not a string"),
    (b'{"text": "a \\ud800 b"}', "invalid text", "a lone surrogate (U+D800 to U+DFFF, \\ud800 in JSON) is not a character"),
    (b'{"text": "a\\u0000b"}', "invalid text", "NUL (0x00) is not text"),
    (b'{"text": "a", "m_bits": 1}', "field taken", "there is already a field 'm_bits'"),
    (b'{"text": "a", "m\\u005Funseen": 1}', "field taken", "there is already a field 'm_unseen'"),
]


def members(line: bytes) -> list[tuple[str, object]]:
    return list(json.loads(line, object_pairs_hook=list))


@pytest.mark.parametrize("line", GOOD)
def test_a_record_stays_as_it_is_and_gets_members(tmp_path: Path, line: bytes) -> None:
    done = filter_bytes(tmp_path, line + b"\n")
    (written,) = done.lines
    assert done.output.endswith(b"}\n")
    assert written.startswith(line.rstrip()[:-1].rstrip() + b", ")
    assert repr(members(written)[:-5]) == repr(members(line))  # repr: NaN is not equal to itself
    assert [name for name, _ in members(written)[-5:]] == COLUMNS
    assert (done.result.documents, done.rejects) == (1, [])


@pytest.mark.parametrize(("line", "reason", "detail"), BAD)
def test_a_bad_record_is_put_aside_and_ends_nothing(tmp_path: Path, line: bytes, reason: str, detail: str) -> None:
    done = filter_bytes(tmp_path, b'{"text": "a"}\n' + line + b'\n{"text": "b"}\n')
    assert len(done.lines) == 2
    (rejected,) = done.rejects
    assert (rejected["record"], rejected["reason"]) == (2, reason)
    assert detail in rejected["detail"]
    assert "--" not in rejected["detail"]  # no advice to choose an option that there is not
    raw = rejected["raw"].encode() if "raw_base64" not in rejected else base64.b64decode(rejected["raw_base64"])
    assert raw == line
    assert dict(done.result.problems) == {reason: 1}


@pytest.mark.parametrize(("line", "reason", "detail"), BAD)
def test_a_bad_record_ends_the_run_where_it_is_to(tmp_path: Path, line: bytes, reason: str, detail: str) -> None:
    with pytest.raises(InputError, match=r"in.jsonl:2: ") as refusal:
        filter_bytes(tmp_path, b'{"text": "a"}\n' + line + b"\n", errors="fail")
    assert detail in str(refusal.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_a_file_that_was_scored_before_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"in.jsonl:1: there is already a field 'm_bits'.*NAME=PATH"):
        filter_bytes(tmp_path, b'{"text": "a", "m_bits": 1}\n')


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b" \n", b""])
def test_line_ends_and_blanks_at_the_end_are_no_part_of_a_record(tmp_path: Path, ending: bytes) -> None:
    done = filter_bytes(tmp_path, b'{"text": "a"}\n\n{"text": "b"}' + ending)
    assert [json.loads(line)["text"] for line in done.lines] == ["a", "b"]
    assert done.result.records == 2
    assert b"\r" not in done.output


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\t\n\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_a_file_may_have_no_record(tmp_path: Path, content: bytes) -> None:
    done = filter_bytes(tmp_path, content)
    assert (done.output, done.rejects, done.result.records) == (b"", [], 0)


def test_a_byte_order_mark_at_the_start_is_left_out(tmp_path: Path) -> None:
    assert filter_bytes(tmp_path, b'\xef\xbb\xbf{"text": "a"}\n').output.startswith(b'{"text": "a", "m_bits"')


def test_a_rejected_record_has_its_id_whatever_it_is(tmp_path: Path) -> None:
    ids = [b'"a"', b"7", b"null", b"[1]", b'"\\ud800"', b'"\x1b[31m"', b"true"]
    done = filter_bytes(tmp_path, b"".join([b'{"text": ""}\n', *(b'{"id": %s}\n' % one for one in ids)]), id="id")
    assert [record["id"] for record in done.rejects] == [
        "a",
        "7",
        None,
        None,
        "\ud800",
        None,
        None,
    ]
    assert "\x1b" not in (tmp_path / "rejects.jsonl").read_text()


def test_lines_of_text_become_objects_with_all_their_blanks(tmp_path: Path) -> None:
    content = 'a b \r\n\n "quoted" \\ \tgrün\nlast'.encode()
    rows = [json.loads(line) for line in score_bytes(tmp_path, content, "in.txt", "out.jsonl").splitlines()]
    assert [row["text"] for row in rows] == ["a b ", "", ' "quoted" \\ \tgrün', "last"]
    assert [row["id"] for row in rows] == [f"{tmp_path / 'in.txt'}:{number}" for number in (1, 2, 3, 4)]
    assert list(rows[0]) == ["id", "text", *COLUMNS]
