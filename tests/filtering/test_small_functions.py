"""What small functions of `filtering` give for an example each."""

from __future__ import annotations

from lmgauge.filtering import document_scores, options


def test_document_scores() -> None:
    assert document_scores.DocumentSums.nothing(2).events.tolist() == [0, 0]


def test_options() -> None:
    assert options.percent_name(10) == "p10"
    assert options.percent_name(99.5) == "p99.5"
