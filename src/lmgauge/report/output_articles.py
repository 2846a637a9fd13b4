"""Segments with the outputs of systems, as data for the page's template: short enough for a page, safe to show."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

from lmgauge.readable import visible_on_page as clean
from lmgauge.report import blocks as doc
from lmgauge.report.formats import in_words
from lmgauge.tasks.alignment import Alignment
from lmgauge.tasks.segment_examples import Output, ShownSegment, pairs_within, window

OPERATIONS = {"equal": "", "substitute": "substituted", "delete": "deleted", "insert": "inserted"}
_UNITS_OF_PAGE = 9_000  # pairs of all alignments of a page, each of about 90 bytes
_FEWEST, _MOST = 12, 120  # of a segment
_CHARACTERS_OF_PAGE = 300_000  # of the texts of a page, without what colors them
_SHORTEST, _LONGEST = 60, 1_500  # of a text
_LONGEST_UNIT = 60

Pair = tuple[str, str, str]


def articles(block: doc.Outputs) -> list[dict[str, Any]]:
    """Return for each segment what the template shows.

    Args:
        block: segments, each with the same systems.
    """
    if not block.items:
        return []
    texts = sum(len(item.outputs) for item in block.items)
    units = min(_MOST, max(_FEWEST, _UNITS_OF_PAGE // texts))
    size = min(_LONGEST, max(_SHORTEST, _CHARACTERS_OF_PAGE // (texts + len(block.items))))
    return [_article(block, item, units, size) for item in block.items]


def _article(block: doc.Outputs, item: ShownSegment, units: int, size: int) -> dict[str, Any]:
    most = 4 * units if item.outputs[0].alignment.unit == "character" else units
    first, last = window(item, most) if block.aligned else (0, 0)
    is_cut = last < len(item.outputs[0].alignment.reference) if block.aligned else _is_longer(item, size)
    return {
        "segment": item.segment,
        "group": clean(item.group),
        "why": [clean(reason) for reason in item.why],
        "references": [] if block.aligned else [_short(clean(text), size) for text in item.references],
        "unit": item.outputs[0].alignment.unit,
        "direction": direction(item.references[0]),
        "outputs": [
            {
                "system": clean(output.system),
                "figures": _figures(block, output),
                "pairs": list(_pairs(output.alignment, first, last, most)) if block.aligned else [],
                "pieces": [] if block.aligned else list(_pieces(output.alignment, size)),
            }
            for output in item.outputs
        ],
        "is_cut": is_cut,
    }


def direction(text: str) -> str:
    """Return the direction of a text: that of its first letter, as browsers have it with dir="auto".

    >>> direction("42 \u05d0b"), direction("a\u05d0")
    ('rtl', 'ltr')
    """
    strong = (unicodedata.bidirectional(character) for character in text[:1000])
    return "rtl" if next((kind for kind in strong if kind in ("L", "R", "AL")), "L") != "L" else "ltr"


def _figures(block: doc.Outputs, output: Output) -> str:
    score = in_words(doc.Number(output.score, 1, "percent" if block.percent else "number"))
    if not block.aligned:
        return f"{block.metric} {score}"
    one = output.alignment
    kinds = ((one.substitutions, "substituted"), (one.deletions, "deleted"), (one.insertions, "inserted"))
    counts = ", ".join(f"{count:,} {name}" for count, name in kinds if count) or "no error"
    return f"{block.metric} {score} · {counts}"


def _is_longer(item: ShownSegment, size: int) -> bool:
    return any(len(text) > size for text in item.references) or any(
        sum(len(unit) + 1 for unit in output.alignment.hypothesis) > size + 1 for output in item.outputs
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _pairs(alignment: Alignment, first: int, last: int, most: int) -> Iterator[Pair]:
    """Yield operation, reference and hypothesis; characters that are equal stand together up to the end of a word."""
    pairs: Iterable[Pair] = (
        (OPERATIONS[operation], clean(reference or ""), clean(hypothesis or ""))
        for operation, reference, hypothesis in islice(pairs_within(alignment, first, last), 2 * most)
    )
    if alignment.unit == "character":
        pairs = _joined(pairs)
    return ((operation, _short(one, _LONGEST_UNIT), _short(other, _LONGEST_UNIT)) for operation, one, other in pairs)


def _joined(pairs: Iterable[Pair]) -> Iterator[Pair]:
    run = ""
    for operation, one, other in pairs:
        if not operation:
            run += one
        if run and (operation or one == " " or len(run) >= _LONGEST_UNIT // 4):
            yield "", run, run
            run = ""
        if operation:
            yield operation, one, other
    if run:
        yield "", run, run


def _pieces(alignment: Alignment, size: int) -> Iterator[tuple[bool, str]]:
    """Yield the text of a system in pieces: whether the reference lacks them, and what they are."""
    gap = " " if alignment.unit == "word" else ""
    units = ((operation != "equal", other) for operation, _, other in alignment.pairs() if other is not None)
    left = size
    for differs, run in groupby(units, key=lambda unit: unit[0]):
        text = clean(gap.join(unit for _, unit in run))
        yield differs, _short(text, max(1, left))
        left -= len(text) + len(gap)
        if left <= 0:
            return
