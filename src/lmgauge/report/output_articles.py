"""Segments with the outputs of systems, as data for the page's template: short enough for a page, safe to show."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Any

from lmgauge.base.escaping import visible_on_page as clean
from lmgauge.report import blocks as doc
from lmgauge.report.formats import in_words
from lmgauge.tasks.alignment import Alignment
from lmgauge.tasks.segment_examples import Output, ShownSegment, pairs_within, window

OPERATIONS = {"equal": "", "substitute": "substituted", "delete": "deleted", "insert": "inserted"}
_BYTES = 1_200_000  # of all texts on a page, with what colors them
_MOST_UNITS = 120  # of the reference of a segment
_LONGEST = 1_500  # of a reference that is shown once
_LONGEST_UNIT = 60
_TOGETHER = 40  # units of a piece of text
_PAIR, _ERROR_PAIR, _MARK = 60, 110, 30  # bytes around a text

Piece = tuple[str, ...]
"""What was done, and the text; of aligned ones the unit of the reference and that of the output."""


def articles(block: doc.Outputs) -> list[dict[str, Any]]:
    """Return for each segment what the template shows."""
    if not block.items:
        return []
    texts = sum(len(item.outputs) + (0 if block.aligned else len(item.references)) for item in block.items)
    return [_article(block, item, _BYTES // texts) for item in block.items]


def _article(block: doc.Outputs, item: ShownSegment, room: int) -> dict[str, Any]:
    unit = item.outputs[0].alignment.unit
    most = 4 * _MOST_UNITS if unit == "character" else _MOST_UNITS
    first, last = window(item, min(most, max(1, room // _PAIR))) if block.aligned else (0, 0)
    pieces = [
        list(_pairs(output.alignment, first, last) if block.aligned else _pieces(output.alignment))
        for output in item.outputs
    ]
    shown = [_within(room, of_output) for of_output in pieces]
    size = min(_LONGEST, room // 4)
    is_cut = block.aligned and (first > 0 or last < len(item.outputs[0].alignment.reference))
    is_cut |= any(len(text) > size for text in item.references) and not block.aligned
    return {
        "segment": item.segment,
        "group": _short(clean(item.group), _LONGEST_UNIT),
        "why": [clean(reason) for reason in item.why],
        "references": [] if block.aligned else [_short(clean(text), size) for text in item.references],
        "unit": unit,
        "direction": direction(item.references[0]),
        "outputs": [
            {"system": _short(clean(output.system), _LONGEST_UNIT), "figures": _figures(block, output), "pieces": some}
            for output, some in zip(item.outputs, shown, strict=True)
        ],
        "is_cut": is_cut or any(len(some) < len(every) for some, every in zip(shown, pieces, strict=True)),
    }


def _within(room: int, pieces: Sequence[Piece]) -> list[Piece]:
    shown: list[Piece] = []
    for operation, *texts in pieces:
        around = (_ERROR_PAIR if operation else _PAIR) if len(texts) > 1 else _MARK
        room -= around + sum(len(escape(text).encode()) for text in texts)
        if room < 0 and shown:
            break
        shown.append((operation, *texts))
    return shown


def direction(text: str) -> str:
    """Return the direction of a text: that of its first letter, as browsers have it with dir="auto"."""
    strong = (unicodedata.bidirectional(character) for character in text[:1000])
    return "rtl" if next((kind for kind in strong if kind in ("L", "R", "AL")), "L") != "L" else "ltr"


def _figures(block: doc.Outputs, output: Output) -> str:
    score = in_words(doc.Number(output.score, 1, "percent" if block.percent else "number"))
    if not block.aligned:
        return f"{clean(block.metric)} {score}"
    one = output.alignment
    kinds = ((one.substitutions, "substituted"), (one.deletions, "deleted"), (one.insertions, "inserted"))
    counts = ", ".join(f"{count:,} {name}" for count, name in kinds if count) or "no error"
    return f"{clean(block.metric)} {score} · {counts}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _pairs(alignment: Alignment, first: int, last: int) -> Iterator[Piece]:
    # Operation, reference and hypothesis; characters that are equal stand together up to the end of a word.
    pairs: Iterable[Piece] = (
        (OPERATIONS[operation], clean(reference or ""), clean(hypothesis or ""))
        for operation, reference, hypothesis in pairs_within(alignment, first, last)
    )
    if alignment.unit == "character":
        pairs = _joined(pairs)
    return ((operation, *(_short(text, _LONGEST_UNIT) for text in texts)) for operation, *texts in pairs)


def _joined(pairs: Iterable[Piece]) -> Iterator[Piece]:
    run = ""
    for pair in pairs:
        if not pair[0]:
            run += pair[1]
        if run and (pair[0] or pair[1] == " " or len(run) >= _LONGEST_UNIT // 4):
            yield "", run, run
            run = ""
        if pair[0]:
            yield pair
    if run:
        yield "", run, run


def _pieces(alignment: Alignment) -> Iterator[Piece]:
    # Text of a system: whether the reference lacks a piece ("other", else ""), and the piece.
    gap = " " if alignment.unit == "word" else ""
    units = (
        ("" if operation == "equal" else "other", other) for operation, _, other in alignment.pairs() if other is not None
    )
    for differs, run in groupby(units, key=lambda unit: unit[0]):
        words: list[str] = []
        for _, unit in run:
            words.append(unit)
            if len(words) == _TOGETHER:
                yield differs, clean(gap.join(words))
                words = []
        if words:
            yield differs, clean(gap.join(words))
