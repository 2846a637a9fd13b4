"""What is taken as independent, in words and signatures, and the notes where units are few."""

from __future__ import annotations

import pytest

from lmgauge.numerics.independence import caveats, in_signature, in_words
from lmgauge.numerics.intervals import Interval


def interval(unit: str, units: int, alike: float = 1.0) -> Interval:
    return Interval(1.0, 2.0, 0.95, "jackknife", unit, units, alike)


@pytest.mark.parametrize(
    ("units", "documents_by", "words"),
    [
        (interval("documents", 1500), "files", "1,500 documents (files) are taken as independent"),
        (interval("segments", 40), "segments", "40 segments are taken as independent, as --document segment says"),
        (interval("segments", 40), "field id", "40 segments are taken as independent, as each is a document (field id)"),
        (
            interval("unknown", 40, 2.84),
            "unknown",
            "neighboring segments are similar, so the interval is 2.8 times as wide as for independent segments; if "
            "segments form documents, use --document",
        ),
        (
            interval("unknown", 40),
            "unknown",
            "40 segments are taken as independent, as neighbors are not similar; if segments form documents, use --document",
        ),
        (
            interval("unknown", 40, 1.04),
            "unknown",
            "40 segments are taken as independent, as neighbors are not similar; if segments form documents, use --document",
        ),
        (
            interval("unknown", 40, 3.0),
            "files",
            "fewer than 6 documents, so this is about text like these; neighboring segments are similar, so the interval is "
            "3 times as wide as for independent segments",
        ),
    ],
)
def test_words(units: Interval, documents_by: str, words: str) -> None:
    assert in_words(units, documents_by) == words


def test_too_few_segments_to_tell_are_not_called_unlike() -> None:
    assert in_words(interval("unknown", 10), "unknown") == (
        "10 segments are taken as independent (too few to tell whether neighbors are similar); if segments form documents, "
        "use --document"
    )


def test_a_few_documents_that_hold_most_of_the_text_are_told() -> None:
    units = Interval(1.0, 2.0, 0.95, "jackknife", "documents", 41, 1.0, 2)
    assert list(caveats(units)) == [
        "a few of the 41 documents hold most of the text, so they count as 2: treat the interval as rough"
    ]


def test_signatures() -> None:
    assert in_signature(interval("documents", 25)) == "25-documents"
    assert in_signature(interval("segments", 25)) == "segments"
    assert in_signature(interval("unknown", 25)) == "unknown"
    assert in_signature(None) == "none"


@pytest.mark.parametrize(
    ("units", "note"),
    [
        (interval("documents", 29), "only 29 documents: treat the interval as rough (30 or more needed)"),
        (interval("unknown", 10), "only 10 segments: treat the interval as rough (30 or more needed)"),
        (None, "no interval and no test: these need 6 documents or segments"),
    ],
)
def test_few_units_are_told(units: Interval | None, note: str) -> None:
    assert list(caveats(units)) == [note]


def test_many_units_are_not() -> None:
    assert not list(caveats(interval("documents", 30)))
