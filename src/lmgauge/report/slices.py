"""Slices of one or two models, and stretches of text that stand out: shared by reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePath

from lmgauge.evaluation.diagnosis.results import finite_perplexity, share_of_bits, slice_perplexity
from lmgauge.evaluation.slicing.examples import Example
from lmgauge.evaluation.slicing.sums import Slices
from lmgauge.report import blocks as doc

_PLURAL = {"byte": "bytes", "event": "events"}
# Ways to cut the text whose slices have an order, so that a line through them says something.
_ORDERED = ("occurrences", "longest n-gram", "matched order", "position", "length")


def slice_blocks(slices: Slices, names: Sequence[str]) -> doc.Document:
    """Return a table with a row for each slice, and a chart where the slices have an order.

    For one model events, bytes, share of the bits, bits per byte and perplexity; for two bytes, bits per byte of each,
    their difference with its 95 % interval and p-value.

    Args:
        slices: of as many models as there are names.
        names: of the models.
    """
    if not slices.rows:
        return ()
    columns = [doc.labels("", [row.label for row in slices.rows])]
    columns += _of_one(slices) if len(names) == 1 else _of_two(slices, names)
    table = doc.Table(tuple(columns), f"by {slices.name}" + (f", bits per {slices.unit}" if len(names) == 2 else ""))
    return (table, _chart(slices, names)) if slices.name.startswith(_ORDERED) else (table,)


def _of_one(slices: Slices) -> list[doc.Column]:
    rows = slices.rows
    shares = share_of_bits(slices)
    columns = [doc.numbers("events", [row.ranges for row in rows], form="count", drop=1)]
    if slices.unit == "byte":
        columns.append(doc.numbers("bytes", [row.size for row in rows], form="count", drop=2))
    if None not in shares:
        columns.append(doc.numbers("share of bits", shares, 1, "percent"))
    if slices.unit == "byte":
        columns.append(doc.numbers("bits/byte", [row.bits_per_unit[0] for row in rows], 3))
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
        doc.numbers("difference", [row.difference for row in rows], 3, "signed"),
        doc.Column("95 % interval", [doc.between(row.interval, 3, "signed") for row in rows], 2),
        doc.numbers("p", [row.p_value for row in rows], form="p", drop=3),
    ]


def _chart(slices: Slices, names: Sequence[str]) -> doc.ChartData:
    x = tuple(row.label for row in slices.rows)
    series = [doc.Series(name, x, tuple(row.bits_per_unit[i] for row in slices.rows)) for i, name in enumerate(names)]
    bits = f"bits per {slices.unit}"
    name = slices.name.split(" (")[0].replace(" ", "-")
    return doc.ChartData(name, f"{bits} by {slices.name}", slices.name, bits, "bits", tuple(series), better="lower")


def example_blocks(title: str, examples: Sequence[Example], names: Sequence[str]) -> doc.Document:
    """Return a table with a row for each stretch of text: what it costs, where it is, and what stands around it.

    Args:
        title: above the table.
        examples: in the order to be shown.
        names: of the models; for two, the bits of each and the difference are shown; for one its bits, and what the stretch
            stands out by, if that is something else.
    """
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
    return (doc.Table(tuple(columns), title),)


def _tokens(example: Example) -> doc.Tokens:
    if not example.before and not example.after:
        return doc.Tokens((example.text,))
    return doc.Tokens((example.before, example.text, example.after), meant=1)
