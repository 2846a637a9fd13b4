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
    why = f"fewer than {FEWEST_UNITS} documents, so this is about text like these; " if known else ""
    remedy = "" if known else "; if segments form documents, use --document"
    if units.alike >= 1.05:  # below it the interval is as wide, in the digits that are printed
        wider = f"so the interval is {units.alike:.2g} times as wide as for independent segments"
        return f"{why}neighboring segments are similar, {wider}{remedy}"
    if units.units < FEWEST_POINTS:
        return (
            f"{why}{units.units} segments are taken as independent (too few to tell whether neighbors are similar){remedy}"
        )
    return f"{why}{units.units:,} segments are taken as independent, as neighbors are not similar{remedy}"


def in_signature(units: Units | None) -> str:
    """Return what is taken as independent as the value of a key of a signature: "25-documents", "segments", "unknown"."""
    if units is None:
        return "none"
    return f"{units.units}-documents" if units.unit == DOCUMENTS else units.unit


def caveats(units: Units | None) -> Iterator[str]:
    """Yield a note where the units are too few to rely on."""
    if units is None:
        yield f"no interval and no test: these need {FEWEST_UNITS} documents or segments"
        return
    name = DOCUMENTS if units.unit == DOCUMENTS else SEGMENTS
    if units.units < FEW_UNITS:
        yield f"only {units.units} {name}: treat the interval as rough ({FEW_UNITS} or more needed)"
    elif 0 < units.effective < FEW_UNITS:
        yield (
            f"a few of the {units.units:,} {name} hold most of the text, so they count as {units.effective}: treat the "
            "interval as rough"
        )
