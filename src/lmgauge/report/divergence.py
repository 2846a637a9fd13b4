"""How far a candidate is from its base: the answer, the figures, where it suffers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lmgauge.evaluation.divergence.divergence_result import Divergence, WorstToken
from lmgauge.evaluation.slicing.sums import Slices
from lmgauge.numerics.units import bits_to_nats
from lmgauge.report import blocks as doc
from lmgauge.report.comparison import change_cells
from lmgauge.report.formats import in_words, number, percent
from lmgauge.report.slices import slice_kind
from lmgauge.report.stored_base import storage_blocks
from lmgauge.result_columns import columns_of

Row = tuple[str, doc.Number, doc.Cell]
_AROUND = 40  # characters of context to show


def blocks(divergence: Divergence, *, details: bool = True) -> doc.Document:
    """Return the verdict, the figures, where the candidate suffers, what a reader must know, and the signature."""
    names, values, intervals = zip(*_rows(divergence), strict=True)
    return (
        doc.Heading(f"A = {divergence.a}, B = {divergence.b}"),
        *_verdict(divergence),
        doc.Text(looked_at(divergence)),
        doc.Table((doc.labels("figure", names), doc.Column("value", values), doc.Column("95 % interval", intervals, 1))),
        *storage_blocks(divergence.storage),
        *_quantiles(divergence),
        *(details_of(divergence) if details else ()),
        *doc.notes([f"95 % intervals: {divergence.independence}."] if divergence.independence else []),
        *doc.notes(divergence.notes),
        doc.Signature(divergence.signature),
    )


def looked_at(result: Divergence) -> str:
    """Return how many of the events and segments of the text were compared."""
    return f"{_of(result.events, result.total_events)} events, {_of(result.segments, result.total_segments)} segments"


def _of(part: int, whole: int) -> str:
    return f"all {whole:,}" if part == whole > 1 else f"{part:,} of {whole:,}"


def _verdict(result: Divergence) -> Iterator[doc.Verdict]:
    ratio, agreement, kl = result.perplexity_ratio, result.top_1_agreement.value, result.kl_ab_nats.value
    if ratio.value is None or not math.isfinite(ratio.value) or kl is None:
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
    far = f"B is {number(kl)} nats a token from A (mean KL divergence)."
    yield doc.Verdict(level, f"{far} The perplexity of B {what}: {in_words(gap)}{between}.{alike}")


def _rows(result: Divergence) -> Iterator[Row]:
    for name, own in columns_of(Divergence).items():
        if name == "kl_ba_nats" and result.infinite_kl_ab:
            yield "  where finite, nats", doc.Number(result.kl_ab_without_infinite_nats, 6), ""
        figures = getattr(result, name)
        for k, figure in figures.items() if isinstance(figures, dict) else [(0, figures)]:
            if k != 1:  # that is the agreement
                value = None if figure.value is None else own.scale * figure.value
                ends = doc.between(figure.interval, own.digits, scale=own.scale)
                yield own.title.format(k), doc.Number(value, own.digits), ends


def percentile(percent: str) -> str:
    """Return what a quantile is called: 50 is the median, 0 and 100 the ends."""
    return {"0": "minimum", "50": "median", "100": "maximum"}.get(percent, f"{percent} %")


def _quantiles(result: Divergence) -> Iterator[doc.Block]:
    quantiles = result.kl_ab_quantiles_nats
    if not any(quantiles.values()):
        return
    names = [percentile(percent) for percent in quantiles]
    changes = [100 * result.probability_change_quantiles[percent] for percent in quantiles]
    columns = (
        doc.labels("events up to", names),
        doc.numbers("KL(A || B), nats", list(quantiles.values()), 6),
        doc.numbers("change of p, %", changes, 3, "signed"),
    )
    yield doc.Table(columns, "quantiles over events; p is that of the true token")
    title, x = "How far apart the models are: KL(A || B) over events", "share of events that are no further apart"
    kl = (doc.series("KL(A || B)", names, list(quantiles.values())),)
    chart = doc.ChartData("divergence", title, x, "KL(A || B)", "nats", kl, better="lower", rule_name="mean")
    yield replace(chart, rule=result.kl_ab_nats.value, log_y=all(value > 0 for value in quantiles.values()))


# --- where the candidate suffers --------------------------------------------------------------------------------------


def details_of(result: Divergence) -> Iterator[doc.Block]:
    """Yield slices of the text, and the tokens that suffer most."""
    if not any(result.kl_ab_quantiles_nats.values()):
        return
    for slices in result.slices:
        if len(slices.rows) > 1:
            yield from _slice(slices, result.kl_ab_nats.value)
    if result.costly_tokens:
        yield _costly(result)
    yield from _worst("events that are furthest apart", result.worst_tokens)
    yield from _worst("events whose true token lost most probability", result.lost_tokens)


def _slice(slices: Slices, whole: float | None) -> Iterator[doc.Block]:
    rows = slices.rows
    means = [_nats(row.bits_per_unit[0]) for row in rows]
    ends = [row.interval and (bits_to_nats(row.interval[0]), bits_to_nats(row.interval[1])) for row in rows]
    columns = (
        *doc.columns(rows, "label", "ranges"),
        doc.numbers("KL(A || B), nats", means, 6),
        doc.Column("95 % interval", [doc.between(end, 6) for end in ends], 2),
    )
    yield doc.Table(columns, f"by {slices.name}")
    name = f"divergence-{slices.name.split(' (')[0].replace(' ', '-')}"
    finite = [i for i, value in enumerate(means) if value is not None and math.isfinite(value)][: doc.MOST_CHART_ROWS]
    labels, values, intervals = [rows[i].label for i in finite], [means[i] for i in finite], [ends[i] for i in finite]
    kl, title = (doc.series("KL(A || B)", labels, values, intervals),), f"KL(A || B) by {slices.name}"
    chart = doc.ChartData(name, title, slices.name, "KL(A || B)", "nats", kl, kind=slice_kind(slices), better="lower")
    yield replace(chart, rule=whole, rule_name="the whole text")


def _nats(bits: float | None) -> float | None:
    return None if bits is None else float(bits_to_nats(bits))


def _costly(result: Divergence) -> doc.Table:
    costs = result.costly_tokens
    mean = result.kl_ab_without_infinite_nats or 0.0
    whole = mean * (result.events - result.infinite_kl_ab - result.undefined_events)
    nats = [_nats(cost.bits) or 0.0 for cost in costs]
    columns = [
        doc.labels("", [cost.token if cost.token.strip() else repr(cost.token) for cost in costs]),
        *doc.columns(costs, "events"),
        doc.numbers("share of all KL", [value / whole if whole else None for value in nats], 2, "percent"),
        doc.numbers("KL each, nats", [_nats(cost.mean_bits) for cost in costs], 6),
    ]
    if any(cost.zeros for cost in costs):
        columns.append(doc.numbers("KL infinite", [cost.zeros for cost in costs], form="count"))
    return doc.Table(tuple(columns), "tokens with most KL(A || B) in all: where they came")


def _worst(title: str, tokens: Sequence[WorstToken]) -> Iterator[doc.Block]:
    # Table of events: where, how far apart, the token in its context, and what each model expected.
    if not tokens:
        return
    columns = (
        doc.Column("segment", [f"{one.segment + 1:,}" for one in tokens], 3),
        *doc.columns(tokens, "kl_nats", "p_a", "p_b"),
        doc.labels("A expects", [f"{one.top_a!r} {number(one.top_a_probability, 2)}" for one in tokens], drop=2),
        doc.labels("B expects", [f"{one.top_b!r} {number(one.top_b_probability, 2)}" for one in tokens], drop=1),
        doc.Column(
            "the token in its text",
            [doc.Tokens((one.context[-_AROUND:], one.text), meant=1) for one in tokens],
            align="left",
        ),
    )
    yield doc.Table(columns, title, anchors=tuple(one.segment for one in tokens))
