"""Documents selected for being like a target: the answer, and how the documents differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted, in_words, percent

if TYPE_CHECKING:
    from lmgauge.filtering.selection import Selection


def blocks(selection: Selection) -> doc.Document:
    """Return the answer, the chart, examples, what a reader must know, and the signature."""
    chosen = selection.chosen
    bits = f"{in_words(doc.Number(chosen.threshold, 4))} bits per token"
    of = f"{counted(chosen.documents, 'document')}, {percent(chosen.share)} of the pool's text"
    without_words = f"{counted(selection.without_words, 'document')} of the pool without a word: never selected"
    return (
        doc.Heading("Documents that are most like the target"),
        doc.Verdict("fact", f"Selected: {of}, which differ by at most {bits}."),
        _totals(selection),
        *_chart(selection, bits),
        *_examples(selection),
        *doc.notes((*([without_words] if selection.without_words else ()), *selection.notes)),
        doc.Signature(selection.signature),
    )


def _totals(selection: Selection) -> doc.Lines:
    target = f"{counted(selection.in_domain_bytes, 'byte')}, {selection.vocabulary:,} words in the vocabulary of all models"
    return doc.Lines(
        (
            ("pool", f"{counted(selection.documents, 'document')}, {counted(selection.bytes, 'byte')}"),
            ("selected", f"{counted(selection.chosen.documents, 'document')}, {counted(selection.chosen.bytes, 'byte')}"),
            ("in-domain text", target),
            *((("written", selection.outputs),) if selection.outputs else ()),
        )
    )


def _examples(selection: Selection) -> Iterator[doc.Block]:
    # Documents of the pool, by where they stand in the order.
    if not selection.examples:
        return
    yield doc.Heading("Documents of the pool, by their difference")
    parts = []
    for where, examples in selection.examples.items():
        items = tuple((f"{one.place}, {one.difference:.2f} bits", " ".join(one.text.split())) for one in examples)
        parts.append(doc.Quotes(where, items))
    yield doc.Gallery(tuple(parts))


def _chart(selection: Selection, bits: str) -> Iterator[doc.ChartData]:
    histogram = selection.histogram
    if histogram is not None:
        bins = doc.Series("documents", histogram.edges, (*histogram.counts, None))
        yield doc.ChartData(
            "differences", "How the documents of the pool differ from the target", "difference", "documents", "", (bins,),
            x_unit="bits per token", kind="histogram", note=f"selected are those up to {bits}",
        )  # fmt: skip
