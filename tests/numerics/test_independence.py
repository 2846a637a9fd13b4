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
            "documents are not known; neighboring segments are alike, which makes the interval 2.8 times as wide as for "
            "independent segments; name the documents with --document",
        ),
        (
            interval("unknown", 40),
            "unknown",
            "documents are not known; neighboring segments do not look alike, so 40 segments are taken as independent "
            "(--document names documents)",
        ),
        (
            interval("unknown", 40, 3.0),
            "files",
            "fewer than 6 documents cannot tell how documents vary, so this is about text like these; neighboring segments "
            "are alike, which makes the interval 3 times as wide as for independent segments",
        ),
    ],
)
def test_words(units: Interval, documents_by: str, words: str) -> None:
    assert in_words(units, documents_by) == words


def test_too_few_segments_to_tell_are_not_called_unlike() -> None:
    assert in_words(interval("unknown", 10), "unknown") == (
        "documents are not known; 10 segments are too few to tell whether neighbors are alike, so they are taken as "
        "independent (--document names documents)"
    )


def test_a_few_documents_that_hold_most_of_the_text_are_told() -> None:
    units = Interval(1.0, 2.0, 0.95, "jackknife", "documents", 41, 1.0, 2)
    assert list(caveats(units)) == [
        "a few of the 41 documents hold most of the text: all together count as 2, and the interval is rough"
    ]


def test_signatures() -> None:
    assert in_signature(interval("documents", 25)) == "25-documents"
    assert in_signature(interval("segments", 25)) == "segments"
    assert in_signature(interval("unknown", 25)) == "unknown"
    assert in_signature(None) == "none"


@pytest.mark.parametrize(
    ("units", "note"),
    [
        (interval("documents", 29), "only 29 documents: the interval is rough; 30 or more make it reliable"),
        (interval("unknown", 10), "only 10 segments: the interval is rough; 30 or more make it reliable"),
        (None, "fewer than 6 documents or segments cannot tell how the figure varies: no interval and no test"),
    ],
)
def test_few_units_are_told(units: Interval | None, note: str) -> None:
    assert list(caveats(units)) == [note]


def test_many_units_are_not() -> None:
    assert not list(caveats(interval("documents", 30)))
