"""What small functions of `filtering` give for an example each."""

from __future__ import annotations

from lmgauge.filtering import documents, options


def test_documents() -> None:
    assert documents.DocumentSums.nothing(2).events.tolist() == [0, 0]


def test_options() -> None:
    assert options.percent_name(10) == "p10"
    assert options.percent_name(99.5) == "p99.5"
