"""A model on a sample of documents: the answer, each figure with its interval, the documents that the error comes from."""

from __future__ import annotations

from dataclasses import replace

from lmgauge.evaluation.sampled import Estimate
from lmgauge.numerics.figures import TITLES
from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted, in_words, percent


def blocks(estimate: Estimate) -> doc.Document:
    """Return the answer, the figures beside those of a plain sample, the residuals, what a reader must know, the signature."""
    figures = [replace(one, metric=TITLES[one.metric]) for one in estimate.figures]
    names = () if estimate.proxies else ("metric", "value", "interval")
    of_proxies = () if not estimate.proxies else (_chart(estimate),)
    return (
        doc.Heading(f"{estimate.model} on a sample of documents"),
        doc.Verdict("fact", _answer(estimate)),
        doc.Table(doc.columns(figures, *names), f"of all {counted(estimate.all_documents, 'document')}, estimated"),
        *of_proxies,
        doc.Table(doc.columns(estimate.residuals), "documents that the error comes from"),
        *doc.notes((*estimate.notes, _INTERVAL)),
        doc.Signature(estimate.signature),
    )


_INTERVAL = "95 % interval: where the figure of the whole text is; only the documents are drawn by chance."


def _answer(estimate: Estimate) -> str:
    lead = estimate.figure("bits_per_byte")
    value, ends = (in_words(cell) for cell in (doc.Number(lead.value), doc.between(lead.interval)))
    scored = f"{counted(estimate.documents, 'document')} of {estimate.all_documents:,} ({percent(estimate.share)} of the bytes)"
    says = f"{scored} put the whole text at {value} bits per byte (95 %: {ends})."
    if not estimate.proxies:
        return says
    saved = estimate.documents_needed - estimate.documents
    worth = (
        f"without proxies it takes {counted(estimate.documents_needed, 'document')}, {saved:,} more"
        if saved > 0
        else "without proxies it takes no more documents"
    )
    return f"{says} To be as sure {worth}; proxies and model correlate by {estimate.correlation:.3f}."


def _chart(estimate: Estimate) -> doc.ChartData:
    lead = estimate.figure("bits_per_byte")
    rows = doc.series("bits per byte", _WAYS, [lead.value, lead.plain], [lead.interval, lead.plain_interval])
    return doc.ChartData(
        "estimate", "Bits per byte of the whole text", "sample", "bits per byte", "bits", (rows,), kind="intervals", better="lower"
    )


_WAYS = ("with proxies", "without proxies")
