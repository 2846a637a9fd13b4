"""Slices of one or two models, and stretches of text that stand out: shared by reports."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from lmgauge.evaluation.diagnosis.results import finite_perplexity, share_of_bits, slice_perplexity
from lmgauge.evaluation.slicing.examples import Example
from lmgauge.evaluation.slicing.sums import Slice, Slices
from lmgauge.numerics.independence import FEW_UNITS
from lmgauge.numerics.intervals import UNKNOWN
from lmgauge.numerics.lower_bound import LowerBound
from lmgauge.report import blocks as doc

_PLURAL = {"byte": "bytes", "event": "events"}
# Ways to cut the text whose slices have an order, so that a line through them says something.
_ORDERED = ("occurrences", "longest n-gram", "matched order", "context used", "position", "length")
# Ways to cut the text whose slices have an order that says nothing: a chart has them by their values.
_UNORDERED = ("group",)
# Ways to cut the text where it says something which slices have most of the bits.
_SHARED = ("class", "group", "occurrences")


def slice_blocks(slices: Slices, names: Sequence[str], whole: float | None = None) -> doc.Document:
    """Return a table with a row for each slice, and charts."""
    # For one model events, bytes, share of the bits, bits per byte and perplexity; for two bytes, bits per byte of each,
    # their difference with its 95 % interval and p-value. Charts are of the bits per byte, and of the share of the bits or
    # the difference.
    # whole: bits per byte (or event) of the whole text, for one model.
    if not slices.rows:
        return ()
    columns = [*doc.columns(slices.rows, "label")]
    columns += _of_one(slices) if len(names) == 1 else _of_two(slices, names)
    title = f"by {slices.name}" + (f", bits per {slices.unit}" if len(names) == 2 else "")
    table = doc.Table(tuple(columns), title, footnotes=tuple(_independence(slices)), cut=slices.name)
    return (table, *_charts(slices, names, whole))


def _independence(slices: Slices) -> Iterator[str]:
    # What the intervals of ordered slices take as independent: the last ones, far into a text, may rest on few.
    rows = [row for row in slices.rows if row.units]
    if not rows or slice_kind(slices) != "line":
        return
    least = min(rows, key=lambda row: row.units)
    what = "segments, allowing for similar neighbors" if least.unit == UNKNOWN else least.unit
    rough = f"; below {FEW_UNITS} it is rough" if least.units < FEW_UNITS else ""
    yield f"95 % intervals over {what}, the fewest ({least.units:,}) in {least.label}{rough}."


def _of_one(slices: Slices) -> list[doc.Column]:
    rows = slices.rows
    shares = share_of_bits(slices)
    columns = [*doc.columns(rows, "ranges")]
    if slices.unit == "byte":
        columns.append(doc.numbers("bytes", [row.size for row in rows], form="count", drop=2))
    if None not in shares:
        columns.append(doc.numbers("share of bits", shares, 1, "percent"))
    if slices.unit == "byte":
        columns.append(doc.numbers("bits/byte", [row.bits_per_unit[0] for row in rows], 3))
    if any(row.interval is not None for row in rows):
        columns.append(doc.Column("95 % interval", [doc.between(row.interval, 3) for row in rows], 4))
    columns.append(doc.numbers("perplexity", [slice_perplexity(row) for row in rows], 1, drop=3))
    if any(row.zeros[0] for row in rows):
        columns.append(doc.numbers("p = 0", [row.zeros[0] for row in rows], form="count"))
        columns.append(doc.numbers("ppl without", [finite_perplexity(row) for row in rows], 1))
    return columns


def _of_two(slices: Slices, names: Sequence[str]) -> list[doc.Column]:
    rows = slices.rows
    return [
        doc.numbers(_PLURAL.get(slices.unit, slices.unit), [row.size for row in rows], form="count", drop=1),
        doc.numbers(names[0], [row.bits_per_unit[0] for row in rows], 3),
        doc.numbers(names[1], [row.bits_per_unit[1] for row in rows], 3),
        *doc.columns(rows, "difference", "interval", "p_value", "p_value_holm"),
    ]


def _charts(slices: Slices, names: Sequence[str], whole: float | None) -> Iterator[doc.ChartData]:
    # Charts of slices; those of many slices have the ones with most bits.
    rows, note = _most(slices)
    bits, kind = f"bits per {slices.unit}", slice_kind(slices)
    name = re.split(r" (?:in|of|seen|used|\()", slices.name)[0].replace(" ", "-")

    def chart(
        suffix: str, title: str, series: Sequence[doc.Series], kind: doc.ChartKind, y: str, **more: Any
    ) -> doc.ChartData:
        more |= {"note": "; ".join(filter(None, (more.get("note"), note)))}
        titled = f"{title} by {slices.name}"
        unit = more.pop("unit", "bits")
        return doc.ChartData(name + suffix, titled, slices.name, y, unit, tuple(series), kind=kind, cut=slices.name, **more)

    known = whole if whole is not None and math.isfinite(whole) else None
    of_bits = [_series(slices, rows, model, i) for i, model in enumerate(names)]
    rule = {} if known is None else {"rule": known, "rule_name": "the whole text"}
    yield chart("", bits.capitalize(), of_bits, kind, bits, better="lower", **rule)
    if len(names) == 2:
        if any(row.difference is not None for row in rows):
            first, second = names
            rows = _by_value(slices, rows, [row.difference for row in rows])
            ends = [row.interval for row in rows]
            gap = doc.series(f"{second} - {first}", [row.label for row in rows], [row.difference for row in rows], ends)
            more = {"rule": 0.0, "rule_name": "no difference", "note": f"below 0: {second} is better", "beside": 2}
            yield chart("-difference", f"Difference of {second} from {first}", [gap], kind, f"difference in {bits}", **more)
        return
    shares = dict(zip((row.label for row in slices.rows), share_of_bits(slices), strict=True))
    if None not in shares.values() and len(rows) > 1 and slices.name.startswith(_SHARED):
        share = [100 * (shares[row.label] or 0.0) for row in rows]
        of_share = doc.series(names[0], [row.label for row in rows], share)
        yield chart("-share", "Share of all bits", [of_share], "bars", "share of all bits", unit="%")


def slice_kind(slices: Slices) -> doc.ChartKind:
    """Return how slices are drawn: as a line where their order says something."""
    return "line" if slices.name.startswith(_ORDERED) else "intervals"


def _most(slices: Slices) -> tuple[Sequence[Slice], str]:
    # Slices to draw, and a note if some are left out.
    rows: Sequence[Slice] = slices.rows
    note = ""
    if len(rows) > doc.MOST_CHART_ROWS and slice_kind(slices) != "line":
        largest = sorted(rows, key=lambda row: -max(row.finite_bits, default=0.0))[: doc.MOST_CHART_ROWS]
        labels = {row.label for row in largest}
        note = f"the {doc.MOST_CHART_ROWS} of {len(rows):,} with most bits; the table has all"
        rows = [row for row in rows if row.label in labels]
    return _by_value(slices, rows, [row.bits_per_unit[0] for row in rows]), note


def _by_value(slices: Slices, rows: Sequence[Slice], values: Sequence[float | None]) -> Sequence[Slice]:
    # Slices whose own order says nothing by their values, the highest first.
    if slices.name not in _UNORDERED or any(isinstance(value, LowerBound) for value in values):
        return rows
    places = sorted(range(len(rows)), key=lambda i: -math.inf if (value := values[i]) is None else value, reverse=True)
    return [rows[i] for i in places]


def _series(slices: Slices, rows: Sequence[Slice], name: str, model: int) -> doc.Series:
    # Bits per byte (or event) of a model; an interval is known where there is one model only.
    alone = all(len(row.bits) == 1 for row in slices.rows)
    ends = [row.interval for row in rows] if alone else ()
    return doc.series(name, [row.label for row in rows], [row.bits_per_unit[model] for row in rows], ends)


def example_blocks(title: str, examples: Sequence[Example], names: Sequence[str]) -> doc.Document:
    """Return a table with a row for each stretch of text: what it costs, where it is, and what stands around it."""
    # examples: in the order to be shown; names: of the models; for two, the bits of each and the difference are shown; for
    # one its bits, and what the stretch stands out by, if that is something else.
    if not examples:
        return ()
    bits = [doc.numbers(name, [e.bits[i] for e in examples], 1, unit="bits") for i, name in enumerate(names)]
    values = [e.value for e in examples]
    if len(names) == 2:
        columns = [*bits, doc.numbers("difference", values, 1, "signed", drop=2)]
    else:
        columns = [doc.numbers("bits", [e.bits[0] for e in examples], 1)]
        if any(e.value != e.bits[0] and math.isfinite(e.bits[0]) for e in examples):
            columns.append(doc.numbers("beyond average", values, 1, "signed", drop=2))
    files = [PurePath(e.source).name or e.source for e in examples]
    if len({e.source for e in examples}) == 1:
        title += f" ({files[0]})"
        columns.append(doc.Column("line", [str(e.line) for e in examples], 1))
    else:
        columns.append(doc.labels("where", [f"{file}:{e.line}" for file, e in zip(files, examples, strict=True)], drop=1))
    alone = all(not e.before and not e.after for e in examples)
    columns.append(doc.Column("text" if alone else "the token in its text", [_tokens(e) for e in examples], align="left"))
    return (doc.Table(tuple(columns), title, anchors=tuple(e.segment for e in examples)),)


def _tokens(example: Example) -> doc.Tokens:
    if not example.before and not example.after:
        return doc.Tokens((example.text,))
    return doc.Tokens((example.before, example.text, example.after), meant=1)
