"""The distance between two models."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lmgauge.evaluation.divergence.divergence import Divergence, Figure
from lmgauge.report import blocks as doc
from lmgauge.report.comparison import change_cells
from lmgauge.report.formats import in_words, number, percent

Row = tuple[str, doc.Number, doc.Cell]


def blocks(divergence: Divergence) -> doc.Document:
    """Return the figures, the context where the models are furthest apart, what a reader must know, and the signature.

    Args:
        divergence: of two models on one text.
    """
    names, values, intervals = zip(*_rows(divergence), strict=True)
    events = f"{_of(divergence.events, divergence.total_events)} events"
    segments = f"{_of(divergence.segments, divergence.total_segments)} segments"
    return (
        doc.Heading(f"A = {divergence.a}, B = {divergence.b}"),
        *_verdict(divergence),
        doc.Text(f"{events}, {segments}"),
        doc.Table((doc.labels("figure", names), doc.Column("value", values), doc.Column("95 % interval", intervals, 1))),
        *_quantiles(divergence),
        *_worst(divergence),
        *doc.notes([f"95 % intervals: {divergence.independence}."] if divergence.independence else []),
        *doc.notes(divergence.notes),
        doc.Signature(divergence.signature),
    )


def _verdict(result: Divergence) -> Iterator[doc.Verdict]:
    """Say whether B predicts the text better or worse than A, and how often both agree."""
    ratio, agreement = result.perplexity_ratio, result.top_1_agreement.value
    if ratio.value is None or not math.isfinite(ratio.value):
        return
    gap, ends = change_cells(ratio.value, ratio.interval, perplexity=True)
    between = "" if ratio.interval is None else f" (95 % interval {in_words(ends)})"
    level: doc.Level = "unknown"
    what = "is not told apart from that of A"
    if ratio.interval is None:
        what = "differs from that of A"
    elif ratio.interval.low > 1 or ratio.interval.high < 1:
        level, what = ("bad", "is higher than that of A") if ratio.interval.low > 1 else ("good", "is lower than that of A")
    alike = "" if agreement is None else f" Both expect the same token in {percent(agreement)} of the events."
    yield doc.Verdict(level, f"The perplexity of B {what}: {in_words(gap)}{between}.{alike}")


def _rows(result: Divergence) -> Iterator[Row]:
    yield _row("KL(A || B), nats", result.kl_ab_nats)
    yield _row("KL(A || B), bits", result.kl_ab_bits)
    if result.infinite_kl_ab:
        yield "  where finite, nats", doc.Number(result.kl_ab_without_infinite_nats, 6), ""
    for percentile, value in result.kl_ab_quantiles_nats.items():
        yield f"  {_percentile(percentile)}, nats", doc.Number(value, 6), ""
    yield _row("KL(B || A), nats", result.kl_ba_nats)
    yield _row("KL(B || A), bits", result.kl_ba_bits)
    yield _row("Jensen-Shannon, bits", result.jensen_shannon_bits)
    yield _row("total variation", result.total_variation)
    yield _row("top-1 agreement, %", result.top_1_agreement, 2, 100)
    for k, figure in result.top_k_overlap.items():
        if k > 1:
            yield _row(f"top-{k} overlap, %", figure, 2, 100)
    yield _row("true token: change of ln p", result.log_probability_change_nats)
    yield _row("true token: RMS change of p, %", result.probability_change_rms, 4, 100)
    yield _row("perplexity of A", result.perplexity_a, 3)
    yield _row("perplexity of B", result.perplexity_b, 3)
    yield _row("perplexity of B / A", result.perplexity_ratio, 5)


def _percentile(percent: str) -> str:
    return {"50": "median", "100": "maximum"}.get(percent, f"{percent} %")


def _quantiles(result: Divergence) -> Iterator[doc.ChartData]:
    """Yield how far apart the models are at how many of the events."""
    quantiles = result.kl_ab_quantiles_nats
    if not any(quantiles.values()):
        return
    yield doc.ChartData(
        "divergence",
        "How far apart the models are: KL(A || B) over events",
        "share of events that are no further apart",
        "KL(A || B)",
        "nats",
        (doc.series("KL(A || B)", [_percentile(percent) for percent in quantiles], list(quantiles.values())),),
        better="lower",
        rule=result.kl_ab_nats.value,
        rule_name="mean",
        log_y=all(value > 0 for value in quantiles.values()),
    )


def _row(name: str, figure: Figure, digits: int = 6, scale: float = 1.0) -> Row:
    value = None if figure.value is None else scale * figure.value
    return name, doc.Number(value, digits), doc.between(figure.interval, digits, scale=scale)


def _of(part: int, whole: int) -> str:
    return f"all {whole:,}" if part == whole > 1 else f"{part:,} of {whole:,}"


def _worst(result: Divergence) -> Iterator[doc.Block]:
    worst = result.worst
    if worst is None or worst.kl_nats == 0:
        return
    where = f"segment {worst.segment + 1:,}, event {worst.position + 1:,}"
    yield doc.Text(f"furthest apart at {where}: KL(A || B) {number(worst.kl_nats)} nats")
    most = [
        (f"{name}'s most probable", f"{token!r}, p = {number(p)}")
        for name, token, p in (("A", worst.top_a, worst.top_a_probability), ("B", worst.top_b, worst.top_b_probability))
    ]
    before = repr(worst.context) if worst.context else "nothing: the beginning"
    yield doc.Lines((("after", before), ("came", repr(worst.token)), *most))
