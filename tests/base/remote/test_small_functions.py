"""What small functions of `remote` give for an example each."""

from __future__ import annotations

from lmgauge.base.remote import addresses, problems


def test_addresses() -> None:
    assert addresses.is_web("https://host/part.jsonl") is True
    assert addresses.is_web("s3://bucket/part.jsonl") is False
    assert addresses.has_password("s3://key:secret@bucket/part") is True
    assert addresses.has_password("abfs://container@account/part") is False
    assert addresses.is_loopback("127.0.0.2") is addresses.is_loopback("::1") is addresses.is_loopback("localhost") is True
    assert addresses.is_loopback("127.0.0.1.example.org") is addresses.is_loopback("10.0.0.1") is False
    assert addresses.scheme_of("S3://bucket/part.jsonl") == "s3"


def test_problems() -> None:
    assert problems.Patience("s3://bucket/part.jsonl").retried(lambda: b"the cat") == b"the cat"
