"""What an interval or a test takes as independent, in words and in signatures."""

from __future__ import annotations

from collections.abc import Iterator

from lmgauge.numerics.intervals import DOCUMENTS, FEWEST_POINTS, FEWEST_UNITS, SEGMENTS, UNKNOWN, Interval, Spread

FEW_UNITS = 30
"""Below it an interval is rough: Student's t and the jackknife rest on few values."""


Units = Interval | Spread
"""What says how many independent units it is made of."""


def in_words(units: Units, documents_by: str) -> str:
    """Return what is taken as independent, and why, as a sentence without its full stop."""
    if units.unit == DOCUMENTS:
        return f"{units.units:,} documents ({documents_by}) are taken as independent"
    if units.unit == SEGMENTS:
        why = "as --document segment says" if documents_by == SEGMENTS else f"as each is a document ({documents_by})"
        return f"{units.units:,} segments are taken as independent, {why}"
    known = documents_by != UNKNOWN
    few = f"fewer than {FEWEST_UNITS} documents cannot tell how documents vary, so this is about text like these"
    why = few if known else "documents are not known"
    if units.alike > 1.0:
        remedy = "" if known else "; name the documents with --document"
        return (
            f"{why}; neighboring segments are alike, which makes the interval {units.alike:.2g} times as wide as for "
            f"independent segments{remedy}"
        )
    remedy = "" if known else " (--document names documents)"
    if units.units < FEWEST_POINTS:
        too_few = f"{units.units} segments are too few to tell whether neighbors are alike"
        return f"{why}; {too_few}, so they are taken as independent{remedy}"
    return f"{why}; neighboring segments do not look alike, so {units.units:,} segments are taken as independent{remedy}"


def in_signature(units: Units | None) -> str:
    """Return what is taken as independent as the value of a key of a signature: "25-documents", "segments", "unknown"."""
    if units is None:
        return "none"
    return f"{units.units}-documents" if units.unit == DOCUMENTS else units.unit


def caveats(units: Units | None) -> Iterator[str]:
    """Yield a note where the units are too few to rely on."""
    if units is None:
        yield f"fewer than {FEWEST_UNITS} documents or segments cannot tell how the figure varies: no interval and no test"
        return
    name = DOCUMENTS if units.unit == DOCUMENTS else SEGMENTS
    if units.units < FEW_UNITS:
        yield f"only {units.units} {name}: the interval is rough; {FEW_UNITS} or more make it reliable"
    elif 0 < units.effective < FEW_UNITS:
        yield (
            f"a few of the {units.units:,} {name} hold most of the text: all together count as {units.effective}, and the "
            "interval is rough"
        )
