"""A model on a sample of documents: the answer, each figure with its interval, the documents that the error comes from."""

from __future__ import annotations

from dataclasses import replace

from lmgauge.evaluation.sampled import Estimate
from lmgauge.numerics.figures import TITLES
from lmgauge.report import blocks as doc
from lmgauge.report.formats import counted, in_words, percent


def blocks(estimate: Estimate) -> doc.Document:
    """Return the answer, the figures beside those of a plain sample, the residuals, what a reader must know, signature."""
    figures = [replace(one, metric=TITLES[one.metric]) for one in estimate.figures]
    names = () if estimate.proxies else ("metric", "value", "interval")
    lead, ways = estimate.figure("bits_per_byte"), ("with proxies", "without proxies")
    rows = doc.series("bits per byte", ways, [lead.value, lead.plain], [lead.interval, lead.plain_interval])
    chart = doc.ChartData("estimate", "Bits per byte of the whole text", "sample", "bits per byte", "bits", (rows,))
    return (
        doc.Heading(f"{estimate.model} on a sample of documents"),
        doc.Verdict("fact", _answer(estimate)),
        doc.Table(doc.columns(figures, *names), f"of all {counted(estimate.all_documents, 'document')}, estimated"),
        *([replace(chart, kind="intervals", better="lower")] if estimate.proxies else []),
        *([doc.Table(_groups(estimate), "groups, estimated from the same sample")] if estimate.groups else []),
        doc.Table(doc.columns(estimate.residuals), "documents that the error comes from"),
        *doc.notes((*estimate.notes, _INTERVAL)),
        doc.Signature(estimate.signature),
    )


_INTERVAL = "95 % interval: where the figure of the whole text is; only the documents are drawn by chance."


def _groups(estimate: Estimate) -> tuple[doc.Column, ...]:
    drawn = [f"{group.documents:,} of {group.all_documents:,}" for group in estimate.groups]
    columns = [doc.Column("group", [group.group for group in estimate.groups], align="left"), doc.Column("drawn", drawn)]
    for title, metric, drop in (("bits/byte", "bits_per_byte", 0), ("perplexity", "perplexity", 1)):
        figures = [{one.metric: one for one in group.figures}.get(metric) for group in estimate.groups]
        columns.append(doc.Column(title, [doc.Number(one.value) if one else "too few" for one in figures], drop))
        columns.append(doc.Column("95 % interval", [doc.between(one.interval if one else None) for one in figures], drop))
    return tuple(columns)


def _answer(estimate: Estimate) -> str:
    lead, needed = estimate.figure("bits_per_byte"), estimate.documents_needed
    value, ends = (in_words(cell) for cell in (doc.Number(lead.value), doc.between(lead.interval)))
    scored = f"{estimate.documents:,} of {counted(estimate.all_documents, 'document')}"
    says = f"{scored} ({percent(estimate.share)} of the bytes) put the whole text at {value} bits per byte (95 %: {ends})."
    if not estimate.proxies:
        return says
    saved = counted(max(0, needed - estimate.documents), "document")
    says += f" {saved} saved: without proxies it takes {needed:,} to be as sure"
    return f"{says}; proxies and model correlate by {estimate.correlation:.3f}."
