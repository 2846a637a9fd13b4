"""What small functions of `filtering` give for an example each."""

from __future__ import annotations

from lmgauge.filtering import document_scores, percentile_values


def test_document_scores() -> None:
    assert document_scores.DocumentSums.nothing(2).totals.events.tolist() == [0, 0]


def test_percentile_values() -> None:
    assert percentile_values.percent_name(10) == "p10"
    assert percentile_values.percent_name(99.5) == "p99.5"
