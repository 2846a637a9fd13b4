"""What small functions of `records` give for an example each."""

from __future__ import annotations

from lmgauge.records import formats, jsonl, records


def test_utf8() -> None:
    assert records.what_is_wrong(b"f\xfcr", 1) == "0xFC is not valid UTF-8"
    assert records.utf8("ü") == b"\xc3\xbc"


def test_kinds_of_values() -> None:
    assert jsonl.kind_of({}) == "an object"
    assert jsonl.kind_of(1.5) == "a number"


def test_compressions() -> None:
    assert formats.split_compression("a.txt.gz") == ("a.txt", ".gz")
    assert formats.split_compression("a.txt") == ("a.txt", "")
